"""The texts that mt-eval reads: which side of which file, how many lines, and what is refused."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from rows import each_row

from tolka.api.scored_texts import (
    ScoredTexts,
    is_model,
    read_parallel,
    read_text,
    read_texts,
    translations_of,
)
from tolka.config.schemas import EvaluateConfig, FilesToScore
from tolka.engines.options import DecodingConfig
from tolka.errors import ConfigError, DataError, TolkaError
from tolka.metrics.options import MetricsConfig
from tolka.search.options import GreedyConfig
from tolka.system.progress import silent
from tolka.text.lines import LINE_LIMIT, LineLimit

TMX = "<tmx version='1.4'><header/><body><tu><tuv xml:lang='en'><seg>a</seg></tuv></tu></body></tmx>"
WMT = """<dataset id="d"><collection id="c"><doc id="x">
<src lang="en"><p><seg id="1">one</seg></p><p><seg id="2">two</seg></p></src>
<ref lang="de" translator="A"><p><seg id="1">eins</seg></p><p><seg id="2">zwei</seg></p></ref>
<ref lang="de" translator="B"><p><seg id="1">EINS</seg></p><p><seg id="2">ZWEI</seg></p></ref>
</doc></collection></dataset>"""
SGM = """<refset setid="s" trglang="de"><doc docid="x">
<seg id="1">eins &amp; so</seg><seg id="2">zwei</seg></doc></refset>"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of texts, which is the current one."""
    texts = {
        "ref.de": "eins\nzwei\n",
        "other.de": "EINS\n\n",
        "src.en": "one\ntwo\n",
        "out.de": "ein\nzwei\n",
        "long.de": "1\n2\n3\n4\n",
        "empty.de": "",
        "json.de": '{"hypotheses": [{"text": "ein"}]}\n{"hypotheses": [{"text": "zwei"}, {"text": "x"}]}\n',
        "tabs.tsv": "a\tb\nc\td\n",
        "both.tmx": TMX,
        "set.xml": WMT,
        "ref.sgm": SGM,
        "a,b": "one line\n",
    }
    for name, content in texts.items():
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def config(decoding: DecodingConfig | None = None, language: str = "", **given: Any) -> EvaluateConfig:
    named = FilesToScore(language=language, **given)
    return EvaluateConfig(named, GreedyConfig(), decoding or DecodingConfig(), MetricsConfig())


def test_references_in_their_order_and_the_sources(files: Path) -> None:
    texts = read_texts(config(reference=["ref.de", "other.de"], source="src.en"), silent)
    assert texts.references == [("ref.de", ["eins", "zwei"]), ("other.de", ["EINS", ""])]
    assert texts.source == ("src.en", ["one", "two"])
    taken = texts.as_references
    assert (taken.lists, taken.sources) == ([["eins", "zwei"], ["EINS", ""]], ["one", "two"])
    assert texts.needed_source("it") == texts.source


def test_without_sources(files: Path) -> None:
    texts = read_texts(config(reference=["ref.de"]), silent)
    assert (texts.references, texts.source) == ([("ref.de", ["eins", "zwei"])], None)
    assert texts.as_references.sources is None
    with pytest.raises(ConfigError, match="source=FILE is missing: a model translates it"):
        texts.needed_source("a model translates it")


@each_row(
    ("given", "complaint"),
    [
        ({}, "reference=FILE is missing"),
        ({"source": "src.en"}, "reference=FILE is missing"),
        ({"reference": ["-"], "source": "-"}, "- is standard input, which can be one of the files alone"),
        ({"reference": ["-"], "hypothesis": "-"}, "- is standard input, which can be one of the files alone"),
        ({"reference": ["ref.de", "long.de"]}, "long.de has 4 lines but ref.de has 2; .*n-best list with 2 of each"),
        ({"reference": ["long.de", "ref.de"]}, "ref.de has 2 lines but long.de has 4; scores compare line by line$"),
        ({"reference": ["ref.de"], "source": "long.de"}, "long.de has 4 lines but ref.de has 2"),
        ({"reference": ["empty.de"]}, "empty.de: the file is empty"),
        ({"reference": ["ref.de", "none.de"]}, "none.de: there is no such file"),
        ({"reference": ["both.tmx"]}, "both.tmx has both sides, and no text a line"),
        ({"source": "both.tmx"}, "source=both.tmx has both sides, and only a model's languages tell which is which"),
        ({"reference": ["sacrebleu:wmt20"]}, "does not say its languages: type decoding.source=CODE"),
    ],
)
def test_what_is_refused(files: Path, given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(TolkaError, match=complaint):
        read_texts(config(**given), silent)


def test_all_that_is_missing_is_said_at_once(files: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_texts(config(reference=["none.de", "nil.de"]), silent)
    assert "none.de: there is no such file" in str(caught.value)
    assert "nil.de: there is no such file" in str(caught.value)


@each_row(
    ("name", "of_sources", "lines"),
    [
        ("ref.de", False, ["eins", "zwei"]),
        ("tabs.tsv", False, ["a\tb", "c\td"]),  # a line may be a text
        ("set.xml", False, ["eins", "zwei"]),  # the first of two references
        ("set.xml", True, ["one", "two"]),
        ("ref.sgm", False, ["eins & so", "zwei"]),
    ],
)
def test_lines_or_segments(files: Path, name: str, of_sources: bool, lines: list[str]) -> None:
    assert read_text(name, LINE_LIMIT, of_sources=of_sources) == lines


def test_standard_input(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("für\n\n".encode())))
    assert read_text("-", LINE_LIMIT) == ["für", ""]
    with pytest.raises(DataError, match="-: the file is empty"):
        read_text("-", LINE_LIMIT)
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match="- is standard input, and that is closed"):
        read_text("-", LINE_LIMIT)


def test_a_line_that_is_too_long(files: Path) -> None:
    assert read_text("out.de", LineLimit(4)) == ["ein", "zwei"]
    with pytest.raises(DataError, match=r"out\.de:2: the line is longer than 3 bytes"):
        read_text("out.de", LineLimit(3))


def test_a_segment_that_is_no_xml(files: Path) -> None:
    (files / "bad.xml").write_text(WMT.replace("zwei", "zw & ei"))
    with pytest.raises(DataError, match=r"bad\.xml:\d+: not XML"):
        read_text("bad.xml", LINE_LIMIT)


@each_row(
    ("system", "expected"),
    [
        (".", True),
        ("out.de", False),
        ("none.de", False),
        ("a,b", False),  # a file that is there
        ("a,c", True),
        ("hub:owner/name", True),
        ("none", False),
    ],
)
def test_what_is_a_model(files: Path, system: str, expected: bool) -> None:
    assert is_model(system) is expected


def test_translations_of_a_file(files: Path) -> None:
    texts = ScoredTexts([("ref.de", ["eins", "zwei"])], None)
    assert translations_of("out.de", texts, config(), silent) == (("out.de", ["ein", "zwei"]), "", "")
    written, language, note = translations_of("json.de", texts, config(language="de"), silent)
    assert (written, language) == (("json.de", ["ein", "zwei"]), "de")
    assert note == "json.de has JSON lines: the first hypothesis of each is scored"
    with pytest.raises(ConfigError, match="source=FILE is missing: a,c is a model, which translates it"):
        translations_of("a,c", texts, config(), silent)


def test_parallel_texts_of_a_command_that_translates_by_itself(files: Path) -> None:
    pair: dict[str, Any] = {"source": "src.en", "reference": ["ref.de"]}
    assert read_parallel(config(**pair), silent, "perplexity", []) == (["one", "two"], ["eins", "zwei"])
    others: list[dict[str, Any]] = [
        {"source": ""},
        {"reference": []},
        {"reference": ["ref.de", "other.de"]},
        {"hypothesis": "out.de"},
    ]
    for other in others:
        with pytest.raises(ConfigError, match="perplexity takes a model, source=FILE and reference=FILE"):
            read_parallel(config(**{**pair, **other}), silent, "perplexity", [])
