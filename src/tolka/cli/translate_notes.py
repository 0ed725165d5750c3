"""What mt-translate tells at its end: how many lines were treated in an unusual way."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tolka.system.progress import say
from tolka.text.scripts import letters_of

if TYPE_CHECKING:
    from tolka.cli.translate_formats import Result
    from tolka.translation.results import Translation

_LOOKED_AT = 200  # characters of a line that show its script
_SHARE_NOTED = 0.1  # of the lines, in the target's script; a few are names and loanwords


@dataclass
class Counts:
    """Lines: all, with several sentences (apart: treated one by one; whole: scored at once, as the translation has more
    or fewer), too long, cut, in the target's script, without a term of the glossary (missing), with a banned phrase.
    """

    lines: int = 0
    apart: int = 0
    together: int = 0
    long: int = 0
    cut: int = 0
    reversed: int = 0
    missing: int = 0
    banned: int = 0
    whole: int = 0


class Tally:
    """Counts unusual lines, and prints a note for each kind that a user should know of."""

    def __init__(self, languages: tuple[str, str], scored: bool, before: Mapping[str, Any]) -> None:
        """languages: the codes of source and target. scored: whether the translations were given.

        before: what `as_dict` returned in the job that is resumed; {} in a new one.
        """
        self.counts = Counts(**before)
        self._languages, self._scored = languages, scored
        self._source_letters, self._target_letters = map(letters_of, languages)

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as plain values."""
        return asdict(self.counts)

    def add(self, results: "Iterable[Result]") -> None:
        """Count translated lines."""
        for result in results:
            self._add(result.source, result.translation)

    def _add(self, source: str, translation: "Translation") -> None:
        several, counts = translation.sentences > 1, self.counts
        counts.lines += 1
        counts.apart += several and translation.split == "sentences"
        counts.together += several and translation.split == "unknown"
        counts.whole += several and translation.split == "never" and self._scored
        counts.long += translation.too_long
        counts.cut += not translation.complete
        counts.missing += bool(translation.candidates[0].missing)
        counts.banned += bool(translation.candidates[0].banned)
        counts.reversed += self._is_in_target_script(source)

    def _is_in_target_script(self, source: str) -> bool:
        """Return whether a text has more letters of the target language than of the source language."""
        if self._source_letters is None or self._target_letters is None:
            return False
        text = source[:_LOOKED_AT]
        of_target = len(self._target_letters.findall(text))
        return of_target > 0 and of_target > len(self._source_letters.findall(text))

    def conclude(self, is_complete: bool = True) -> None:
        """Print the notes. is_complete: whether the input was read to its end, without an error."""
        counts = self.counts
        of_lines = f"of {counts.lines} lines"
        if counts.apart:
            done = "scored" if self._scored else "translated"
            say(f"note: {counts.apart} {of_lines} have several sentences, {done} one by one (decoding.split)")
        if counts.whole:
            say(
                f"note: {counts.whole} {of_lines} have several sentences, and their translation has more or fewer: "
                "scored whole, which the model was not trained for"
            )
        if counts.together:
            say(
                f"note: {counts.together} {of_lines} have several sentences, translated at once: the model does not "
                "say what it was trained on; try decoding.split=sentences if the translations lack some"
            )
        if counts.long:
            treated = "scored whole all the same" if self._scored else "split, translated, rejoined"
            say(f"note: {counts.long} {of_lines} were longer than the model was trained for: {treated}")
        if counts.cut:
            say(
                f"note: {counts.cut} of {counts.lines} translations reached the length limit "
                "(search.max_length_factor) and may be cut"
            )
        if counts.missing:
            say(
                f"note: {counts.missing} {of_lines} lack a translation that the glossary (search.glossary) has for them"
            )
        if counts.banned:
            say(f"note: {counts.banned} {of_lines} contain a banned phrase (search.banned)")
        if counts.reversed > _SHARE_NOTED * counts.lines:
            source, target = self._languages
            say(
                f"note: {counts.reversed} {of_lines} are in the script of {target}, and the model translates from "
                f"{source} to {target}; is it the one for the other direction?"
            )
        if is_complete and not counts.lines:
            say(f"note: there was no line to {'score' if self._scored else 'translate'}")
