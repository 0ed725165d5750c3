"""Pairs chosen by a score beside them, and test sets by sacreBLEU's names."""

import json
from pathlib import Path
from typing import Any

import pytest

from tolka.config.command_line import train_config
from tolka.errors import ConfigError, DataError
from tolka.text.corpora.base import Corpus

ROWS = [
    ("a one", "b eins", "0.9"),
    ("a two", "b zwei", "0.69"),
    ("a three", "b drei", "0.7"),
    ("a four", "b vier", "0.1"),
]
CODES = ["corpus.source=en", "corpus.target=de"]


def corpus_of(*settings: str) -> Corpus:
    return train_config(["corpus=files", *CODES, *settings]).corpus.open()


def kept(corpus: Corpus) -> list[tuple[str, str]]:
    return [(pair.source, pair.flaw) for source in corpus.train for pair in source.read()]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    columns = {"en": 0, "de": 1, "score": 2}
    for name, column in columns.items():
        (tmp_path / f"plain.{name}").write_text("".join(f"{row[column]}\n" for row in ROWS))
    (tmp_path / "rows.tsv").write_text("".join("\t".join(row) + "\n" for row in ROWS))
    table = [("score", "en", "de"), *((score, one, other) for one, other, score in ROWS)]
    (tmp_path / "rows.csv").write_text("".join(",".join(row) + "\n" for row in table))
    objects = [{"en": one, "de": other, "score": score} for one, other, score in ROWS]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in objects))
    return tmp_path


@pytest.mark.parametrize(
    "train",
    [
        ["corpus.train=plain", "corpus.score=score"],
        ["corpus.train=rows.csv", "corpus.score=score"],
        ["corpus.train=rows.jsonl", "corpus.score=score"],
        ["corpus.train=rows.tsv", "corpus.columns=[1,2]", "corpus.score=3"],
    ],
)
def test_pairs_below_the_score_are_left_out_by_name(train: list[str], texts: Path) -> None:
    corpus = corpus_of(f"corpus.root={texts}", *train, "corpus.valid=plain", "corpus.min_score=0.7")
    low = "a score below 0.7"
    assert kept(corpus) == [("a one", ""), ("a two", low), ("a three", ""), ("a four", low)]
    assert [pair.flaw for pair in corpus.valid[0].read()] == [""] * 4
    other = corpus_of(f"corpus.root={texts}", *train, "corpus.valid=plain", "corpus.min_score=0.8")
    assert corpus.fingerprint() != other.fingerprint()


def test_a_score_that_is_none_is_named(texts: Path) -> None:
    corpus = corpus_of(f"corpus.root={texts}", "corpus.train=rows.csv", "corpus.valid=plain", "corpus.score=de")
    with pytest.raises(DataError, match=r"rows: the score of pair 1 \(.b eins.\) is not a finite number"):
        kept(corpus)
    with pytest.raises(DataError, match=r"there is no .*plain\.quality"):
        corpus_of(f"corpus.root={texts}", "corpus.train=plain", "corpus.valid=plain", "corpus.score=quality")
    two = "corpus.train=[[plain.en,plain.de]]"
    with pytest.raises(ConfigError, match="is of a table or of a prefix, not of two files"):
        corpus_of(f"corpus.root={texts}", two, "corpus.valid=plain", "corpus.score=score")


def test_a_set_of_sacrebleu_is_read_where_it_was_downloaded(
    texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sacrebleu.dataset import DATASETS

    wmt: Any = DATASETS["wmt14"]
    monkeypatch.setattr(wmt, "_outdir", str(tmp_path / "kept"))
    (tmp_path / "kept").mkdir()
    for field in wmt.fieldnames("en-de"):
        Path(wmt._get_txt_file_path("en-de", field)).write_text(f"{field} 1\n{field} 2\n")
    train = [f"corpus.train={texts / 'plain'}", f"corpus.valid={texts / 'plain'}"]
    (test,) = corpus_of(*train, "corpus.test=sacrebleu:wmt14").tests
    assert (test.name, test.count()) == ("wmt14", 2)
    assert next(iter(test.read())).source == "src 1"
    assert next(iter(test.read())).target.startswith("ref")
    with pytest.raises(ConfigError, match=r"sacreBLEU has no such set\. Did you mean 'wmt14'\?"):
        corpus_of(*train, "corpus.test=sacrebleu:wmt144")
    with pytest.raises(ConfigError, match=r"is not in en-ko, but in cs-en, .* \(sacrebleu --list -t wmt14 shows all\)"):
        corpus_of(*train, "corpus.test=[{text: 'sacrebleu:wmt14', source: en, target: ko}]")


def test_without_a_network_it_says_how_to_get_the_set(
    texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sacrebleu.dataset import DATASETS

    def offline(langpair: str) -> None:
        raise OSError("no\nnetwork")

    monkeypatch.setattr(DATASETS["wmt13"], "_outdir", str(tmp_path / "kept"))
    monkeypatch.setattr(DATASETS["wmt13"], "process_to_text", offline)
    with pytest.raises(
        DataError, match=r"cannot be downloaded \(no network\); with a network, sacrebleu -t wmt13 -l en-de"
    ):
        corpus_of(f"corpus.train={texts / 'plain'}", f"corpus.valid={texts / 'plain'}", "corpus.test=sacrebleu:wmt13")


@pytest.mark.parametrize("score", ["nan", "inf", "-inf", "Infinity"])
def test_a_score_that_is_not_finite_is_refused(texts: Path, score: str) -> None:
    (texts / "plain.score").write_text(f"0.9\n{score}\n0.9\n0.9\n")
    corpus = corpus_of(f"corpus.root={texts}", "corpus.train=plain", "corpus.valid=plain", "corpus.score=score")
    with pytest.raises(DataError, match=rf"plain: the score of pair 2 \('{score}'\) is not a finite number"):
        kept(corpus)
