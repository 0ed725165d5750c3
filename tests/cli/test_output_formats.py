"""mt-translate output.format=nbest and jsonl, beside text."""

import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tolka.cli import translate
from tolka.jobs.notes import UnusualLines
from tolka.model_directory.verify import read_json
from tolka.model_directory.write import rescore
from tolka.text.direction import Direction
from tolka.translation.request import Request
from tolka.translation.results import Translation
from tolka.translation.translator import Translator

Command = Callable[..., Any]
LINES = "ferry lantern .\n\nvélvet 한국\u2028 ||| x\n".encode()
QUICK = ["search=greedy", "search.max_length_factor=0", "search.max_length_extra=4"]


def split_nbest(line: str) -> tuple[int, str, dict[str, float], float]:
    """Number, text, features and score; the text may have ||| in it."""
    number, rest = line.split(" ||| ", 1)
    text, features, score = rest.rsplit(" ||| ", 2)
    words = features.split(" ")
    return (
        int(number),
        text,
        {name.rstrip("="): float(value) for name, value in zip(words[::2], words[1::2], strict=True)},
        float(score),
    )


def test_nbest_has_moses_four_fields(command: Command, trained: Path) -> None:
    plain = command("mt-translate", trained, *QUICK, stdin=LINES).out.split("\n")[:-1]
    outcome = command("mt-translate", trained, *QUICK, "output.format=nbest", stdin=LINES)
    rows = [split_nbest(line) for line in outcome.out.split("\n")[:-1]]
    assert [(number, text) for number, text, _, _ in rows] == list(enumerate(plain))
    assert rows[1] == (1, "", {"log_probability": 0.0, "tokens": 0.0}, 0.0)
    for _, text, features, score in rows:
        assert score == features["log_probability"]  # greedy search ranks by it
        assert (features["log_probability"] < 0) == (text != "")


def test_nbest_has_all_candidates_of_a_line(command: Command, trained: Path) -> None:
    options = ["search.beam_size=3", "search.n_best=3", *QUICK[1:]]
    text = command("mt-translate", trained, *options, stdin=LINES)
    assert "note: of 3 translations of each line (search.n_best) the best one is written; output.format=" in text.err
    outcome = command("mt-translate", trained, *options, "output.format=nbest", stdin=LINES)
    assert "is written" not in outcome.err
    rows = [split_nbest(line) for line in outcome.out.split("\n")[:-1]]
    assert [number for number, *_ in rows] == [0, 0, 0, 1, 2, 2, 2]
    best: dict[int, str] = {}
    for number, best_text, features, score in rows:
        best.setdefault(number, best_text)
        if features["tokens"]:
            lp = ((5 + features["tokens"]) / 6) ** 1.0
            unfinished = ((5 + features["tokens"] - 1) / 6) ** 1.0
            ratio = features["log_probability"] / score
            assert ratio == pytest.approx(lp, abs=1e-3) or ratio == pytest.approx(unfinished, abs=1e-3)
    assert list(best.values()) == text.out.split("\n")[:-1]


def test_jsonl_has_an_object_for_each_line(command: Command, trained: Path) -> None:
    plain = command("mt-translate", trained, "search=greedy", stdin=LINES).out.split("\n")[:-1]
    outcome = command("mt-translate", trained, "search=greedy", "output.format=jsonl", stdin=LINES)
    assert "vélvet 한국" in outcome.out  # as it is read, not as \u00e9
    objects = [json.loads(line) for line in outcome.out.split("\n")[:-1]]
    assert [each["source"] for each in objects] == LINES.decode().split("\n")[:-1]
    assert [each["hypotheses"][0]["text"] for each in objects] == plain
    assert all(set(each) == {"source", "hypotheses", "quality", "flags"} for each in objects)
    assert all(isinstance(each["flags"], list) for each in objects)
    (blank,) = objects[1]["hypotheses"]
    assert blank == {"text": "", "score": 0.0, "tokens": [], "token_scores": [], "alignment": []}
    for each in objects:
        (hypothesis,) = each["hypotheses"]
        assert len(hypothesis["tokens"]) == len(hypothesis["token_scores"])
        words = len(hypothesis["text"].split(" ")) if hypothesis["text"] else 0
        assert [target for _, target in hypothesis["alignment"]] == list(range(words))
        subwords = [token for token in hypothesis["tokens"] if token != "</s>"]
        assert "".join(subwords).replace("▁", " ").strip() == hypothesis["text"] or "<0x" in "".join(subwords)


def test_jsonl_has_quality_and_flags(command: Command, trained: Path) -> None:
    """This model is hardly trained: it is unsure of every token, and copies nothing."""
    outcome = command("mt-translate", trained, *QUICK, "output.format=jsonl", stdin=b"ferry 12 {name} .\n\n")
    first, blank = map(json.loads, outcome.out.splitlines())
    scores = first["hypotheses"][0]["token_scores"]
    assert first["quality"] == {"probability": pytest.approx(math.exp(sum(scores) / len(scores)), rel=1e-4)}
    assert {"low_confidence", "unfinished", "missing_number", "missing_placeholder"} <= set(first["flags"])
    assert (blank["quality"], blank["flags"]) == (None, [])


def test_a_translation_ends_with_how_many_lines_to_check_and_why(command: Command, trained: Path) -> None:
    lines = b"ferry 12 {name} .\n\nferry\n"
    outcome = command("mt-translate", trained, *QUICK, stdin=lines)
    (note,) = [line for line in outcome.err.splitlines() if line.startswith("to check: ")]
    assert note.startswith("to check: 2 of 3 lines (unfinished 2, ")
    assert "missing_number 1, missing_placeholder 1" in note
    assert note.endswith("; output.format=table or html lists them")
    assert "to check" not in command("mt-translate", trained, *QUICK, stdin=b"\n").err


def test_a_table_has_each_line_with_what_to_check(command: Command, trained: Path) -> None:
    lines = b"ferry\t12 {name} .\n\n<b>ferry</b>\n"
    plain = command("mt-translate", trained, *QUICK, stdin=lines).out.split("\n")[:-1]
    flags = [
        ", ".join(json.loads(line)["flags"])
        for line in command("mt-translate", trained, *QUICK, "output.format=jsonl", stdin=lines).out.splitlines()
    ]
    outcome = command("mt-translate", trained, *QUICK, "output.format=table", stdin=lines)
    header, *rows = [line.split("\t") for line in outcome.out.split("\n")[:-1]]
    assert header == ["line", "check", "source", "translation"]
    assert [row[0] for row in rows] == ["1", "2", "3"]
    assert [row[1] for row in rows] == flags
    assert [row[2] for row in rows] == ["ferry 12 {name} .", "", "<b>ferry</b>"]
    assert [row[3] for row in rows] == plain
    # Of the model's probabilities, too.
    assert "low_confidence 2" in outcome.err
    page = command("mt-translate", trained, *QUICK, "output.format=html", stdin=lines).out
    assert page.startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")
    assert "&lt;b&gt;ferry&lt;/b&gt;" in page
    assert re.findall(r'<tr class="(\w+)"><td>(\d)', page) == [("check", "1"), ("fine", "2"), ("check", "3")]
    assert command("mt-translate", trained, "output.format=table", stdin=b"").out == "\t".join(header) + "\n"


@pytest.mark.parametrize("name", ["table", "html"])
def test_a_list_that_was_interrupted_has_its_head_once(
    name: str, command: Command, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, out = tmp_path / "text", tmp_path / "out"
    text.write_text("ferry .\n" * 6)
    settings = [*QUICK, f"output.format={name}", "decoding.window=2", "-o", out]
    whole = command("mt-translate", trained, text, *settings)
    expected = out.read_text()
    out.unlink()
    real = Translator.translate

    def broken(self: Any, texts: Any, *rest: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, texts, *rest)

    calls: list[int] = []
    monkeypatch.setattr(Translator, "translate", broken)
    assert command("mt-translate", trained, text, *settings, "resume=true").code == 130
    monkeypatch.setattr(Translator, "translate", real)
    resumed = command("mt-translate", trained, text, *settings, "resume=true")
    assert resumed.code == 0, resumed.err
    assert out.read_text() == expected
    assert [line for line in whole.err.splitlines() if "to check" in line] == [
        line for line in resumed.err.splitlines() if "to check" in line
    ]


@pytest.mark.parametrize(("level", "said"), [("useless", True), ("weak", True), ("usable", False), ([], False)])
def test_a_model_that_is_not_usable_says_so(
    level: str, said: bool, command: Command, trained: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    shutil.copytree(trained / "best", model)
    scores = read_json(model / "scores.json")
    rescore(model, {**scores, "verdict": {"level": level, "sentences": ["This model is of no use: 60 pairs."]}}, "")
    outcome = command("mt-translate", model, *QUICK, stdin=b"ferry\n")
    assert ("note: by the verdict of its training: This model is of no use: 60 pairs.\n" in outcome.err) == said


def test_token_scores_add_up_to_what_the_search_found(command: Command, trained: Path) -> None:
    """The search extends hypotheses token by token; token scores come from one pass over the whole translation.

    This model is hardly trained and goes on to the limit: its search has not seen the last token score, of `</s>`.
    """
    model = trained, "decoding.backend=torch"
    nbest = command("mt-translate", *model, *QUICK, "output.format=nbest", stdin=LINES)
    found = command("mt-translate", *model, *QUICK, "output.format=jsonl", stdin=LINES)
    assert "2 of 3 translations reached the length limit" in nbest.err
    for line, text in zip(nbest.out.split("\n")[:-1], found.out.split("\n")[:-1], strict=True):
        (hypothesis,) = json.loads(text)["hypotheses"]
        _, _, features, score = split_nbest(line)
        assert features["tokens"] == len(hypothesis["tokens"]) == len(hypothesis["token_scores"])
        assert hypothesis["score"] == score
        assert sum(hypothesis["token_scores"][:-1]) == pytest.approx(score, rel=1e-5)


def test_alignments_are_those_of_text(command: Command, trained: Path) -> None:
    text = command("mt-translate", trained, *QUICK, "alignments=true", stdin=LINES).out.split("\n")[:-1]
    found = command("mt-translate", trained, *QUICK, "output.format=jsonl", stdin=LINES).out.split("\n")[:-1]
    for line, each in zip(text, found, strict=True):
        pairs = json.loads(each)["hypotheses"][0]["alignment"]
        assert " ".join(f"{source}-{target}" for source, target in pairs) == line.split("\t")[1]


def test_an_ensemble_has_no_alignments(command: Command, trained: Path) -> None:
    outcome = command("mt-translate", f"{trained},{trained}", *QUICK, "output.format=jsonl", stdin=LINES)
    assert outcome.code == 0
    found = [json.loads(line)["hypotheses"][0] for line in outcome.out.split("\n")[:-1]]
    assert [each["alignment"] for each in found] == [None, None, None]
    assert all(each["token_scores"] for each in (found[0], found[2]))


def test_maps_beside_jsonl(command: Command, trained: Path, tmp_path: Path) -> None:
    outcome = command("mt-translate", trained, *QUICK, "output.format=jsonl", "--attention", tmp_path, stdin=LINES)
    assert (outcome.code, outcome.out.count("\n")) == (0, 3)
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["000001.json", "000002.json", "000003.json"]


@pytest.mark.parametrize("name", ["text", "nbest", "jsonl"])
def test_no_input_is_no_output(command: Command, trained: Path, name: str) -> None:
    outcome = command("mt-translate", trained, f"output.format={name}", stdin=b"")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "note: there was no line to translate\n")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["output.format=nbest", "alignments=true"], "output.format=nbest has no place for output.alignments=true"),
        (["output.format=nbest", "--attention", "maps"], "output.format=nbest has no place for --attention"),
        (["output.format=json"], "output.format ('json') is unknown. Did you mean 'jsonl'?"),
        (["resume=true"], "resume=true needs a file that can be read again, and standard output is none: name one"),
        (["resume=true", "-o", "/dev/null"], "resume=true needs a file that can be read again, and /dev/null is"),
    ],
)
def test_options_that_do_not_go_together(
    command: Command, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = command("mt-translate", trained, *options, stdin=b"ferry\n")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.error.startswith(complaint)


def test_greedy_search_is_asked_for_scores_only_where_they_are_written(
    command: Command, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    real = Translator.translate

    def watched(self: Any, texts: Any, request: Request, tick: Any) -> list[Translation]:
        asked.append(request.scored)
        return real(self, texts, request, tick)

    monkeypatch.setattr(Translator, "translate", watched)
    for name in ("text", "nbest", "jsonl"):
        command("mt-translate", trained, *QUICK, f"output.format={name}", stdin=b"ferry\n")
    assert asked == [False, True, True]


def _tally(direction: Direction, lines: list[str]) -> UnusualLines:
    from tolka.jobs.formats import LineResult
    from tolka.translation.results import Candidate

    tally = UnusualLines(direction, False, {})
    tally.add([LineResult(line, Translation([Candidate("x", [], 0.0, True)])) for line in lines])
    return tally


@pytest.mark.parametrize(("blank", "noted"), [(0, False), (2, False), (3, True)])
def test_blank_translations_are_noted_if_they_are_most(blank: int, noted: bool) -> None:
    """Four lines, two blank ones aside, of which an undertrained model ends some at once."""
    from tolka.jobs.formats import LineResult
    from tolka.translation.results import Candidate

    texts = [""] * blank + ["x"] * (4 - blank)
    written = [LineResult("y", Translation([Candidate(text, [([5], [6])], 0.0, True)])) for text in texts]
    given = UnusualLines(Direction("en", "de"), True, {})
    tally = UnusualLines(Direction("en", "de"), False, {})
    for each in (tally, given):
        each.add([*written, *[LineResult(" ", Translation([Candidate("", [], 0.0, True)]))] * 2])
    note = f"note: {blank} of 4 translations are blank (blank sources not counted): the model ends these sentences at"
    assert (
        "\n".join((*tally.notes(), *given.notes())).count(note) == noted
    )  # once: a blank line that was given is scored


def test_lines_of_the_other_direction_are_noted_once() -> None:
    korean = ["나는 당신을 사랑합니다.", "KBS는 방송국이다"]
    assert list(_tally(Direction("en", "ko"), [*korean, "I love you.", ""]).notes()) == [
        "note: 2 of 4 lines are in the script of ko, and the model translates from en to ko; is it the one for the "
        "other direction?"
    ]
    for direction, lines in (
        (("ko", "en"), [*korean, "여기 I love you 라고 쓰여 있었다", ""]),
        (("en", "de"), ["Ich liebe dich."]),  # one script: nothing can be said
        (("xa", "xb"), ["ferry"]),
        (("ko", "en"), [korean[0]] * 19 + ["KBS"]),  # a name is no other direction
    ):
        assert not list(_tally(Direction(*direction), lines).notes())


def test_help_names_the_formats(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        translate.run(["--help"])
    shown = capsys.readouterr().out
    for words in ('output.format="text"', "input.column=", "--score", "output.resume=false"):
        assert words in shown
