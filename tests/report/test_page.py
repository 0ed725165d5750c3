"""The page about runs: everything measured is on it, nothing is fetched, text stays text."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from tolka.errors import CheckpointError
from tolka.report import curves
from tolka.report.curves import draw_curves
from tolka.report.page import write_page
from tolka.report.runs import EXAMPLES, LINES, FinishedRun, read_run

SIGNATURE = "nrefs:1|case:mixed|<tok>"
WEIGHTS = [[0.75, 0.25], [0.1, 0.9]]


class Reader(HTMLParser):
    """What a browser would make of it: cells of tables, text, addresses."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self.titles: list[str] = []
        self.anchors: list[str] = []
        self.captions: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.addresses += [str(given[key]) for key in ("src", "href") if key in given]
        self.titles += [str(given["title"])] if "title" in given else []
        self.anchors += [str(given["id"])] if tag == "dt" and "id" in given else []
        if tag not in ("meta", "img", "link"):
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "figcaption":
            self.captions.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if "figcaption" in self.open:
            self.captions[-1] += data
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data.strip() + " "


def write_run(folder: Path, attention: str = "none", tests: bool = True, bleu: float = 61.234) -> Path:
    """A finished run's files, as mt-train leaves them. tests: whether it has a test set."""
    (folder / "best").mkdir(parents=True)
    (folder / EXAMPLES).mkdir()
    config = {"corpus": {"source": "en", "target": "ko"}, "model": {"name": "rnn", "attention": attention}}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    bucket = {"sentences": 9, "score": 50.0, "interval": [40.0, 60.0], "signature": "by length"}
    test = {
        "metrics": [
            {"name": "BLEU", "score": bleu, "signature": SIGNATURE, "interval": [60.5, 62.5]},
            {"name": "TER", "score": 33.333, "signature": "of TER", "interval": None},
        ],
        "perplexity": {"ppl": 3.456, "ppl_word": 9.0},
        "by_length": [{"words": [1, 4], **bucket}, {"words": [5, 5], **bucket}],
    }
    facts = {
        "architecture": "rnn, 1,234 parameters",
        "trained on": f"a machine, {'bf16' if attention == 'none' else 'fp32'}",
        "training text": "9 < 10 pairs",
    }
    scores = {"facts": facts, "test": {"fresh": test} if tests else {}}
    (folder / "best" / "scores.json").write_text(json.dumps(scores))
    lines: list[dict[str, Any]] = [
        *({"update": n, "train_loss": 2.0, "tokens_per_second": 100.0 * n, "seconds": 60.0 * n} for n in (1, 2, 3)),
        {"update": 3, "valid_loss": 3.0, "bleu": 7.0, "seconds": 240.0, "signatures": {"bleu": "greedy"}},
    ]
    if tests:
        lines.append({"update": 3, "test": "fresh", "sentences": 50, "decoding_seconds": 4.0})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    maps = [{"map": "decoder.0.cross", "head": "mean", "rows": ["a", "b"], "columns": ["c", "d"], "weights": WEIGHTS}]
    shown = {"source": "I <love> you.", "reference": "사랑해", "translation": f"사랑 {folder.name}"}
    content = {**shown, "maps": maps if attention != "none" else []}
    (folder / EXAMPLES / "01.json").write_text(json.dumps(content))
    return folder


def two_runs(tmp_path: Path) -> list[FinishedRun]:
    first, second = write_run(tmp_path / "plain"), write_run(tmp_path / "looking", "dot", bleu=88.0)
    return [read_run(first, "plain"), read_run(second, "looking")]


@pytest.fixture(scope="module")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two runs and one that failed, in a folder with its pictures."""
    folder = tmp_path_factory.mktemp("ladder")
    return write_page(folder, "ladder", two_runs(folder), {"odd": "no <such> cell"})


def test_everything_measured_is_on_it(ladder: Path) -> None:
    page = Reader(ladder.read_text("utf-8"))
    assert not page.open
    assert page.rows[0] == ["system ", "BLEU ↑ ", "TER ↓ ", "PPL per token ↓ ", "sentences/s ↑ "]
    assert page.rows[1] == ["plain ", "61.2 60.50 to 62.50 ", "33.3 ", "3.46 ", "12 "]
    assert page.rows[2] == ["looking ", "88.0 60.50 to 62.50 ", "33.3 ", "3.46 ", "12 "]
    assert page.rows[3] == ["system ", "parameters ", "updates ", "minutes ", "target tokens/s ↑ "]
    assert page.rows[4] == ["plain a machine, bf16 ", "1,234 ", "3 ", "4.0 ", "200 "]
    assert page.rows[5][0] == "looking a machine, fp32 "
    assert "odd failed: no <such> cell" in page.text
    assert "9 < 10 pairs" in page.text
    assert page.text.count("I <love> you.") == 1
    assert "reference: 사랑해" in page.text
    assert "사랑 plain" in page.text
    assert page.text.count("no attention: the encoder's last state") == 1
    assert page.rows[-3:] == [["", "c ", "d "], ["a ", "", ""], ["b ", "", ""]]
    assert page.titles == [f"{weight:.2f}" for row in WEIGHTS for weight in row]


def test_nothing_is_fetched_and_pictures_lie_beside(ladder: Path) -> None:
    pytest.importorskip("matplotlib")
    text = ladder.read_text("utf-8")
    page = Reader(text)
    assert (text.count("<svg "), text.count("<img")) == (5, 0)
    assert all(address.startswith("#") for address in page.addresses)
    assert "url(http" not in text
    assert sorted(path.name for path in (ladder.parent / "plots").iterdir()) == [
        "bleu_by_length_fresh.png",
        "bleu_over_minutes.png",
        "bleu_over_updates.png",
        "nll_over_minutes.png",
        "nll_over_updates.png",
    ]


def test_a_run_alone_has_a_line_for_each_test_set(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a")
    scores = json.loads((folder / "best" / "scores.json").read_text())
    scores["test"]["other"] = {**scores["test"]["fresh"], "metrics": scores["test"]["fresh"]["metrics"][1:]}
    (folder / "best" / "scores.json").write_text(json.dumps(scores))
    page = Reader(write_page(tmp_path, "one", [read_run(folder, "a")], {}, False).read_text("utf-8"))
    assert page.rows[0][:3] == ["test set ", "BLEU ↑ ", "TER ↓ "]
    assert page.rows[1] == ["fresh ", "61.2 60.50 to 62.50 ", "33.3 ", "3.46 ", "12 "]
    assert page.rows[2] == ["other ", "", "33.3 ", "3.46 ", ""]


def test_the_verdict_and_its_figures_stand_at_the_top(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a")
    scores = json.loads((folder / "best" / "scores.json").read_text())
    sentences = {
        "sentences": ["It is <useless>.", "It has BLEU 0.1."],
        "next": [{"words": "Longer:", "command": "mt-train --rerun {run}"}],
    }
    scores["verdict"] = {**sentences, "figures": {"gain": 0.01234}}
    (folder / "best" / "scores.json").write_text(json.dumps(scores))
    text = " ".join(
        Reader(write_page(tmp_path, "one", [read_run(folder, "a")], {}, False).read_text("utf-8")).text.split()
    )
    assert f"1 training It is <useless>. It has BLEU 0.1. To try next: Longer: mt-train --rerun {tmp_path}" in text
    assert "its own source takes off the loss in validation, beside another line's0.0123" in text


def test_a_short_page_in_markdown_has_verdict_lines_and_tables(ladder: Path) -> None:
    text = (ladder.parent / "report.md").read_text("utf-8")
    assert text.startswith("# ")
    assert "\n| system | BLEU ↑ |" in text
    assert "\n|---|---:|" in text
    assert f"- BLEU: `{SIGNATURE}`" in text
    assert "|\n\n|" not in text  # no table is torn by a blank line
    assert not re.search(r"</?(table|td|dl|p|div)\b", text)


def test_each_figure_says_what_it_is_and_which_way_is_better(ladder: Path) -> None:
    pytest.importorskip("matplotlib")
    page = Reader(ladder.read_text("utf-8"))
    assert len(page.captions) == 5
    assert all(" better" in caption for caption in page.captions)
    for sentence in ("from 0 to 100; higher is better.", "moved; lower is better.", "neither is better."):
        assert page.text.count(sentence) == 1
    linked = {address.removeprefix("#") for address in page.addresses}
    glossary = {"bleu", "ter", "ppl", "decoding", "interval", "speed", "loss", "length", "attention"}
    assert glossary <= linked
    assert sorted(glossary) == sorted(page.anchors)


def test_every_signature_once(ladder: Path) -> None:
    """Those of scores, of the validation and, unless it is a score's own, of BLEU by length."""
    pytest.importorskip("matplotlib")
    page = Reader(ladder.read_text("utf-8"))
    named = [f"BLEU{SIGNATURE}", "TERof TER", "BLEU in validationgreedy", "BLEU by lengthby length"]
    assert [page.text.count(each) for each in named] == [1, 1, 1, 1]
    assert page.text.count(SIGNATURE) == 1


def test_before_and_after_of_going_on_from_a_model(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a")
    config = yaml.safe_load((folder / "config.yaml").read_text())
    (folder / "config.yaml").write_text(yaml.safe_dump({**config, "run": {"init_from": "runs/<old>"}}))
    scores = json.loads((folder / "best" / "scores.json").read_text())
    scores["test"]["fresh"]["changes"] = [
        {"name": "BLEU", "before": 59.04, "after": 61.0, "p_value": 0.049, "signature": SIGNATURE},
        {"name": "chrF2", "before": 80.0, "after": 79.0, "p_value": 0.049, "signature": SIGNATURE},
        {"name": "TER", "before": 30.0, "after": 29.0, "p_value": 0.01, "signature": SIGNATURE},
        {"name": "chrF2++", "before": 50.01, "after": 50.0, "p_value": 0.05, "signature": SIGNATURE},
    ]
    (folder / "best" / "scores.json").write_text(json.dumps(scores))
    page = Reader(write_page(tmp_path, "one", [read_run(folder, "a")], {}, False).read_text("utf-8"))
    start = page.rows.index(["score ", "before ", "after ", "change ", "p ", "verdict "])
    assert page.rows[start + 1 : start + 5] == [
        ["BLEU ↑ ", "59.0 ", "61.0 ", "+2.0 ", "0.049 ", "better "],
        ["chrF2 ↑ ", "80.0 ", "79.0 ", "-1.0 ", "0.049 ", "worse "],
        ["TER ↓ ", "30.0 ", "29.0 ", "-1.0 ", "0.010 ", "better "],
        ["chrF2++ ↑ ", "50.0 ", "50.0 ", "+0.0 ", "0.050 ", "may be chance "],
    ]
    assert "started from, runs/<old>" in page.text
    assert "fresh, p by paired approximate randomisation" in page.text
    assert "p" in page.anchors


def test_colours_are_those_of_the_reader_s_scheme(ladder: Path) -> None:
    """Pictures too: nothing in them is black or white by itself."""
    pytest.importorskip("matplotlib")
    text = ladder.read_text("utf-8")
    style, _, content = text.partition("</style>")
    dark = style.split("@media (prefers-color-scheme: dark)")[1]
    assert {"--ink", "--soft", "--line", "--paper", "--ground", "--accent"} <= set(re.findall(r"--\w+", dark))
    assert not re.findall("#(?:000000|ffffff|fff|000)\\b", content)
    assert "<style" not in content


def test_each_run_keeps_its_colour_and_is_dashed_without_attention(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    runs = two_runs(tmp_path)
    drawn: dict[str, Any] = {}
    monkeypatch.setattr(curves, "save_figure", lambda figure, path: drawn.update({path.stem: figure}) or path)
    monkeypatch.setattr(curves, "svg_of", lambda _: "<svg></svg>")
    draw_curves(runs, tmp_path / "plots")
    styles = set()
    for picture in drawn.values():
        (axes,) = picture.axes
        handles, labels = axes.get_legend_handles_labels()
        for handle, label in zip(handles, labels, strict=True):
            line = handle if hasattr(handle, "get_color") else handle.lines[0]  # of error bars
            styles.add((label, line.get_color(), line.get_linestyle()))
    assert {label: style for label, _, style in styles} == {"plain": "--", "looking": "-"}
    assert len(styles) == len({color for _, color, _ in styles}) == 2
    (axes,) = drawn["bleu_over_minutes"].axes
    assert list(axes.lines[0].get_xdata()) == [4.0]
    (axes,) = drawn["bleu_by_length_fresh"].axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1-4", "5"]


def test_a_run_alone_has_its_loss_in_training_beside_that_in_validation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    drawn: dict[str, Any] = {}
    monkeypatch.setattr(curves, "save_figure", lambda figure, path: drawn.update({path.stem: figure}) or path)
    monkeypatch.setattr(curves, "svg_of", lambda _: "<svg></svg>")
    draw_curves(two_runs(tmp_path)[:1], tmp_path / "plots")
    assert {"bleu_over_updates", "nll_over_updates"} == {name for name in drawn if "_over_" in name}
    validation, training = drawn["nll_over_updates"].axes[0].lines
    assert (list(validation.get_xdata()), list(validation.get_ydata())) == ([3], [3.0])
    assert (list(training.get_xdata()), list(training.get_ydata())) == ([1, 2, 3], [2.0, 2.0, 2.0])
    assert (training.get_linestyle(), training.get_color()) == (":", validation.get_color())


@pytest.mark.usefixtures("without_matplotlib")
def test_without_test_sets_or_pictures(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "a", tests=False), "a")
    text = write_page(tmp_path / "new", "one", [run], {}).read_text("utf-8")
    page = Reader(text)
    assert "matplotlib is not installed" in page.text
    assert page.rows[1] == ["a ", "1,234 ", "3 ", "4.0 ", "200 "]
    assert "No test set was given" in page.text
    assert "1 training" in page.text


def test_maps_too_large_to_lay_out_and_parts_of_long_lines(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", "dot")
    pieces = [str(n) for n in range(81)]
    small = {"map": "decoder.0.cross", "head": "mean", "rows": ["a"], "columns": ["c"], "weights": [[1.0]]}
    large = {**small, "rows": pieces, "columns": pieces[:1], "weights": [[1.0]] * 81}
    shown = {"source": "x", "translation": "y", "maps": [small, large]}
    (folder / EXAMPLES / "01.json").write_text(json.dumps(shown))
    text = write_page(tmp_path, "one", [read_run(folder, "a")], {}, False).read_text("utf-8")
    page = Reader(text)
    # What may be wider than a screen scrolls by itself, and not the page or the text beside it.
    assert len(re.findall(r'<div class="(?:wide|scroll)"[^>]*>\s*<table', text)) == text.count("<table") == 3
    assert ("part 1 of 2" in page.text, "part 2 of 2" in page.text) == (True, True)
    assert "81 by 1 subwords: too many to lay out" in page.text
    assert page.titles == ["1.00"]


def test_short_runs_have_no_rate_and_slow_ones_keep_their_digits(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a")
    lines = [{"update": 3, "seconds": 6.0}, {"update": 3, "test": "fresh", "sentences": 1, "decoding_seconds": 3.0}]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    page = Reader(write_page(tmp_path, "one", [read_run(folder, "a")], {}, False).read_text("utf-8"))
    assert page.rows[1][-2:] == ["3.46 ", "0.33 "]
    assert page.rows[3][1:] == ["1,234 ", "3 ", "0.1 ", ""]


def test_runs_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"is not a finished run: .*config.yaml cannot be read"):
        read_run(tmp_path, "a")
    write_run(tmp_path / "a")
    (tmp_path / "a" / "metrics.jsonl").write_text("{")
    with pytest.raises(CheckpointError, match="is damaged"):
        read_run(tmp_path / "a", "a")


def test_the_worst_and_the_best_lines_come_first_and_all_can_be_found(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", "dot")
    texts = [
        {
            "test": "fresh",
            "line": n + 1,
            "chrf": 10.0 * n,
            "source": f"I <love> you {n}.",
            "translation": f"사랑 {n}",
            "reference": "사랑해",
        }
        for n in range(8)
    ]
    texts[4]["reference"] = "a\u2028mo"  # a line separator, which ends no line of the file
    written = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in texts)
    (folder / EXAMPLES / LINES).write_text(written, encoding="utf-8")
    alone = write_page(tmp_path / "page", "run", [read_run(folder, "run")], {}).read_text("utf-8")
    page = Reader(alone.replace("<input", "<meta"))
    assert not page.open
    first_screen = page.text[: page.text.index("Scores")]
    assert [f"I <love> you {n}." in first_screen for n in range(8)] == [True] * 3 + [False] * 2 + [True] * 3
    assert first_screen.index("you 0.") < first_screen.index("you 2.") < first_screen.index("you 7.")
    assert [row for row in page.rows if row[:1] == ["8 "]] == [
        ["8 ", "70.0 ", "I <love> you 7. ", "사랑 7 ", "사랑해 "]
    ]
    # Of several runs, each of which has others, there is neither.
    other = write_run(tmp_path / "other", "dot")
    several = write_page(tmp_path / "both", "both", [read_run(folder, "run"), read_run(other, "other")], {})
    assert "Where it is worst" not in several.read_text("utf-8")
    assert "The lines of the test set" not in several.read_text("utf-8")


def test_each_test_set_has_its_lines_in_its_own_languages(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", "dot")
    scores = json.loads((folder / "best" / "scores.json").read_text(encoding="utf-8"))
    (first,) = scores["test"]
    scores["test"]["back"] = {**scores["test"][first], "direction": ["ko", "en"]}
    (folder / "best" / "scores.json").write_text(json.dumps(scores), encoding="utf-8")
    lines = [
        {"test": test, "line": n + 1, "chrf": 10.0 * n, "source": f"{test} {n}", "translation": "a", "reference": "b"}
        for test in (first, "back")
        for n in range(6)
    ]
    (folder / EXAMPLES / LINES).write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    text = write_page(tmp_path / "page", "run", [read_run(folder, "run")], {}).read_text("utf-8")
    page = Reader(text.replace("<input", "<meta"))
    assert not page.open
    assert f"6 lines of {first}; 6 lines of back, with the chrF2 of each" in page.text
    assert text.index(f"worst, on {first}</h2>") < text.index("<summary>Where it is worst and best, on back")
    assert [row[0] for row in page.rows if row[1:3] == ["1 ", "0.0 "]] == [f"{first} ", "back "]
    assert '<dd lang="ko" dir="auto">back 0</dd>' in text
    assert "## Where it is best, on back" in (tmp_path / "page" / "report.md").read_text("utf-8")
    assert read_run(folder, "run").lines_of("back")[0]["source"] == "back 0"


def test_what_several_runs_differ_in_stands_beside_their_scores(tmp_path: Path) -> None:
    runs = two_runs(tmp_path)
    scores = dict(runs[1].scores)
    scores["facts"] = {**scores["facts"], "architecture": "lstm, 9,876 parameters"}
    write_page(tmp_path, "two", [runs[0], replace(runs[1], scores=scores)], {})
    short = (tmp_path / "report.md").read_text("utf-8")
    assert "(lstm, 9,876 parameters; 3 updates in 4 minutes): BLEU 88.0" in short
    assert "(rnn, 1,234 parameters; 3 updates in 4 minutes): BLEU 61.2" in short
