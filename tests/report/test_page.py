"""The page about runs: everything measured is on it, nothing is fetched, text stays text."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from tolka.errors import CheckpointError, ConfigError
from tolka.report.comparison import compare_runs
from tolka.report.page import ReportConfig, write_page
from tolka.report.runs import SHOWN, FinishedRun, read_run

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
        self.signatures: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.addresses += [str(given[key]) for key in ("src", "href") if key in given]
        self.titles += [str(given["title"])] if "title" in given else []
        if tag not in ("meta", "img", "link"):
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open and self.open[-1] == "span":
            self.signatures.append(data)
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data.strip() + " "


def write_run(folder: Path, attention: str = "none", tests: bool = True, bleu: float = 61.234) -> Path:
    """A finished run's files, as mt-train leaves them."""
    (folder / "best").mkdir(parents=True)
    (folder / SHOWN).mkdir()
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
    flow = [{"layer": "encoder.0.forward", "state": state, "norms": [1.0, 0.5], "sentences": [2, 2]} for state in "hC"]
    lines: list[dict[str, Any]] = [
        {"update": 0, "gradient_flow": flow},
        *({"update": n, "train_loss": 2.0, "tokens_per_second": 100.0 * n, "seconds": 60.0 * n} for n in (1, 2, 3)),
        {"update": 3, "gradient_flow": flow},
        {"update": 3, "valid_loss": 3.0, "bleu": 7.0, "seconds": 240.0, "signatures": {"bleu": "greedy"}},
    ]
    if tests:
        lines.append({"update": 3, "test": "fresh", "sentences": 50, "decoding_seconds": 4.0})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    maps = [{"map": "decoder.0.cross", "head": "mean", "rows": ["a", "b"], "columns": ["c", "d"], "weights": WEIGHTS}]
    shown = {"source": "I <love> you.", "reference": "사랑해", "translation": f"사랑 {folder.name}"}
    content = {**shown, "maps": maps if attention != "none" else []}
    (folder / SHOWN / "01.json").write_text(json.dumps(content))
    return folder


def two_runs(tmp_path: Path) -> list[FinishedRun]:
    first, second = write_run(tmp_path / "plain"), write_run(tmp_path / "looking", "dot", bleu=88.0)
    return [read_run(first, "plain"), read_run(second, "looking")]


def test_everything_measured_is_on_it(tmp_path: Path) -> None:
    page = Reader(write_page(tmp_path, "ladder", two_runs(tmp_path), {"odd": "no <such> cell"}).read_text("utf-8"))
    assert not page.open
    assert page.rows[1][:5] == ["system ", "parameters ", "updates ", "minutes ", "target tokens/s "]
    assert page.rows[1][5:] == ["BLEU ", "TER ", "PPL per token ", "sentences/s "]
    scores = ["61.2 60.50 to 62.50 ", "33.3 ", "3.46 ", "12 "]
    assert page.rows[2] == ["plain a machine, bf16 ", "1,234 ", "3 ", "4.0 ", "200 ", *scores]
    assert page.rows[3][0] == "looking a machine, fp32 "
    assert f"BLEU: {SIGNATURE}" in page.text
    assert "TER: of TER" in page.text
    assert "odd failed: no <such> cell" in page.text
    assert "9 < 10 pairs" in page.text
    assert page.text.count("I <love> you.") == 1
    assert "reference: 사랑해" in page.text
    assert "사랑 plain" in page.text
    assert page.text.count("no attention: the encoder's last state") == 1
    assert page.rows[-3:] == [["", "c ", "d "], ["a ", "", ""], ["b ", "", ""]]
    assert page.titles == [f"{weight:.2f}" for row in WEIGHTS for weight in row]


def test_nothing_is_fetched_and_pictures_lie_beside(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page = Reader(write_page(tmp_path, "ladder", two_runs(tmp_path), {}).read_text("utf-8"))
    assert len(page.addresses) == 7
    assert (page.signatures.count("greedy"), page.signatures.count("by length")) == (2, 1)
    assert all(address.startswith("data:image/png;base64,") for address in page.addresses)
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == [
        "bleu_by_length_fresh.png",
        "bleu_over_minutes.png",
        "bleu_over_updates.png",
        "gradient_flow_first.png",
        "gradient_flow_last.png",
        "nll_over_minutes.png",
        "nll_over_updates.png",
    ]


def test_each_run_keeps_its_colour_and_is_dashed_without_attention(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure
    runs = two_runs(tmp_path)
    drawn: dict[str, Any] = {}
    monkeypatch.setattr(figure, "savefig", lambda self, path, **_: drawn.update({path.stem: self}))
    compare_runs(runs, tmp_path / "plots")
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
    (axes,) = drawn["gradient_flow_last"].axes
    assert (axes.get_yscale(), [list(line.get_ydata()) for line in axes.lines]) == ("log", [[1.0, 0.5]] * 4)
    (axes,) = drawn["bleu_by_length_fresh"].axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1-4", "5"]


@pytest.mark.usefixtures("without_matplotlib")
def test_without_test_sets_or_pictures(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "a", tests=False), "a")
    text = write_page(tmp_path / "new", "one", [run], {}).read_text("utf-8")
    page = Reader(text)
    assert "matplotlib is not installed" in page.text
    assert page.rows[1] == ["a ", "1,234 ", "3 ", "4.0 ", "200 "]
    assert "1 training" in page.text


def test_maps_too_large_to_lay_out_and_parts_of_long_lines(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", "dot")
    pieces = [str(n) for n in range(81)]
    small = {"map": "decoder.0.cross", "head": "mean", "rows": ["a"], "columns": ["c"], "weights": [[1.0]]}
    large = {**small, "rows": pieces, "columns": pieces[:1], "weights": [[1.0]] * 81}
    shown = {"source": "x", "translation": "y", "maps": [small, large]}
    (folder / SHOWN / "01.json").write_text(json.dumps(shown))
    page = Reader(write_page(tmp_path, "one", [read_run(folder, "a")], {}).read_text("utf-8"))
    assert ("part 1 of 2" in page.text, "part 2 of 2" in page.text) == (True, True)
    assert "81 by 1 pieces: too many to lay out" in page.text
    assert page.titles == ["1.00"]


def test_short_runs_have_no_rate_and_slow_ones_keep_their_digits(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a")
    lines = [{"update": 3, "seconds": 6.0}, {"update": 3, "test": "fresh", "sentences": 1, "decoding_seconds": 3.0}]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    page = Reader(write_page(tmp_path, "one", [read_run(folder, "a")], {}).read_text("utf-8"))
    assert page.rows[2][1:5] == ["1,234 ", "3 ", "0.1 ", ""]
    assert page.rows[2][-2:] == ["3.46 ", "0.33 "]


@pytest.mark.parametrize(("sentences", "complaint"), [([" "], "has a blank one"), (["a", "a"], "a sentence twice")])
def test_sentences_that_cannot_be_shown(sentences: list[str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        ReportConfig(sentences=sentences)


def test_runs_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"is not a finished run: .*config.yaml cannot be read"):
        read_run(tmp_path, "a")
    write_run(tmp_path / "a")
    (tmp_path / "a" / "metrics.jsonl").write_text("{")
    with pytest.raises(CheckpointError, match="is damaged"):
        read_run(tmp_path / "a", "a")
