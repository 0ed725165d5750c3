"""Requests: everything that may differ between two calls of one model. Needs no torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tolka.errors import ConfigError
from tolka.options.parsing import build
from tolka.search.options import SEARCHES, SearchConfig
from tolka.terminology.glossary import Entry, read_banned, read_glossary
from tolka.text.direction import Direction
from tolka.text.lines import LINE_LIMIT, LineLimit, user_path

Terms = Mapping[str, str | Sequence[str]] | Sequence[Entry]


@dataclass(init=False)
class Request:
    """Options of one call of `Translator.translate`; each that is None is as the translator was loaded.

    translator.translate(["The gears turn."], tolka.Request(search={"n_best": 3}, glossary={"gear": "Gang"}))
    """

    search: SearchConfig | None
    direction: Direction | None
    glossary: tuple[Entry, ...] | None
    banned: tuple[str, ...] | None
    prefixes: tuple[str, ...]
    scored: bool

    def __init__(
        self,
        search: SearchConfig | str | Mapping[str, Any] | None = None,
        direction: Direction | None = None,
        glossary: Terms | None = None,
        banned: Sequence[str] | None = None,
        prefixes: Sequence[str] = (),
        scored: bool = True,
    ) -> None:
        """search: the name of a search, its options as a mapping, or a SearchConfig.

        direction: one that the model knows. glossary: terms and their translations, as in `{"gear": "Gang"}`; one with
        several translations has a list of them. banned: phrases that translations must not contain. prefixes: the
        beginning of each text's translation, "" where it is free; none at all by default. scored: whether scores are
        needed; greedy search is faster without. ConfigError for options that do not fit, TypeError for other types.
        """
        for name, texts in (("banned", banned), ("prefixes", prefixes)):
            if isinstance(texts, str):
                raise TypeError(f"{name} must be several texts, as in [{texts!r:.60}]")
        self.search = _search(search)
        self.direction = None if direction is None else Direction(*direction)
        self.glossary = None if glossary is None else _entries(glossary)
        self.banned = None if banned is None else tuple(banned)
        self.prefixes, self.scored = tuple(prefixes), scored

    @classmethod
    def of(cls, search: SearchConfig, direction: Direction, limit: LineLimit = LINE_LIMIT) -> "Request":
        """Return the request of a configuration: reads the files of search.glossary and search.banned.

        DataError, in one line, for a file that cannot be read or has an invalid line.
        """
        glossary = read_glossary(user_path(search.glossary), direction, limit) if search.glossary else ()
        banned = read_banned(user_path(search.banned), limit) if search.banned else ()
        return cls(replace(search, glossary="", banned=""), direction, glossary, banned)

    def resolved(self, default: "ResolvedRequest") -> "ResolvedRequest":
        """Return the request with the default's values in place of None; ConfigError if they contradict each other."""
        # An empty glossary or list is a value too: it switches off that of the default.
        request = ResolvedRequest(
            self.search or default.search,
            self.direction or default.direction,
            default.glossary if self.glossary is None else self.glossary,
            default.banned if self.banned is None else self.banned,
            self.prefixes,
            self.scored,
        )
        if request.glossary and not request.search.MEETS_TERMS:
            raise ConfigError("a glossary needs beam search: set search=beam")
        return request


@dataclass(frozen=True)
class ResolvedRequest:
    """A request in which every option has a value; the fields are those of `Request`.

    The texts of equal ones may share a batch. Tuples compare their items by identity first: a glossary of 300 000
    entries is not compared with itself.
    """

    search: SearchConfig
    direction: Direction
    glossary: tuple[Entry, ...] = ()
    banned: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = field(default=(), compare=False)
    scored: bool = field(default=True, compare=False)


def _search(value: SearchConfig | str | Mapping[str, Any] | None) -> SearchConfig | None:
    """Return the SearchConfig of a name or a mapping; ConfigError for an unknown name or option."""
    if value is None:
        return None
    if not isinstance(value, SearchConfig):
        options = {"name": value} if isinstance(value, str) else {"name": "beam", **value}
        value = build(SEARCHES.get(str(options["name"])), options, "search")
    for key in ("glossary", "banned"):
        if getattr(value, key):
            # `of` reads the files, once and not with each call.
            raise ConfigError(f"search.{key} names a file, and a request has what is in it: {key}=...")
    return value


def _entries(glossary: Terms) -> tuple[Entry, ...]:
    """Return the entries of a glossary; TypeError for anything but texts and lists of them."""
    # The very tuple of another request, so that `==` and the cache of terminologies compare by identity. One entry
    # is looked at: a mix of entries and other tuples does not come from a request.
    if isinstance(glossary, tuple) and all(type(entry) is Entry for entry in glossary[:1]):
        return glossary
    if not isinstance(glossary, Mapping):
        return tuple(Entry(*entry) for entry in glossary)
    entries = []
    for source, targets in glossary.items():
        forms = (targets,) if isinstance(targets, str) else tuple(targets)
        if not all(isinstance(form, str) for form in (source, *forms)):
            raise TypeError(f"glossary[{source!r:.60}] must be a text or several, not {targets!r:.60}")
        entries.append(Entry((source,), forms))
    return tuple(entries)
