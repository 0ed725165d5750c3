"""Compare systems: files of translations, models and runs, in any mix."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations
from os import PathLike
from typing import Any

from tolka.api.scored_texts import is_model, read_texts, translations_of
from tolka.config.command_line import evaluate_config
from tolka.config.schemas import EvaluateConfig
from tolka.config.typed import Settings, as_config
from tolka.errors import ConfigError
from tolka.evaluation.input_notes import NamedText, blank_note, notes_on, without_repeats
from tolka.metrics import significance
from tolka.metrics.contrast import Contrast, contrasts
from tolka.metrics.significance import PAIRED_TEST, Comparison
from tolka.metrics.tables import Form, interval_text, table
from tolka.model_directory.names import models_of
from tolka.system.progress import Say, say


@dataclass(frozen=True, repr=False)
class CompareResult:
    """Systems by name, what every two of them differ by under each metric, and how they differ.

    contrasts: in the order of the comparisons of one metric. notes: reasons why the scores may mislead.
    """

    systems: list[NamedText]
    comparisons: list[Comparison]
    contrasts: list[Contrast]
    references: Sequence[str]
    notes: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        keys = ("name", "difference", "interval", "p_value", "p_adjusted", "detectable", "signature")
        names = [name for name, _ in self.systems]
        rows = [
            {"systems": [names[each] for each in found.systems], "a": found.a.as_dict(), "b": found.b.as_dict()}
            | {key: getattr(found, key) for key in keys}
            for found in self.comparisons
        ]
        pairs = combinations(names, 2)
        contrasts = [{"systems": list(pair), **asdict(own)} for pair, own in zip(pairs, self.contrasts, strict=True)]
        return {"systems": names, "comparisons": rows, "contrasts": contrasts}

    def as_text(self, form: Form = "text") -> str:
        """Return tables of scores and of differences, and of how each two systems differ. form: of the tables."""
        letters = [chr(ord("A") + number) for number in range(len(self.systems))]
        legend = [f"{letter}: {name}" for letter, (name, _) in zip(letters, self.systems, strict=True)]
        blocks = ["\n".join(legend), self._scores(letters, form), self._differences(letters, form)]
        signatures = {each.name: each.signature for each in self.comparisons}
        several = "p (Holm): the same for all pairs together\n" if len(self.systems) > 2 else ""
        blocks.append(
            f"p: how often so large a difference comes by chance ({PAIRED_TEST}); below 0.05 is taken as real\n"
            f"{several}"
            "found from: differences this large are found in four of five test sets of this size\n"
            + "\n".join(f"{name}: {signature}" for name, signature in signatures.items())
        )
        pairs = combinations(range(len(letters)), 2)
        blocks += [self._contrast(*pair, own, letters, form) for pair, own in zip(pairs, self.contrasts, strict=True)]
        return "\n\n".join(blocks)

    __repr__ = as_text  # what mt-eval prints

    def _scores(self, letters: Sequence[str], form: Form) -> str:
        rows: dict[str, list[str]] = {}
        for each in self.comparisons:
            if each.systems[0] == 0:  # the pairs with the first system have the scores of all
                a, b = (
                    f"{score.value:.{score.digits}f} ({interval_text(score.interval, score.digits)})"
                    for score in (each.a, each.b)
                )
                rows.setdefault(each.name, [each.name, a]).append(b)
        return table([*rows.values()], ["metric", *letters], "l" * (1 + len(letters)), form)

    def _differences(self, letters: Sequence[str], form: Form) -> str:
        header = ["metric", "systems", "difference", "95% interval", "p", "p (Holm)", "found from"]
        rows = []
        for each in self.comparisons:
            a, b = (letters[place] for place in each.systems)
            digits = each.a.digits
            interval = " to ".join(f"{end:+.{digits}f}" for end in each.interval or ())
            p_values = f"{each.p_value:.4f}", f"{each.p_adjusted:.4f}"
            found = f"{each.detectable:.{digits}f}"
            rows.append([each.name, f"{b} - {a}", f"{each.difference:+.{digits}f}", interval, *p_values, found])
        if len(self.systems) == 2:  # where Holm corrects nothing
            header, *rows = ([*row[:5], row[6]] for row in (header, *rows))
        return table(rows, header, "llrlrrr"[: len(header)], form)

    def _contrast(self, a: int, b: int, own: Contrast, letters: Sequence[str], form: Form) -> str:
        one, other = letters[a], letters[b]
        blocks = [f"{other} beside {one}: of {own.lines} lines, {own.better} are better and {own.worse} worse by chrF2"]
        for what, words in (("more", own.gained), ("less", own.lost)):
            listed = ", ".join(f"'{word}' ({count})" for word, count in words)
            blocks[0] += f"\nfound {what} often by {other}: {listed}" if listed else ""
        header = ["chrF2 of lines of", "count", one, other, f"{other} - {one}"]
        rows = [[of.name, str(of.count), f"{of.a:.1f}", f"{of.b:.1f}", f"{of.b - of.a:+.1f}"] for of in own.lengths]
        blocks.append(table(rows, header, "lrrrr", form))
        for what, rows_of in (("better", own.deciding[0]), ("worse", own.deciding[1])):
            for row in rows_of:
                lines = ((one, self.systems[a][1]), (other, self.systems[b][1]), ("reference", self.references))
                shown = "\n".join(f"  {name:9} {texts[row]}" for name, texts in lines)
                blocks.append(f"{other} is {what} in line {row + 1}:\n{shown}")
        return "\n\n".join(blocks)


def compare(
    systems: Sequence[str | PathLike[str]], config: EvaluateConfig | Settings = (), say: Say = say, **settings: Any
) -> CompareResult:
    """Test which of several systems differ by more than chance, and show where.

    systems: files of translations, models and runs; models translate `source`. config, settings: as mt-eval takes them.
    say: receives notes. ConfigError for fewer than two systems or without resamples; DataError if the numbers of lines
    differ.

        tolka.compare(["runs/old", "runs/new", "theirs.de"], source="test.en", reference="test.de")
    """
    config = as_config(EvaluateConfig, partial(evaluate_config, say=say), config, settings)
    if len(systems) < 2:
        raise ConfigError("compare takes two systems or more: mt-eval compare A B reference=FILE")
    if config.files.hypothesis:
        raise ConfigError("compare takes translations without hypothesis=: mt-eval compare A B reference=FILE")
    first = next((str(system) for system in systems if is_model(str(system))), "")
    texts = read_texts(config, say, models_of(first) if first else ())
    found = (translations_of(str(system), texts, config, say) for system in systems)
    named, languages, notes = zip(*found, strict=True)
    language = next(filter(None, languages), "")
    on_texts = notes_on(named, texts.references, config.metrics, language, texts.source)
    all_notes = [*notes, *on_texts, blank_note([*named, *texts.references])]
    lists, references = [lines for _, lines in named], texts.as_references
    comparisons = significance.compare(lists, references, config.metrics, language)
    differing = contrasts(lists, references, config.metrics, language)
    return CompareResult(list(named), comparisons, differing, texts.references[0][1], without_repeats(all_notes))
