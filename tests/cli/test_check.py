"""mt-train --check: the faults of a text, what to do, and what training would take."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


def append(corpus: Path, split: str, source: str, target: str) -> None:
    for language, line in (("xa", source), ("xb", target)):
        with (corpus / f"{split}.{language}").open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")


def test_good_text(command: Command, tiny: list[str], tmp_path: Path) -> None:
    outcome = command("mt-train", "--check", *tiny)
    assert outcome.code == 0
    assert "train: 60 pairs" in outcome.err
    assert "with these settings: 60 pairs, 60 kept" in outcome.err
    assert "on this machine: " in outcome.err
    assert "5 updates" in outcome.err
    assert outcome.out == ""
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["check.html"]
    assert outcome.err.splitlines()[-1].endswith(f"on one page: {tmp_path / 'run' / 'check.html'}")


def test_faults_leaks_and_advice(command: Command, tiny: list[str], corpus: Path, tmp_path: Path) -> None:
    for _ in range(5):
        append(corpus, "train", "<b>ferry</b> lantern .", "<b>fjon</b> tolo .")
    append(corpus, "test", "FERRY lantern!", "fjon tolo")
    append(corpus, "train", "ferry lantern .", "fjon tolo .")
    outcome = command("mt-train", "--check", *tiny)
    assert outcome.code == 0
    for expected in (
        "markup",
        "61: <b>ferry</b> lantern .",
        "test: whole pair in the training text",
        "cleaning.markup=strip",
    ):
        assert expected in outcome.err, expected
    assert "test: cleaning.leaks=pair (as cleaning=standard does), or its scores will be too good" in outcome.err
    cured = command("mt-train", "--check", *tiny, "cleaning.markup=strip", "cleaning.leaks=source")
    assert not [line for line in cured.err.splitlines() if "cleaning.markup" in line or "cleaning.leaks" in line]
    assert re.search(r"left out: .*[0-9]+ held-out source", cured.err)
    outcome = command("mt-train", "--check", "--json", *tiny)
    assert str(tmp_path / "run" / "check.html") in outcome.err
    found = json.loads(outcome.out)
    counts = {finding["what"]: finding["count"] for finding in found["training"][0]["findings"]}
    assert counts["markup"] == 5
    assert counts["a pair that came before"] >= 4
    leaks = found["leaks"]["test"]
    assert leaks["pairs"] == sum(each["count"] for each in leaks["findings"] if "whole pair" in each["what"]) >= 1
    assert leaks["sources"] >= leaks["pairs"]
    assert found["leaks"]["valid"].keys() == leaks.keys()
    for side in ("source", "target"):
        assert sum(found["training"][0][side]["histogram"]["counts"]) == found["training"][0]["pairs"] == 66
        assert sum(found["pieces"][side]["histogram"]["counts"]) == 66
    assert found["pace"]["updates"] == 5
    assert found["pace"]["tokens_per_second"] > 0


def test_text_that_cannot_be_trained_on(command: Command, tiny: list[str], corpus: Path, tmp_path: Path) -> None:
    with (corpus / "train.xb").open("ab") as stream:
        stream.write("Größe\n".encode("latin-1"))
    outcome = command("mt-train", "--check", *tiny)
    assert outcome.code == 0
    assert "Traceback" not in outcome.err
    assert "this text cannot be trained on yet: " in outcome.err
    assert "lines that the target has more than the other side" in outcome.err
    assert "find the line that one side lacks" in outcome.err
    assert "This text cannot be trained on yet:" in (tmp_path / "run" / "check.html").read_text("utf-8")


def test_a_text_that_is_checked_can_then_be_trained_on(command: Command, tiny: list[str], tmp_path: Path) -> None:
    assert command("mt-train", "--check", *tiny).code == 0
    assert command("mt-train", *tiny).code == 0
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "check.html").touch()
    (tmp_path / "other" / "mine.txt").touch()
    assert "is not empty" in command("mt-train", *tiny, f"run.dir={tmp_path / 'other'}").error


def test_what_does_not_go_together(command: Command, tiny: list[str]) -> None:
    assert "--json goes with --check" in command("mt-train", "--json", *tiny).error
    assert "-m trains several models" in command("mt-train", "-m", "--check", *tiny, "run.seed=1,2").error
    assert command("mt-train", "--check", "corpus=files", "corpus.train=nowhere", "corpus.valid=nowhere").code == 1


def test_what_is_kept_is_of_the_whole_text(command: Command, tiny: list[str], corpus: Path, tmp_path: Path) -> None:
    """Pairs that two texts have in common are kept once, and those with too many pieces are counted."""
    twice = [f"corpus.train=[{corpus / 'train'},{corpus / 'again'}]", "cleaning.duplicates=exact"]
    for language in ("xa", "xb"):
        lines = (corpus / f"train.{language}").read_text("utf-8")
        (corpus / f"again.{language}").write_text(lines + "lantern " * 90 + "\n", encoding="utf-8")
    outcome = command("mt-train", "--check", "--json", *tiny, *twice)
    kept = json.loads(outcome.out)["kept"]
    assert kept["kept"] == 60 - (kept["dropped"]["duplicate"] - 60)
    assert kept["dropped"]["over 64 tokens"] == 1
    shown = command("mt-train", "--check", *tiny, *twice).err
    assert shown.count("with these settings: ") == 1
    assert f"with these settings: 121 pairs, {kept['kept']} kept, 62 left out: " in shown


def test_advice_on_leaks_is_for_what_is_left_of_them(command: Command, tiny: list[str], corpus: Path) -> None:
    """A whole pair goes by itself; a source with another translation stays; all of it is another matter."""
    for language in ("xa", "xb"):
        held = (corpus / f"test.{language}").read_text("utf-8").splitlines()
        with (corpus / f"train.{language}").open("a", encoding="utf-8") as stream:
            stream.write(f"{held[0]}\n")
    pair = [*tiny, "cleaning.leaks=pair"]
    outcome = command("mt-train", "--check", *pair)
    assert "test: whole pair in the training text" in outcome.err
    assert "cleaning.leaks" not in outcome.err.partition("to do:")[2]
    with (corpus / "train.xa").open("a", encoding="utf-8") as stream:
        stream.write(f"{(corpus / 'test.xa').read_text('utf-8').splitlines()[1]}\n")
    with (corpus / "train.xb").open("a", encoding="utf-8") as stream:
        stream.write("something else\n")
    assert "test: cleaning.leaks=source, or its scores may be too good" in command("mt-train", "--check", *pair).err
    same = command("mt-train", "--check", *pair, f"corpus.valid={corpus / 'train'}")
    assert "train: all of it stands in the training text: is it the same file?" in same.err


def test_some_lines_in_another_encoding_are_to_be_converted_alone(
    command: Command, tiny: list[str], corpus: Path
) -> None:
    lines = (corpus / "train.xb").read_bytes().splitlines(keepends=True)
    lines[3], lines[9] = "Größe\n".encode(), "Größe\n".encode("latin-1")
    (corpus / "train.xb").write_bytes(b"".join(lines))
    outcome = command("mt-train", "--check", *tiny)
    assert "target not UTF-8, others are" in outcome.err
    assert "in the target, convert those lines alone: perl" in outcome.err
    assert "iconv" not in outcome.err
    assert "train.xb:10: not UTF-8 (byte 0xf6 at column 3); lines before it are: mt-train --check" in outcome.err
    advice = next(line for line in outcome.err.splitlines() if "perl -MEncode" in line)
    done = subprocess.run(f"perl {advice.partition('perl ')[2]}", shell=True, capture_output=True, check=False)
    if done.returncode != 127:  # where there is Perl
        lines[9] = lines[3]
        assert (corpus / "train-utf8.xb").read_bytes() == b"".join(lines)


def test_a_setting_that_is_wrong_is_no_fault_of_the_text(command: Command, tiny: list[str], tmp_path: Path) -> None:
    outcome = command("mt-train", "--check", *tiny, f"tokenizer.model={tmp_path / 'typo.model'}")
    assert outcome.code == 1
    assert "typo.model" in outcome.error


@pytest.mark.slow
def test_most_of_the_text_left_out(command: Command, tiny: list[str], corpus: Path, tmp_path: Path) -> None:
    """A training stops and names the step; a check has the counts; a run that has begun goes on."""
    lost = [*tiny, "batching.max_length=15"]
    outcome = command("mt-train", *lost)
    assert outcome.code == 1
    assert re.search(
        r"of 60 training pairs are left out, .* as 'over 15 tokens', by batching.max_length=15", outcome.error
    )
    assert "rejected.tsv" in outcome.error
    assert command("mt-train", "--prepare", *lost).error == outcome.error
    found = json.loads(command("mt-train", "--check", "--json", *lost).out)
    assert f"error: {found['unfit']}" == outcome.err.splitlines()[-1]
    assert 0 < found["kept"]["kept"] < 30
    assert found["kept"]["kept"] + found["kept"]["dropped"]["over 15 tokens"] == 60
    assert command("mt-train", *lost, "cleaning.allow_loss=true").code == 0
    assert command("mt-train", *lost, "trainer.updates=6").code == 0  # resumes, and may


def test_a_test_set_that_has_the_validation_set(command: Command, tiny: list[str], corpus: Path) -> None:
    shared = "the test set test has 1 of its 9 pairs in the validation set"
    source, target = ((corpus / f"valid.{language}").read_text("utf-8").splitlines()[0] for language in ("xa", "xb"))
    append(corpus, "test", source.upper(), target)
    assert f"note: {shared}" in command("mt-train", *tiny).err
    outcome = command("mt-train", "--check", "--json", *tiny)
    (overlap,) = json.loads(outcome.out)["overlaps"]
    assert (overlap["what"], overlap["count"]) == ("test: whole pair in the validation set", 1)
    same = command("mt-train", "--check", *tiny, f"corpus.test={corpus / 'valid'}")
    assert "the test set valid is the validation set, by which the best model is chosen" in same.err


@pytest.mark.slow
def test_sides_that_are_swapped(command: Command, tiny: list[str], tmp_path: Path) -> None:
    """Reported as that by the check, and by the training, which stops for it."""
    lines = [f"고양이 {n} 마리\tThere are {n} cats" for n in range(60)]
    (tmp_path / "cats.tsv").write_text("\n".join(lines), encoding="utf-8")
    text = [f"corpus.{key}={tmp_path / 'cats.tsv'}" for key in ("train", "valid", "test")]
    swapped = [*tiny, *text, "corpus.columns=[1,2]", "corpus.source=en", "corpus.target=ko", "cleaning.leaks=keep"]
    advice = "the sides are swapped: the source is ko in 60 of 60 pairs looked at, and the target en in 60; "
    advice += "exchange corpus.source and corpus.target, or what names the sides: "
    for cleaning in ([], ["cleaning.script=true"]):
        refused = command("mt-train", *swapped, *cleaning, f"run.dir={tmp_path / 'other'}")
        assert (refused.code, advice in refused.error, "cleaning.script" in refused.error) == (1, True, False)
        assert refused.error.endswith("(cleaning.allow_loss=true trains all the same)")
    assert f"note: cats: {advice}" in command("mt-train", *swapped, "cleaning.allow_loss=true").err
    outcome = command("mt-train", "--check", *swapped)
    assert f"cats: {advice}" in outcome.err
    assert "cleaning.script" not in outcome.err
    right = [*swapped[:-3], "corpus.source=ko", "corpus.target=en", f"run.dir={tmp_path / 'right'}"]
    assert "sides are swapped" not in command("mt-train", "--check", *right).err
    for side, language in enumerate(("en", "ko")):
        (tmp_path / f"cats.{language}").write_text("".join(f"{line.split(chr(9))[side]}\n" for line in lines), "utf-8")
    prefix = [f"corpus.{key}={tmp_path / 'cats'}" for key in ("train", "valid", "test")]
    outcome = command("mt-train", *tiny, *prefix, "corpus.source=en", "corpus.target=ko", f"run.dir={tmp_path / 'p'}")
    assert "exchange corpus.source and corpus.target, or what names the sides: files" in outcome.error
    typed = [f"corpus.{key}=[[{tmp_path / 'cats.ko'},{tmp_path / 'cats.en'}]]" for key in ("train", "valid", "test")]
    mended = command("mt-train", "--check", *tiny, *typed, "corpus.source=en", "corpus.target=ko")
    assert "sides are swapped" not in mended.err


def test_a_line_that_is_not_utf8_beside_an_empty_file(command: Command, tiny: list[str], corpus: Path) -> None:
    (corpus / "train.xa").write_bytes("café\n".encode("latin-1"))
    (corpus / "train.xb").write_bytes(b"")
    outcome = command("mt-train", "--check", *tiny)
    assert outcome.code == 0
    assert "source not UTF-8" in outcome.err


def test_a_check_says_nothing_of_a_schedule(command: Command, tiny: list[str]) -> None:
    shorter = [each for each in tiny if not each.startswith("scheduler.warmup")]
    assert "note: shortened" not in command("mt-train", "--check", *shorter).err
    assert "note: shortened" in command("mt-train", "--print-config", *shorter).err


def test_one_of_anything_has_no_plural(command: Command, tiny: list[str], corpus: Path, tmp_path: Path) -> None:
    for name in ("one.xa", "one.xb"):
        (tmp_path / name).write_text("ferry\n")
    err = command("mt-train", "--check", *tiny, f"corpus.train={tmp_path / 'one'}", "scheduler.warmup=0").err
    assert "one: 1 pair\n" in err
    assert not re.search(r"(?<![\d.,])1 (pair|line|update|row|column|text|number)s\b", err)


def test_a_text_that_nothing_can_be_chosen_for_is_examined_all_the_same(
    command: Command, corpus: Path, tmp_path: Path
) -> None:
    for side, lines in (("xa", 30), ("xb", 40)):
        (tmp_path / f"uneven.{side}").write_text("a b c\n" * lines)
    texts = [f"corpus.train={tmp_path}/uneven", f"corpus.valid={corpus}/valid", "corpus.source=xa", "corpus.target=xb"]
    outcome = command("mt-train", "--check", *texts, f"run.dir={tmp_path}/run")
    assert outcome.code == 0
    assert "lines that the target has more" in outcome.err
    assert (tmp_path / "run" / "check.html").exists()


def test_one_pair_teaches_nothing(command: Command, tiny: list[str], tmp_path: Path) -> None:
    for side in ("xa", "xb"):
        (tmp_path / f"one.{side}").write_text("a b c\n")
    outcome = command("mt-train", *tiny, f"corpus.train={tmp_path}/one")
    assert outcome.code == 1
    assert "the training text has one pair, from which nothing can be learnt" in outcome.error
    assert not (tmp_path / "run" / "best").exists()
