"""mt-eval: the scores of what mt-translate writes, as a table or as JSON."""

import csv
import json
import os
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from tolka.translation.translator import Translator

Command = Callable[..., Any]
ODD_NAMES = ["a b", "a=b", "reference=x", "a(b", "a,b", "a'b", "$a", "a${b}", "한글", "[a]", "null"]
PLAIN = "metrics.bootstrap=0"


def report(outcome: Any) -> list[dict[str, Any]]:
    assert outcome.code == 0
    found: list[dict[str, Any]] = json.loads(outcome.out)["metrics"]
    return found


def test_json_has_a_fixed_shape(command: Command, corpus: Path) -> None:
    files = [f"hypothesis={corpus / 'test.xb'}", f"reference={corpus / 'test.xb'}"]
    scores = report(command("mt-eval", *files, "--json", "metrics.bootstrap=40"))
    assert [score["name"] for score in scores] == ["BLEU", "chrF2", "chrF2++", "TER"]
    for score, best in zip(scores, (100, 100, 100, 0), strict=True):
        assert list(score) == ["name", "score", "signature", "interval"]
        assert score["score"] == pytest.approx(best)
        assert score["interval"] == pytest.approx([best, best])
    assert [score["interval"] for score in report(command("mt-eval", *files, "--json", PLAIN))] == [None] * 4


def test_a_model_scores_as_its_translations_do(command: Command, trained: Path, corpus: Path, tmp_path: Path) -> None:
    reference = f"reference={corpus / 'test.xb'}"
    beam = "search.beam_size=3"
    translated = command("mt-translate", trained, corpus / "test.xa", beam, "decoding.backend=torch").out
    (tmp_path / "translated").write_text(translated)
    out = tmp_path / "out"
    arguments = [trained, f"source={corpus / 'test.xa'}", reference, beam, "--json", PLAIN, "-o", out]
    whole = report(command("mt-eval", *arguments))
    assert out.read_text() == translated
    assert whole == report(command("mt-eval", f"hypothesis={tmp_path / 'translated'}", reference, "--json", PLAIN))


def test_a_file_with_both_sides_is_read_by_the_model_s_languages(
    command: Command, trained: Path, corpus: Path, tmp_path: Path
) -> None:
    """Its lines as text would be markup, whose score says nothing."""
    sides = [(corpus / f"test.{side}").read_text().splitlines() for side in ("xa", "xb")]
    unit = '<tu><tuv xml:lang="xb"><seg>{1}</seg></tuv><tuv xml:lang="xa"><seg>{0}</seg></tuv></tu>'
    units = "".join(unit.format(*pair) for pair in zip(*sides, strict=True))
    tmx = tmp_path / "test.tmx"
    alone = '<tu><tuv xml:lang="xa"><seg>alone</seg></tuv></tu>'
    tmx.write_text(f'<tmx version="1.4"><header srclang="xa"/><body>{units}{alone}</body></tmx>')
    files = [f"source={corpus / 'test.xa'}", f"reference={corpus / 'test.xb'}"]
    found = command("mt-eval", trained, f"source={tmx}", "--json", PLAIN)
    assert report(found) == report(command("mt-eval", trained, *files, "--json", PLAIN))
    assert f"1 of {len(sides[0]) + 1} pairs are left out: 1 " in found.err
    compared = command(
        "mt-eval", "compare", corpus / "test.xb", trained, f"source={tmx}", "--json", "metrics.bootstrap=40"
    )
    assert json.loads(compared.out)["comparisons"][0]["a"]["score"] == pytest.approx(100)
    as_text = command("mt-eval", trained, f"source={tmx}", f"reference={tmx}")
    assert (as_text.code, "has both sides, and no text a line" in as_text.error) == (1, True)
    without = command("mt-eval", f"hypothesis={corpus / 'test.xb'}", f"source={tmx}")
    assert (without.code, "name a model" in without.error) == (2, True)
    table = tmp_path / "test.tsv"
    table.write_text("a\tb\n")
    unnamed = command("mt-eval", trained, f"source={table}")
    assert (unnamed.code, "Call two columns as the model's languages are" in unnamed.error) == (1, True)


@pytest.mark.slow
def test_a_word_that_is_a_whole_line_has_no_perplexity(
    command: Command, tiny: list[str], corpus: Path, tmp_path: Path
) -> None:
    """As in languages without blanks; e ** (nats per word) is more than a float holds, and JSON knows no Infinity."""

    def strict(text: str) -> Any:
        return json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))

    (corpus / "test.xb").write_text("tolomirkapell" * 40 + "\n")
    (corpus / "test.xa").write_text("lantern\n")
    trained = command("mt-train", *tiny, "report.page=true", "trainer.metric=ppl")
    assert "PPL per word" in trained.err
    assert "over 1e304" in trained.err
    run = tmp_path / "run"
    for text in (run / "metrics.jsonl").read_text().splitlines():
        strict(text)
    found = strict((run / "best" / "scores.json").read_text())["test"]["test"]["perplexity"]
    assert found["ppl_word"] is None
    assert found["nll"] > 700
    files = [run, f"source={corpus / 'test.xa'}", f"reference={corpus / 'test.xb'}", PLAIN]
    assert strict(command("mt-eval", *files, "--json").out)["perplexity"] == found
    assert "over 1e304 per word" in command("mt-eval", *files).out


def test_blank_translations_are_noted(
    command: Command, trained: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Translator, "__call__", lambda self, lines, tick=None: [""] * len(lines))
    (corpus / "test.xa").write_text("ferry\n\u00a0\nkettle\n")
    (corpus / "test.xb").write_text("a\n\nb\n")
    outcome = command("mt-eval", trained, f"source={corpus / 'test.xa'}", f"reference={corpus / 'test.xb'}", PLAIN)
    assert "note: 2 of 2 translations are blank (blank sources not counted)" in outcome.err


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs pipes that a shell makes")
def test_a_pipe_with_a_name_is_refused_and_that_of_a_process_is_read(command: Command, tmp_path: Path) -> None:
    """Nobody may ever write to it, and other commands refuse it; sacrebleu waits. <(...) has a process that writes."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "reference").write_text("a b c d\n")
    for others in ([f"hypothesis={tmp_path / 'pipe'}"], ["compare", tmp_path / "reference", tmp_path / "pipe"]):
        error = command("mt-eval", *others, f"reference={tmp_path / 'reference'}").error
        assert error.startswith(f"{tmp_path / 'pipe'}: it is a pipe or a device, and must be a file")
    reader, writer = os.pipe()
    os.write(writer, b"a b c d\n")
    os.close(writer)
    outcome = command("mt-eval", f"hypothesis=/dev/fd/{reader}", f"reference={tmp_path / 'reference'}", PLAIN)
    os.close(reader)
    assert "100.00" in outcome.out


def test_stdout_is_only_the_table(command: Command, corpus: Path) -> None:
    reference = corpus / "test.xb"
    reference.write_text(reference.read_text().replace(" .", "."))
    (corpus / "other").write_text(reference.read_text().replace("mirka", "rive"))
    outcome = command("mt-eval", f"hypothesis={corpus / 'other'}", f"reference={reference}", PLAIN)
    assert outcome.out.startswith("metric")
    assert outcome.err == ""
    noted = command("mt-eval", f"hypothesis={reference}", f"reference={reference}", PLAIN)
    assert "is given twice, for two sides of the comparison" in noted.err


def test_json_lines_of_mt_translate_are_scored(command: Command, trained: Path, corpus: Path, tmp_path: Path) -> None:
    reference = f"reference={corpus / 'test.xb'}"
    scores = []
    for form in ("text", "jsonl"):
        translated = command("mt-translate", trained, corpus / "test.xa", f"output.format={form}")
        (tmp_path / form).write_text(translated.out)
        outcome = command("mt-eval", f"hypothesis={tmp_path / form}", reference, "--json", PLAIN)
        scores.append(report(outcome))
    assert "has JSON lines: the first hypothesis of each is scored" in outcome.err
    assert scores[0] == scores[1]


def test_blank_references_are_scored_alike_wherever_a_model_is_scored(
    command: Command, tiny: list[str], corpus: Path, tmp_path: Path
) -> None:
    """By mt-train's test, by mt-eval with the model and with its translations, which is what sacrebleu computes."""
    path = corpus / "test.xb"
    path.write_text("".join(f"{line}\n" for line in ["", *path.read_text().splitlines()[1:-1], " "]))
    trained = command("mt-train", *tiny)
    assert "test set test: 8 pairs, 8 kept" in trained.err
    note = "they are scored as all others, as sacreBLEU does"
    assert f"blank: 2 of 8 lines of test's references; {note}" in trained.err
    run = tmp_path / "run"
    in_training = json.loads((run / "best" / "scores.json").read_text())["test"]["test"]
    for files in ([run, f"source={corpus / 'test.xa'}"], [f"hypothesis={run / 'samples' / 'test.xb.txt'}"]):
        same_search = [setting for setting in tiny if setting.startswith("search")] if files[0] == run else []
        outcome = command("mt-eval", *files, f"reference={path}", "--json", PLAIN, *same_search)
        assert report(outcome) == in_training["metrics"]
        assert f"2 of 8 lines of {path}; {note}" in outcome.err
        assert ("2 pairs are not in the PPL" in outcome.err) == (files[0] == run)
    assert in_training["perplexity"]["skipped"] == 2


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_of_files(command: Command, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("tolo mirka pell dasun rive\n", encoding="utf-8")
    # In brackets are several references.
    reference = f"./{name}" if name == "[a]" else name
    scores = report(command("mt-eval", f"hypothesis={name}", f"reference={reference}", "--json", PLAIN))
    assert scores[0]["score"] == pytest.approx(100)


def test_different_line_counts(command: Command, trained: Path, corpus: Path) -> None:
    reference = f"reference={corpus / 'train.xb'}"
    for arguments in ([f"hypothesis={corpus / 'test.xb'}"], [trained, f"source={corpus / 'test.xa'}"]):
        outcome = command("mt-eval", *arguments, reference)
        assert outcome.code == 1
        assert "has 8 lines but" in outcome.error
        assert "train.xb has 60" in outcome.error


def test_compare(command: Command, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    good = (corpus / "train.xb").read_text()
    Path("a=1").write_text(good.replace("mirka", "x").replace("rive", "y"))
    Path("b c").write_text(good)
    arguments = ["compare", "a=1", "b c", f"reference={corpus / 'train.xb'}", "metrics.bootstrap=100"]
    outcome = command("mt-eval", *arguments, "--json")
    assert outcome.code == 0
    rows = {row["a"]["name"]: row for row in json.loads(outcome.out)["comparisons"]}
    assert rows["BLEU"]["b"]["score"] == pytest.approx(100)
    assert rows["BLEU"]["difference"] == pytest.approx(100 - rows["BLEU"]["a"]["score"])
    assert rows["BLEU"]["p_value"] < 0.05
    assert "|ar:100|seed:" in rows["BLEU"]["signature"]
    shown = command("mt-eval", *arguments).out
    assert "B - A" in shown
    assert "(paired approximate randomisation)" in shown
    Path("b,c").write_text(good)  # a file, and not two models
    assert command("mt-eval", "compare", "a=1", "b,c", *arguments[3:], "--json").code == 0
    swapped = command("mt-eval", "compare", "b c", "b c", *arguments[3:], "--json")
    assert {row["p_value"] for row in json.loads(swapped.out)["comparisons"]} == {1.0}


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        ([], 2, "reference=FILE is missing"),
        (["hypothesis=h"], 2, "reference=FILE is missing"),
        (["reference=h"], 2, "give either MODEL source=FILE reference=FILE"),
        (["source=h", "reference=h"], 2, "give either MODEL source=FILE reference=FILE"),
        (["a", "b", "reference=h"], 2, "one model at most, not 2: a b"),
        (["hypothesis=h", "reference=h", "-o", "x"], 2, "-o OUT takes a model's translations"),
        (["compare", "h", "reference=h"], 2, "compare takes two systems or more"),
        (["compare", "h", "h", "hypothesis=h", "reference=h"], 2, "compare takes translations without hypothesis="),
        (
            ["compare", "h", "nowhere", "reference=h"],
            1,
            "nowhere: there is no such file; the folder holds: binary, empty, h, two",
        ),
        (
            ["calibrate", "m", "source=h", "reference=h", "--markdown"],
            2,
            "calibrate prints tables or --json",
        ),
        (["compare", "h", ".", "reference=h"], 2, "source=FILE is missing: . is a model, which translates it"),
        (["compare", "h", "h", "reference=h", "-o", "x"], 2, "-o and --lines take one system's translations"),
        (["hypothesis=h", "reference=[h,two]"], 1, "two has 2 lines but h has 1"),
        (["hypothesis=h", "reference=h", "source=two"], 1, "two has 2 lines but h has 1"),
        (["hypothesis=-", "reference=-"], 2, "- is standard input, which can be one of the files alone"),
        (["hypothesis=h", "reference=h", "--lines", "x.txt"], 2, "name a file that ends in .tsv or .jsonl"),
        (["hypothesis=h", "reference=h", "--lines", "h"], 1, "h is read, too, and its text would be lost"),
        (["hypothesis=h", "reference=h", "metrics.command=false {hypothesis}"], 2, "metrics.command ended with 1"),
        (["hypothesis=h", "reference=binary"], 1, "binary:1: a NUL byte"),
        (["compare", "h", "h", "reference=h", "metrics.bootstrap=0"], 2, "metrics.bootstrap (0) must be at least 40"),
        (["hypothesis=h", "reference=empty"], 1, "empty: the file is empty"),
        (
            ["hypothesis=h", "reference=nowhere"],
            1,
            "nowhere: there is no such file; the folder holds: binary, empty, h, two",
        ),
        (["hypothesis=h", "reference=."], 1, "cannot be read"),
        (["nowhere", "source=h", "reference=h"], 1, "nowhere: there is no such model directory"),
        (["hyp=h", "reference=h"], 2, "unknown key 'hyp'. Here it is hypothesis=h"),
        (["hypothesis=h", "reference=h", "metrics.names=[blue]"], 2, "Did you mean 'bleu'"),
    ],
)
def test_bad_usage(
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    complaint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("h").write_text("tolo\n")
    Path("empty").write_text("")
    Path("two").write_text("tolo\nmirka\n")
    Path("binary").write_bytes(b"a\0b\n")
    outcome = command("mt-eval", *arguments)
    assert (outcome.code, outcome.out) == (code, "")
    assert complaint in outcome.error


def test_accents_apart_are_told_of(command: Command, tmp_path: Path) -> None:
    """Hangul in its parts looks the same and scores nothing."""
    lines = ["나는 당신을 사랑합니다.\n", "고양이\n"]
    (tmp_path / "composed").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "apart").write_text("".join(unicodedata.normalize("NFD", line) for line in lines), encoding="utf-8")
    files = [f"hypothesis={tmp_path / 'composed'}", "language=en", PLAIN]
    outcome = command("mt-eval", *files, f"reference={tmp_path / 'apart'}")
    assert (
        "are written differently (accents apart from their letters in 2 of 2 lines): with these made equal, BLEU"
        in (" ".join(outcome.err.split()))
    )
    assert "stand apart" not in command("mt-eval", *files, f"reference={tmp_path / 'composed'}").err
    both = ["compare", tmp_path / "composed", tmp_path / "apart", "language=en", "metrics.bootstrap=40"]
    assert f"{tmp_path / 'apart'} and {tmp_path / 'composed'} are written differently" in (
        " ".join(command("mt-eval", *both, f"reference={tmp_path / 'composed'}").err.split())
    )


def test_a_model_of_composed_text_is_scored_against_the_references_as_given(
    command: Command, tiny: list[str], corpus: Path, tmp_path: Path
) -> None:
    for path in corpus.iterdir():
        accented = path.read_text().translate(str.maketrans("oi", "öï"))
        form: Literal["NFC", "NFD"] = "NFC" if path.stem == "train" else "NFD"
        path.write_text(unicodedata.normalize(form, accented), encoding="utf-8")
    trained = command("mt-train", *tiny, "cleaning.unicode=nfc", "metrics.names=[chrf]")
    for name in ("the validation text", "the test set test"):
        assert f"8 of 8 references of {name} have other characters than the model writes (cleaning.unicode=nfc)" in (
            trained.err
        )

    apart, composed, out = corpus / "test.xb", tmp_path / "composed", tmp_path / "out"
    composed.write_text(unicodedata.normalize("NFC", apart.read_text()), encoding="utf-8")
    same_search = [setting for setting in tiny if setting.startswith("search")]
    model = [tmp_path / "run", f"source={corpus / 'test.xa'}", "-o", out, "--json", PLAIN, *same_search]
    of_apart = command("mt-eval", *model, f"reference={apart}")
    assert "8 of 8 references" in of_apart.err
    of_composed = command("mt-eval", *model, f"reference={composed}")
    assert "other characters" not in of_composed.err
    assert report(of_apart) == report(command("mt-eval", f"hypothesis={out}", f"reference={apart}", "--json", PLAIN))
    assert report(of_apart) != report(of_composed)
    in_training = json.loads((tmp_path / "run" / "best" / "scores.json").read_text())["test"]["test"]["metrics"]
    assert in_training == [score for score in report(of_apart) if score["name"] == "chrF2"]
    # To the model they are the same sentences.
    assert json.loads(of_apart.out)["perplexity"] == json.loads(of_composed.out)["perplexity"]


def test_several_references_and_the_score_of_each_line(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    texts = {"h": ["a b c d", "x\ty"], "one": ["a b c d", "no"], "two": ["d c b a", "x y"], "s": ["1", "2"]}
    for name, lines in texts.items():
        Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    arguments = ["hypothesis=h", "reference=[one,two]", "source=s", "metrics.names=[exact,chrf]", PLAIN]
    first = report(command("mt-eval", *arguments, "--lines", "lines.tsv", "--json"))
    assert [score["score"] for score in first] == [50, pytest.approx(100)]
    assert "nrefs:2|" in first[1]["signature"]
    found = command("mt-eval", *arguments)
    assert found.out.splitlines()[-1].split() == ["missing_number", "50.0%", "50.0%", "2"]
    with Path("lines.tsv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, dialect="excel-tab"))
    keys = ["line", "exact match", "chrF2", "flags", "source", "translation", "reference 1", "reference 2"]
    assert [*rows[0]] == keys
    assert [rows[1][key] for key in keys] == ["2", "0.0", "100.0", "missing_number", "2", "x\ty", "no", "x y"]
    assert command("mt-eval", *arguments, "--lines", "lines.jsonl").code == 0
    read = [json.loads(line) for line in Path("lines.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["references"] for row in read] == [["a b c d", "d c b a"], ["no", "x y"]]
    assert [row["exact match"] for row in read] == [100, 0]


def test_translations_from_standard_input(corpus: Path) -> None:
    code = "from tolka.cli import mt_eval; mt_eval()"
    arguments = ["hypothesis=-", f"reference={corpus / 'test.xb'}", "--json", PLAIN]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        input=(corpus / "test.xb").read_bytes(),
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["metrics"][0]["score"] == pytest.approx(100)


def test_a_command_reads_the_files_and_gives_a_score(command: Command, corpus: Path) -> None:
    """Such as COMET's; the score of a line is how many characters its source has."""
    files = [f"hypothesis={corpus / 'test.xb'}", f"reference={corpus / 'test.xb'}", f"source={corpus / 'test.xa'}"]
    wanted = "metrics.command=awk '{print length($0)}' {source} # {hypothesis} {reference}"
    found = report(command("mt-eval", *files, wanted, "metrics.names=[]", "--json", "metrics.bootstrap=40"))
    lengths = [len(line) for line in (corpus / "test.xa").read_text().splitlines()]
    assert [score["name"] for score in found] == ["command"]
    assert found[0]["score"] == pytest.approx(sum(lengths) / len(lengths))
    assert "note: " in command("mt-eval", *files[:2], f"source={corpus / 'test.xb'}", PLAIN).err


def test_models_and_texts_are_compared(
    command: Command, trained: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = [f"source={corpus / 'test.xa'}", f"reference={corpus / 'test.xb'}", "metrics.bootstrap=50"]
    translated = command("mt-translate", trained, corpus / "test.xa", "decoding.backend=torch")
    Path("translated").write_text(translated.out)
    systems = [trained, "translated", corpus / "test.xb"]
    found = json.loads(command("mt-eval", "compare", *systems, *files, "--json").out)
    assert found["systems"] == [*map(str, systems)]
    bleu = [row for row in found["comparisons"] if row["name"] == "BLEU"]
    assert [row["systems"] for row in bleu] == [
        [found["systems"][place] for place in pair] for pair in ((0, 1), (0, 2), (1, 2))
    ]
    assert [row["difference"] == 0 for row in bleu] == [True, False, False]
    assert [row["p_adjusted"] >= row["p_value"] for row in bleu] == [True] * 3
    assert found["contrasts"][0] == {**found["contrasts"][0], "better": 0, "worse": 0, "gained": []}
    assert found["contrasts"][1]["lines"] == 8
    shown = command("mt-eval", "compare", *systems, *files, "--markdown").out
    assert "| BLEU | C - A |" in shown
    assert "C is better in line" in shown
