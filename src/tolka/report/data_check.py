"""The findings about a corpus as text for a terminal: facts, problems with an example each, and advice."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tolka.auto.rules import choices_table, usual_share
from tolka.metrics.tables import table
from tolka.system.number_format import count_text
from tolka.system.surrogates import JOINERS

MOST_PASSES = 100  # passes through the text; if training would make more, fewer updates are recommended
_FEW_PAIRS = 100_000  # of which a model that was trained on millions knows more
_SHOWN = 60  # characters of an example
_MIXED = "convert those lines alone: CONVERSION"
_USUAL_SPELLING = "cleaning.typography=standard writes the usual spelling, in the model's input as well"
# Beginning of a finding's description -> (share of the pairs above which to act, advice, key of the group `cleaning`
# that the advice sets, or ""). CONVERSION: of the finding. The first that fits counts: the more special come
# first.
_CURES = {
    "source not UTF-8, others are": (0.0, f"in the source, {_MIXED}", ""),
    "target not UTF-8, others are": (0.0, f"in the target, {_MIXED}", ""),
    "line not UTF-8, others are": (0.0, _MIXED, ""),
    "source not UTF-8": (0.0, "convert the source: CONVERSION", ""),
    "target not UTF-8": (0.0, "convert the target: CONVERSION", ""),
    "line not UTF-8": (0.0, "convert the file: CONVERSION", ""),
    "a carriage return inside a text": (0.0, "cleaning.control=strip, as cleaning=standard does", "control"),
    "a carriage return": (0.0, "are those the ends of lines? tr '\\r' '\\n' makes them so", ""),
    "lines that": (0.0, "find the line that one side lacks, and align the files again", ""),
    "broken encoding": (0.001, "mend the encoding (the Python package ftfy does), or leave those pairs out", ""),
    "markup": (0.01, "cleaning.markup=strip, or drop", "markup"),
    "control or invisible": (0.001, "cleaning.control=strip, as cleaning=standard does", "control"),
    "source copied": (0.01, "cleaning.copies=true, unless names and codes are to be copied", "copies"),
    "few letters": (0.02, "cleaning.min_letters=0.5", "min_letters"),
    "numbers that differ": (0.02, "cleaning.numbers=true", "numbers"),
    "another script": (0.005, "cleaning.script=true", "script"),
    "source in another spelling": (0.01, _USUAL_SPELLING, "typography"),
    "target in another spelling": (0.01, _USUAL_SPELLING, "typography"),
    "source surely in another": (0.01, "cleaning.language=true", "language"),
    "target surely in another": (0.01, "cleaning.language=true", "language"),
    "a pair that came before": (0.05, "cleaning.duplicates=exact, as cleaning=standard does", "duplicates"),
    "nearly a pair": (0.05, "cleaning.duplicates=near", "duplicates"),
    "one side over": (0.001, "cleaning.max_ratio=9, as cleaning=standard does", "max_ratio"),
}
# The same for a fault of most pairs: a step that drops them would leave little.
_WRONG_COLUMN = "is it the right file, or the right column (corpus.columns)?"
_MOST_CURES = {
    "a blank side": f"most pairs have a blank side: {_WRONG_COLUMN}",
    "source copied": f"most targets equal their sources: {_WRONG_COLUMN}",
    "few letters": f"most pairs have few letters: {_WRONG_COLUMN}",
    "another script": f"most pairs have a side in another script than its language's: {_WRONG_COLUMN}",
    "source surely in another": f"most of the source is not in the language of corpus.source: {_WRONG_COLUMN}",
    "target surely in another": f"most of the target is not in the language of corpus.target: {_WRONG_COLUMN}",
    "numbers that differ": "the sides of most pairs have different numbers: are they translations of each other?",
    "one side over": "most pairs have a side that is far longer: are they translations of each other?",
}
# Of a text whose sides or languages are swapped, these are consequences: no advice of their own.
_SWAP_FINDINGS = ("source copied", "another script", "source surely in another", "target surely in another")
_LEAKS = {
    "whole pair": "cleaning.leaks=pair (as cleaning=standard does), or its scores will be too good",
    "source": "cleaning.leaks=source, or its scores may be too good",
}
_ALL = "all of it stands in the training text: is it the same file?"


def health_report(checkup: Mapping[str, Any], languages: tuple[str, str]) -> str:
    """Return the report on a corpus for a terminal.

    checkup: of `run.data_check.check`, and as "chosen" the settings that were chosen for the text. "parent": the
    name of a model to start from.
    """
    lines: list[str] = []
    for diagnosis in checkup["training"]:
        lines += ["", f"{diagnosis['name']}: {count_text(diagnosis['pairs'], 'pair')}", ""]
        sides = zip(diagnosis.get("direction", languages), ("source", "target"), strict=True)
        rows = [_side(language, diagnosis[side]) for language, side in sides]
        lines.append(table(rows, ["side", "characters", "words", "shortest, quarters, longest", "languages"], "lrrll"))
        lines += ["", *_findings(diagnosis["findings"], diagnosis["pairs"])]
        lines += [f"  {line}" for line in shift_words(diagnosis["shift"])]
    if checkup["kept"]:
        lines += [f"these settings keep: {_cleaning_counts(checkup['kept'])}"]
    if leaks := leak_findings(checkup):
        lines += ["", "held-out text in the training text (case, punctuation and blanks left out):", ""]
        lines += _findings(leaks)
    if checkup["chosen"]:
        lines += ["", choices_table(checkup["chosen"])]
    lines += ["", *_pace(checkup["pace"], checkup["unfit"], checkup["chosen"])]
    to_do = advice(checkup)
    if to_do or not checkup["unfit"]:
        lines += ["", "to do:" if to_do else "nothing to do", *(f"  {line}" for line in to_do)]
    return "\n".join(lines)


def passes_note(updates: int, passes: float) -> str:
    """Return advice if training would read the text needlessly often; else "".

    passes: how often the updates go through the text.
    """
    if passes <= MOST_PASSES:
        return ""
    fewer = max(1, round(updates * MOST_PASSES / passes))
    return (
        f"{updates} updates go {passes:.0f} times through the text, which after some {MOST_PASSES} times is mostly "
        f"learnt by heart: trainer.updates={fewer} goes through it {MOST_PASSES} times"
    )


def advice(checkup: Mapping[str, Any]) -> list[str]:
    """Return what to do, each piece of advice once. checkup: of `run.data_check.check`."""
    return list(dict.fromkeys(_advice(checkup)))


def cure_of(finding: Mapping[str, Any], cleaning: Mapping[str, Any]) -> str:
    """Return what to do about a problem; "" if nothing, if it is rare, or if the settings do it already.

    cleaning: the settings of that group.
    """
    share = finding["count"] / finding["looked_at"]
    # Whatever the settings are: cleaning would silently leave next to nothing.
    for beginning, cure in _MOST_CURES.items():
        if share > 0.5 and finding["what"].startswith(beginning):
            return cure
    for beginning, (least, cure, key) in _CURES.items():
        if finding["what"].startswith(beginning) and share > least:
            cure = cure.replace("CONVERSION", finding.get("conversion", ""))
            return "" if key and cleaning[key] not in ("keep", False, 0) else cure
    return ""


def leak_findings(checkup: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the leaks of the validation text, then of the test sets. checkup: of `run.data_check.check`."""
    return [finding for leaks in checkup["leaks"].values() for finding in leaks["findings"]]


def leak_cure(finding: Mapping[str, Any], cleaning: Mapping[str, Any]) -> str:
    """Return what to do about held-out text in the training text."""
    _, _, description = finding["what"].partition(": ")
    kind = "source" if description.startswith("source") else "whole pair"
    if kind == "whole pair" and finding["count"] == finding["looked_at"]:
        return _ALL
    # Dropping every pair with a held-out source drops the whole pairs among them, too.
    sufficient = {"source": ("source",), "whole pair": ("pair", "source")}[kind]
    return "" if cleaning["leaks"] in sufficient else _LEAKS[kind]


def in_validation_set(overlap: Mapping[str, Any]) -> str:
    """Return a sentence about a test set that has pairs of the validation set. overlap: a finding, as plain values."""
    name, count, total = overlap["what"].partition(":")[0], overlap["count"], overlap["looked_at"]
    which = "is the validation set" if count == total else f"has {count} of its {total} pairs in the validation set"
    return f"the test set {name} {which}, by which the best model is chosen: its scores will be too good"


def shift_words(shift: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield lines about the misaligned range, if there is one."""
    if shift is None:
        return
    before, inside = shift["correlation"]
    where = f"pairs {shift['first']} to {shift['last']}"
    yield f"{where} are not parallel: their lengths correlate by {inside:.2f}, those of the rest by {before:.2f}"
    if shift["lines"]:
        late, early = ("target", "source") if shift["lines"] > 0 else ("source", "target")
        lines = "a line" if abs(shift["lines"]) == 1 else f"{abs(shift['lines'])} lines"
        yield f"near pair {shift['first']} the {late} has {lines} too many, or the {early} too few"


def duration(minutes: float) -> str:
    """Format a duration as '1 h 05 min'."""
    hours, rest = divmod(round(minutes), 60)
    return f"{hours} h {rest:02} min"


def _side(language: str, side: Mapping[str, Any]) -> list[str]:
    shares = [f"{code} {share:.1%}" for code, share in list(side["languages"].items())[:4]]
    lengths = " ".join(map(str, side["lengths"]))
    return [language, str(side["characters"]), str(side["words"] or "-"), lengths, ", ".join(shares) or "not asked"]


def _findings(findings: list[Mapping[str, Any]], pairs: int = 0) -> list[str]:
    """Return a table of findings. pairs: the number that shares refer to; a share of another number names it."""
    if not findings:
        return ["nothing found to be wrong", ""]
    rows = []
    for finding in findings:
        looked_at = finding["looked_at"]
        share = f"{finding['count'] / looked_at:.2%}" + (f" of {looked_at}" if looked_at != pairs else "")
        number, source, target = finding["examples"][0] if finding["examples"] else ("", "", "")
        example = f"{number}: {_shorten(source)} | {_shorten(target)}" if number else ""
        rows.append([finding["what"], str(finding["count"]), share, example])
    return [table(rows, ["found", "pairs", "share", "for example, pair"], "lrrl"), ""]


def _shorten(text: str) -> str:
    # Blanks of all widths and what is invisible by their codes: a reader shall see what is wrong with them.
    visible = "".join(each if each.isprintable() or each in JOINERS else f"<U+{ord(each):04X}>" for each in text)
    return visible if len(visible) <= _SHOWN else f"{visible[: _SHOWN - 1]}…"


def _cleaning_counts(tally: Mapping[str, Any]) -> str:
    dropped = ", ".join(f"{count} {reason}" for reason, count in sorted(tally["dropped"].items()))
    changed = ", ".join(f"{count} {what}" for what, count in sorted(tally["changed"].items()))
    text = count_text(tally["kept"], "pair") + (f"; left out: {dropped}" if dropped else "")
    return text + (f"; changed: {changed}" if changed else "")


def _pace(pace: Mapping[str, Any] | None, unfit: str, chosen: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if pace is None:
        yield f"this text cannot be trained on yet: {unfit}"
        return
    yield (
        f"on this machine: {pace['tokens_per_second']:.0f} target tokens/s, {pace['memory_bytes'] / 1e9:.1f} GB; "
        f"{'at most ' if pace['at_plateau'] else ''}{count_text(pace['updates'], 'update')}"
        f"{epochs_in_words(pace['epochs'])}: {time_in_words(pace, chosen)}"
    )


def time_in_words(pace: Mapping[str, Any], chosen: Sequence[Mapping[str, Any]]) -> str:
    """Return how long a training takes. pace: a `TrainingEstimate`. chosen: as in `health_report`."""
    most = f"{duration(pace['minutes'])} without validations"
    if not pace["at_plateau"]:
        return most
    if 0 < (usual := pace["unlimited_minutes"] * usual_share(chosen)) < pace["minutes"]:
        return f"about {duration(usual)}, as is usual for such a text, and at most {most}"
    return f"at most {most}; it ends when they bring nothing better"


def epochs_in_words(epochs: float | None) -> str:
    """Return a phrase such as ', 16.5 times through the text'; "" for a stream."""
    return "" if epochs is None else f", {epochs:.1f} times through the text"


def _advice(checkup: Mapping[str, Any]) -> Iterator[str]:
    for name, fault in checkup["wrong_sides"].items():
        yield f"{name}: {fault}"
    for leak in leak_findings(checkup):
        if cure := leak_cure(leak, checkup["cleaning"]):
            yield f"{leak['what'].partition(':')[0]}: {cure}"
    yield from map(in_validation_set, checkup["overlaps"])
    yield from (*checkup["unlike"], *checkup["varieties"])
    for diagnosis in checkup["training"]:
        explained = _SWAP_FINDINGS if diagnosis["name"] in checkup["wrong_sides"] else ()
        for finding in diagnosis["findings"]:
            cure = cure_of(finding, checkup["cleaning"])
            if cure and not finding["what"].startswith(explained):
                yield f"{diagnosis['name']}: {cure}"
        if diagnosis["shift"]:
            yield f"{diagnosis['name']}: mend the alignment from pair {diagnosis['shift']['first']} on"
    pairs = sum(diagnosis["pairs"] for diagnosis in checkup["training"])
    pace = checkup["pace"]
    if pace and pairs < _FEW_PAIRS and checkup["parent"]:
        yield (
            f"{count_text(pairs, 'pair')} are few: it is better to fine-tune a model that knows these languages; "
            f"type run.init_from={checkup['parent']}, if there is one of that name"
        )
    if not pace or checkup["chosen"]:
        return
    if pace["epochs"] is not None and not pace["at_plateau"] and (note := passes_note(pace["updates"], pace["epochs"])):
        yield note
    if pairs < 20_000 and pace["parameters"] > 4_000_000:
        yield f"for {count_text(pairs, 'pair')} a smaller model may do better: model=transformer_tiny"
