"""What a server takes from its clients, at most. Needs no torch."""

from dataclasses import dataclass, fields

from tolka.options.checks import at_least


@dataclass(frozen=True)
class LimitsConfig:
    """Limits of a server; beyond them a request is refused, and the answer says which limit it was."""

    characters: int = 100_000
    """of the texts in a request; each text counts one more"""
    hypotheses: int = 16
    """of a text that a request may ask for: alternatives, n_best, beam_size or samples"""
    waiting: int = 2_000_000
    """characters of all requests that are being answered; a further request gets 503, and when to come again"""
    seconds: int = 60
    """that texts may wait and be translated, and that a client may pause in the midst of its request"""
    file_bytes: int = 20_000_000
    """of a document"""

    def __post_init__(self) -> None:
        at_least(self, "limits", 1, *(field.name for field in fields(self)))
