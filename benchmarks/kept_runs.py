"""Trainings of an experiment, each kept in its folder: the same command again does what is missing."""

import gzip
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tolka.api.train import train
from tolka.config.command_line import train_config
from tolka.model_directory.read import load_model
from tolka.system.atomic import replace_text

SCORES = ("BLEU", "chrF2")


def lines(path: Path) -> list[str]:
    """Return the lines of a file, also of one compressed by gzip."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as stream:
        return [line.rstrip("\n") for line in stream]


def write_pairs(files: Sequence[Path], languages: tuple[str, str], prefix: Path, count: int = 0) -> Path:
    """Write pairs of two files as PREFIX.LANGUAGE, `count` of them drawn by chance, always the same; 0 = all."""
    source, target = map(lines, files)
    if len(source) != len(target):
        raise SystemExit(f"{files[0]} has {len(source)} lines, {files[1]} has {len(target)}")
    numbers = range(len(source))
    chosen = sorted(random.Random(1).sample(numbers, count)) if 0 < count < len(source) else list(numbers)
    prefix.parent.mkdir(parents=True, exist_ok=True)
    for language, side in zip(languages, (source, target), strict=True):
        text = "".join(f"{side[number]}\n" for number in chosen)
        Path(f"{prefix}.{language}").write_text(text, encoding="utf-8")
    return prefix


def trained(folder: Path, settings: Sequence[str]) -> dict[str, Any]:
    """Train in a folder, or resume; return what there is to report, from `result.json` if it is finished.

    For each test set the scores, and those of the model that training started from; signatures; updates and minutes.
    """
    report = folder / "result.json"
    wanted = sorted(settings)
    if report.is_file() and (kept := json.loads(report.read_text(encoding="utf-8")))["settings"] == wanted:
        return dict(kept)
    result = train(train_config([*settings, f"run.dir={folder}"]))
    tests = {}
    for test in result.tests:
        after = {score.name: score for score in test.scores if score.name in SCORES}
        before = {change.name: change for change in test.changes}
        tests[test.name] = {
            name: {
                "score": score.value,
                "signature": score.signature,
                **({"before": before[name].a.value, "p_value": before[name].p_value} if name in before else {}),
            }
            for name, score in after.items()
        }
    found = {
        "settings": wanted,
        "tests": tests,
        "update": result.state.best_update,
        "updates": result.state.update,
        "minutes": result.state.seconds / 60,
        "subwords": load_model(folder).tokenizer.target_size,
    }
    replace_text(report, json.dumps(found, ensure_ascii=False, indent=1))
    return found


def cell(scores: dict[str, Any]) -> str:
    """Return "BLEU 12.3 to 23.4 (p 0.001), chrF2 ...", as far as there is a model before."""
    cells = []
    for name, found in scores.items():
        before = f"{found['before']:.1f} to " if "before" in found else ""
        p_value = f" (p {found['p_value']:.3f})" if "before" in found else ""
        cells.append(f"{name} {before}{found['score']:.1f}{p_value}")
    return ", ".join(cells)


def signatures(results: Sequence[dict[str, Any]]) -> list[str]:
    """Return each signature once, after its score's name."""
    found = [
        (name, score["signature"])
        for each in results
        for test in each["tests"].values()
        for name, score in test.items()
    ]
    return [f"{name} `{signature}`" for name, signature in dict.fromkeys(found)]
