"""Notes at the end of a job: how many lines were unusual, and how they were treated."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from tolka.documents.text import DOUBTS
from tolka.system.number_format import count_text
from tolka.text.direction import Direction
from tolka.text.scripts import is_in_other_script
from tolka.translation.flags import FLAGS
from tolka.translation.results import blank_translations_note

if TYPE_CHECKING:
    from tolka.jobs.formats import LineResult

_LOOKED_AT = 200  # characters of a line: enough to tell its script
_SHARE_NOTED = 0.1  # of the lines, in the target's script; a few may be names and loanwords
# The note on each count that is not 0, after "5 of 9". done, treated: see `UnusualLines.notes`.
_NOTES = {
    "apart": "lines have several sentences, {done} one by one (decoding.split)",
    "whole": "lines have several sentences, and their translation has more or fewer: scored whole, which the model was "
    "not trained for",
    "together": "lines have several sentences, translated at once: the model does not say what it was trained on; try "
    "decoding.split=sentences if the translations lack some",
    "long": "lines were longer than the model was trained for: {treated}",
    "cut": "translations reached the length limit (search.max_length_factor) and may be cut",
    "tagged": "lines began with the tag of a language, which gave way to that of target={target}",
    "missing": "lines lack a translation that the glossary (search.glossary) has for them",
    "banned": "lines contain a banned phrase (search.banned)",
}


class UnusualLines:
    """Counts unusual lines, with a note for each kind that a user should know of.

    counts: number of lines of each kind of _NOTES, of all (lines), in the target's script (reversed), that are not
    blank (with_text), and of those with a blank translation (blank). direction: of the job.
    """

    def __init__(
        self,
        direction: Direction,
        scored: bool = False,
        before: Mapping[str, int] | None = None,
        typed: Collection[str] = (),
        unit: str = "line",
        lister: str = "output.format=table or html",
    ) -> None:
        """scored: whether translations were given. before: counts of the job that is resumed.

        typed: languages whose tags (`>>deu<<`) give way to that of the direction. unit: what is counted. lister: the
        setting that lists those to check.
        """
        self._unit, self._lister = unit, lister
        self.counts, self._tags = Counter(before), tuple(f">>{code}<<" for code in typed)
        self.direction, self._scored = direction, scored

    def add(self, results: "Iterable[LineResult]", flagged: Iterable[Collection[str]] = ()) -> None:
        """Count the unusual ones among translated lines. flagged: the flags of each."""
        counts = self.counts
        for flags in flagged:
            self.count_flags(flags)
        for result in results:
            translation, best = result.translation, result.translation.candidates[0]
            several = translation.sentences > 1
            counts["lines"] += 1
            counts["apart"] += several and translation.split == "sentences"
            counts["together"] += several and translation.split == "unknown"
            counts["whole"] += several and translation.split == "never" and self._scored
            counts["long"] += translation.too_long
            counts["cut"] += not translation.complete
            counts["tagged"] += result.source.startswith(self._tags)
            counts["missing"] += bool(best.missing)
            counts["banned"] += bool(best.banned)
            counts["reversed"] += is_in_other_script(result.source[:_LOOKED_AT], *self.direction)
            # A source that is blank to the model has no segments.
            counts["with_text"] += bool(best.segments)
            counts["blank"] += bool(best.segments) and not best.text.strip()

    def count_flags(self, flags: Collection[str]) -> None:
        """Count what a person should look at in one of them."""
        self.counts["to check"] += bool(flags)
        self.counts.update(f"flag {flag}" for flag in flags)

    def notes(self, is_complete: bool = True) -> Iterator[str]:
        """Yield the notes. is_complete: whether the input was read to its end, without an error."""
        counts, (source, target) = self.counts, self.direction
        done = "scored" if self._scored else "translated"
        treated = "scored whole all the same" if self._scored else "split, translated, rejoined"
        for kind, words in _NOTES.items():
            if count := counts[kind]:
                words = words.format(done=done, treated=treated, target=target).replace("lines", f"{self._unit}s")
                yield f"note: {count} of {counts['lines']} {words}"
        if counts["reversed"] > _SHARE_NOTED * counts["lines"]:
            yield (
                f"note: {counts['reversed']} of {counts['lines']} {self._unit}s are in the script of {target}, and the "
                f"model translates from {source} to {target}; is it the one for the other direction?"
            )
        if blank := "" if self._scored else blank_translations_note(counts["blank"], counts["with_text"]):
            yield f"note: {blank}"
        if to_check := counts["to check"]:
            found = Counter({flag: count for flag in (*FLAGS, *DOUBTS) if (count := counts[f"flag {flag}"])})
            why = ", ".join(f"{flag} {count}" for flag, count in found.most_common())
            total = count_text(counts["lines"], self._unit)
            yield f"to check: {to_check} of {total} ({why}); {self._lister} lists them"
        if is_complete and not counts["lines"]:
            yield f"note: there was no {self._unit} to {'score' if self._scored else 'translate'}"
