"""benchmarks/plant_faults.py: all faults in the embedded corpus at once, found and counted by the doctor."""

from pathlib import Path

import pytest

from plant_faults import lines_of, plant
from tolka.system.package_data import sample_dir
from tolka.text.check.diagnosis import HeldOut, diagnose
from tolka.text.corpora.files import FilesConfig
from tolka.text.direction import Direction
from tolka.text.pairs import Pair

PAIRS = 4000


@pytest.mark.slow
def test_all_at_once(tmp_path: Path) -> None:
    pytest.importorskip("py3langid")
    sources, targets = lines_of(sample_dir() / "train", ["en", "ko"])
    test = lines_of(sample_dir() / "test_fresh", ["en", "ko"])
    planted = plant(sources[:PAIRS], targets[:PAIRS], test)
    for language, lines in (("en", planted.sources), ("ko", planted.targets)):
        (tmp_path / f"train.{language}").write_bytes(b"".join(line + b"\n" for line in lines))
    corpus = FilesConfig(source="en", target="ko", root=str(tmp_path), train=["train"], valid=["train"]).open()
    held_out = HeldOut({"test": [Pair(*sides) for sides in zip(*test, strict=True)]})
    (text,) = corpus.train
    found = diagnose(text, Direction("en", "ko"), held_out)
    counts = {each.what: each.count for each in (*found.findings, *held_out.leaks(["test"]).findings)}
    foreign = "target surely in another language"
    assert planted.counts[foreign] == 120
    undecoded = planted.counts["target not UTF-8, others are"]  # what Latin-1 leaves of Korean is not Korean either
    assert {what: counts[what] for what in planted.counts} == {**planted.counts, foreign: 120 + undecoded}
    assert found.shift is not None
    assert found.shift.lines == -1
    assert abs(found.shift.first - planted.shifted) <= 5
