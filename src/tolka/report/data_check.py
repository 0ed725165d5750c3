"""The findings about a corpus as text for a terminal, with an example of each problem, and as an HTML page."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tolka.auto.rules import choices_table, usual_share
from tolka.metrics.tables import table
from tolka.report.render import render
from tolka.system.atomic import replace_text
from tolka.system.number_format import count_text
from tolka.system.package_data import table_beside
from tolka.system.surrogates import JOINERS
from tolka.text.cleaning.cleaner import Tally
from tolka.training.run_folder import CHECK_PAGE

_FEW_PAIRS = 100_000  # of which a model that was trained on millions knows more
_SHOWN, _SHOWN_ON_PAGE = 60, 240  # characters of an example
_GROUPS = ("corpus", "cleaning", "tokenizer", "batching")  # of settings on which the findings depend
# Of a text whose sides or languages are swapped, these are consequences: no advice of their own.
_SWAP_FINDINGS = ("source copied", "another script", "source surely in another", "target surely in another")
_LEAKED_PAIR = "cleaning.leaks=pair (as cleaning=standard does), or its scores will be too good"


def health_report(checkup: Mapping[str, Any], languages: tuple[str, str]) -> str:
    """Return the report on a corpus for a terminal.

    checkup: of `run.data_check.check_with_page`.
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
        lines += [f"with these settings: {Tally.of(checkup['kept']).summary()}"]
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


def advice(checkup: Mapping[str, Any]) -> list[str]:
    """Return the advice, each piece of it once. checkup: of `run.data_check.check_with_page`."""
    return list(dict.fromkeys(_advice(checkup)))


def cure_of(finding: Mapping[str, Any], cleaning: Mapping[str, Any]) -> str:
    """Return the advice about a problem; "" if there is none, if it is rare, or if the settings do it already.

    cleaning: the settings of that group.
    """
    share = finding["count"] / finding["looked_at"]
    cures = [cure for start, cure in table_beside(__file__).items() if finding["what"].startswith(start)]
    # Whatever the settings are: cleaning would silently leave next to nothing.
    if share > 0.5 and (advice := next((cure["most"] for cure in cures if "most" in cure), "")):
        return str(advice)
    cure = next((cure for cure in cures if share > cure.get("above", 1)), {"advice": ""})
    is_done = "key" in cure and cleaning[cure["key"]] not in ("keep", False, 0)
    return "" if is_done else str(cure["advice"]).replace("CONVERSION", finding.get("conversion", ""))


def leak_findings(checkup: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the leaks of the validation text, then of the test sets. checkup: of `run.data_check.check_with_page`."""
    return [finding for leaks in checkup["leaks"].values() for finding in leaks["findings"]]


def leak_cure(finding: Mapping[str, Any], cleaning: Mapping[str, Any]) -> str:
    """Return the advice about held-out text in the training text."""
    if finding["what"].partition(": ")[2].startswith("source"):
        return "" if cleaning["leaks"] == "source" else "cleaning.leaks=source, or its scores may be too good"
    if finding["count"] == finding["looked_at"]:
        return "all of it stands in the training text: is it the same file?"
    # Dropping every pair with a held-out source drops the whole pairs among them, too.
    return "" if cleaning["leaks"] in ("pair", "source") else _LEAKED_PAIR


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
        example = f"{number}: {_visible(source)} | {_visible(target)}" if number else ""
        rows.append([finding["what"], str(finding["count"]), share, example])
    return [table(rows, ["found", "pairs", "share", "for example, pair"], "lrrl"), ""]


def _visible(text: str, most: int = _SHOWN) -> str:
    """Return at most so many characters of an example."""
    # Blanks of all widths and what is invisible by their codes: a reader shall see what is wrong with them.
    visible = "".join(each if each.isprintable() or each in JOINERS else f"<U+{ord(each):04X}>" for each in text)
    return visible if len(visible) <= most else f"{visible[: most - 1]}…"


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
    if pairs < 20_000 and pace["parameters"] > 4_000_000:
        yield f"for {count_text(pairs, 'pair')} a smaller model may do better: model=transformer_tiny"


def write_check_page(folder: Path, settings: Mapping[str, Any], checkup: Mapping[str, Any]) -> Path:
    """Write check.html into a folder, which is created if need be; return its path.

    settings: `TrainConfig.as_dict`; checkup: as in `health_report`.
    """
    codes, cleaning = [settings["corpus"][side] for side in ("source", "target")], checkup["cleaning"]
    values = {
        **checkup,
        "title": f"{settings['run']['name'] or folder.name}: the text, checked",
        "languages": codes,
        "facts": _facts(checkup, codes),
        "to_do": advice(checkup),
        "parts": [
            {
                **part,
                "codes": part.get("direction", codes),
                "shift": list(shift_words(part["shift"])),
                "findings": [{**finding, "cure": cure_of(finding, cleaning)} for finding in part["findings"]],
            }
            for part in checkup["training"]
        ],
        "leaks": [{**finding, "cure": leak_cure(finding, cleaning)} for finding in leak_findings(checkup)],
        "training_time": time_in_words(checkup["pace"], checkup["chosen"]) if checkup["pace"] else "",
        "epochs_in_words": epochs_in_words,
        "percent": lambda share: "under 0.01%" if 0 < share < 0.00005 else f"{share:.2%}",  # a rare fault is not 0.00 %
        "visible": partial(_visible, most=_SHOWN_ON_PAGE),
        "settings": yaml.safe_dump({key: settings[key] for key in _GROUPS}, allow_unicode=True, sort_keys=False),
    }
    folder.mkdir(parents=True, exist_ok=True)
    replace_text(folder / CHECK_PAGE, render("check.html", **values))
    return folder / CHECK_PAGE


def _facts(checkup: Mapping[str, Any], codes: Sequence[str]) -> dict[str, str]:
    """Return the summary: label -> value."""
    training = checkup["training"]
    kinds = len({finding["what"] for part in training for finding in part["findings"]})
    leaks = leak_findings(checkup)
    facts = {
        "languages": " to ".join(codes),
        "training text": f"{sum(part['pairs'] for part in training):,} pairs",
        "found": f"{count_text(kinds, 'kind')} of fault" if kinds else "nothing wrong",
        "held-out text": f"leaks: {count_text(len(leaks), 'finding')}" if leaks else "does not leak",
    }
    if checkup["pace"]:
        facts["training here"] = time_in_words(checkup["pace"], checkup["chosen"])
    return facts
