"""mt-translate MODEL --score SOURCE TARGET: log-probabilities of given translations."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tolka.data.batch import BOS, EOS
from tolka.model_directory.read import load_model
from tolka.translation.opening import open_model

Command = Callable[..., Any]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    sources = ["ferry lantern .", "", "kettle", "", "velvet walnut"]
    targets = ["fjon tolo .", "", "", "mirka", "selk  wira "]
    for name, lines in (("a", sources), ("b", targets)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path / "a", tmp_path / "b"


def by_steps(folder: Path, source: str, target: str) -> list[float]:
    """Log-probabilities of the target's tokens, computed one step at a time as a search does, in float64."""
    saved = load_model(folder)
    model, tokenizer = saved.model.double().eval(), saved.tokenizer
    (ids,), (wanted,) = tokenizer.encode_source([source.strip()]), tokenizer.encode_target([target.strip()])
    row = torch.tensor([[*ids, EOS]])
    found = []
    with torch.inference_mode():
        state, token = model.start(row, torch.tensor([row.size(1)])), BOS
        for following in [*wanted, EOS]:
            features, state = model.step(torch.tensor([[token]]), state)
            found.append(float(model.logits(features)[0, 0].log_softmax(-1)[following]))
            token = following
    return found


def notes(messages: str) -> list[str]:
    """The messages, except what to check, and that the model is useless."""
    others = ("to check: ", "by the verdict of its training")
    return [line for line in messages.splitlines() if not any(each in line for each in others)]


def test_a_line_s_score_is_the_sum_over_its_tokens(command: Command, trained: Path, files: tuple[Path, Path]) -> None:
    outcome = command("mt-translate", trained, "--score", *files)
    assert (outcome.code, notes(outcome.err)) == (0, [])
    rows = [line.split("\t") for line in outcome.out.split("\n")[:-1]]
    targets = files[1].read_text().split("\n")[:-1]
    assert [target for _, target in rows] == targets  # exactly as they are in the file
    for source, target, (score, _) in zip(files[0].read_text().split("\n"), targets, rows, strict=False):
        expected = sum(by_steps(trained, source, target)) if source or target else 0.0
        assert float(score) == pytest.approx(expected, abs=1e-4)


def test_files_of_any_name_are_read_line_by_line(command: Command, trained: Path, files: tuple[Path, Path]) -> None:
    expected = command("mt-translate", trained, "--score", *files).out
    pages = [path.rename(path.with_suffix(".html")) for path in files]
    assert command("mt-translate", trained, "--score", *pages).out == expected


def test_other_formats_have_the_same_scores(command: Command, trained: Path, files: tuple[Path, Path]) -> None:
    scores = [line.split("\t")[0] for line in command("mt-translate", trained, "--score", *files).out.splitlines()]
    nbest = command("mt-translate", trained, "--score", *files, "output.format=nbest").out.splitlines()
    assert [line.rsplit(" ||| ", 1)[1] for line in nbest] == scores
    objects = [
        json.loads(line)
        for line in command("mt-translate", trained, "--score", *files, "output.format=jsonl").out.splitlines()
    ]
    for each, score, source in zip(objects, scores, files[0].read_text().split("\n"), strict=False):
        (hypothesis,) = each["hypotheses"]
        assert each["source"] == source
        assert hypothesis["score"] == float(score)
        assert sum(hypothesis["token_scores"]) == pytest.approx(float(score), rel=1e-5)
        assert len(hypothesis["tokens"]) == len(hypothesis["token_scores"])
    assert objects[3]["hypotheses"][0]["alignment"] == []  # of a blank source there is no word to align with


def test_windows_compression_and_an_output_file_change_nothing(
    command: Command, trained: Path, files: tuple[Path, Path], tmp_path: Path
) -> None:
    expected = command("mt-translate", trained, "--score", *files).out.split()
    packed = tmp_path / "b.gz"
    packed.write_bytes(gzip.compress(files[1].read_bytes()))
    out = tmp_path / "out"
    given = [trained, files[0], "decoding.window=2", packed, "--score", "-o", out]
    assert command("mt-translate", *given).code == 0
    for one, other in zip(out.read_text().split(), expected, strict=True):
        assert one == other or float(one) == pytest.approx(float(other), abs=1e-4)


def test_a_long_line_is_scored_whole(command: Command, trained: Path, tmp_path: Path) -> None:
    text = " ".join(["ferry"] * 300)
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"{text}\nferry\n")
    outcome = command("mt-translate", trained, "--score", tmp_path / "a", tmp_path / "b")
    assert outcome.code == 0
    assert notes(outcome.err) == [
        "note: 1 of 2 lines were longer than the model was trained for: scored whole all the same"
    ]
    translator = open_model(trained)
    (pair,) = translator.score([(text, text)])
    assert len(pair.translation.segments) == 1
    assert float(outcome.out.split("\t")[0]) == pytest.approx(pair.translation.score, abs=1e-2)


def test_given_translations_are_checked_for_terms_and_banned_phrases(
    command: Command, trained: Path, tmp_path: Path
) -> None:
    for name, text in {"a": "ferry .\nkettle .\n", "b": "ferry .\nbad words\n", "g": "kettle\tpebble\n"}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "banned").write_text("bad\n")
    terms = [f"search.glossary={tmp_path}/g", f"search.banned={tmp_path}/banned"]
    given = ["--score", tmp_path / "a", tmp_path / "b", *terms, "output.format=jsonl"]
    outcome = command("mt-translate", trained, *given)
    flags = [json.loads(line)["flags"] for line in outcome.out.splitlines()]
    assert [[flag for flag in each if flag in ("missing_term", "banned_phrase")] for each in flags] == [
        [],
        ["missing_term", "banned_phrase"],
    ]


def test_words_of_a_blank_source_are_aligned_to_none(command: Command, trained: Path, tmp_path: Path) -> None:
    for name, text in {"a": "\nferry .\n", "b": "ferry .\nferry .\n"}.items():
        (tmp_path / name).write_text(text)
    outcome = command("mt-translate", trained, "--score", tmp_path / "a", tmp_path / "b", "alignments=true")
    first, second = (line.split("\t")[2] for line in outcome.out.splitlines())
    assert first == ""
    assert second != ""


@pytest.mark.parametrize(
    ("names", "settings", "code", "complaint"),
    [
        (["a"], [], 2, "--score takes two files, SOURCE and TARGET, line by line, and here are 1"),
        (["a", "b", "b"], [], 2, "--score takes two files"),
        (["a", "short"], [], 1, "a has 5 lines but"),
        (["a", "none"], [], 1, "none: there is no such file"),
        (["a", "b"], ["input.column=1", "input.format=tsv"], 2, "--score reads two files of lines: leave out"),
    ],
)
def test_what_cannot_be_scored(
    command: Command,
    trained: Path,
    files: tuple[Path, Path],
    names: list[str],
    settings: list[str],
    code: int,
    complaint: str,
) -> None:
    folder = files[0].parent
    (folder / "short").write_text("x\n")
    outcome = command("mt-translate", trained, "--score", *(folder / name for name in names), *settings)
    assert (outcome.code, outcome.out) == (code, "")
    assert complaint in outcome.error


def test_sentences_are_scored_one_by_one_where_both_sides_have_as_many(
    command: Command, trained: Path, tmp_path: Path
) -> None:
    """As they are translated: else a translation would not have its own probability."""
    (tmp_path / "a").write_text("Ferry kettle. Velvet walnut.\nFerry. Kettle.\nFerry.\n")
    (tmp_path / "b").write_text("Fjon tolo. Selk wira.\nFjon tolo\nFjon. Tolo.\n")
    outcome = command("mt-translate", trained, "--score", tmp_path / "a", tmp_path / "b", "decoding.split=sentences")
    scores = [float(line.split("\t")[0]) for line in outcome.out.splitlines()]
    apart = [("Ferry kettle.", "Fjon tolo."), ("Velvet walnut.", "Selk wira.")]
    expected = [
        sum(sum(by_steps(trained, *pair)) for pair in apart),
        sum(by_steps(trained, "Ferry. Kettle.", "Fjon tolo")),
        sum(by_steps(trained, "Ferry.", "Fjon. Tolo.")),
    ]
    assert scores == pytest.approx(expected, rel=1e-5)
    assert notes(outcome.err) == [
        "note: 1 of 3 lines have several sentences, scored one by one (decoding.split)",
        "note: 1 of 3 lines have several sentences, and their translation has more or fewer: scored whole, which the "
        "model was not trained for",
    ]
