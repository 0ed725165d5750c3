"""What is left for people to read: the plot, the model card, the closing words."""

from pathlib import Path

import pytest

from tolka.errors import TolkaError
from tolka.model_directory.card import model_card
from tolka.report.curves import draw_curves
from tolka.report.runs import FinishedRun
from tolka.report.summary import closing_words

TYPED = "mt-translate M FILE"
SIGNATURE = "nrefs:1|case:mixed"
TESTS = {
    "fresh": {
        "metrics": [{"name": "BLEU", "score": 12.345, "signature": SIGNATURE, "interval": [10.0, 14.0]}],
        "perplexity": {"ppl": 3.456, "ppl_word": 9.0, "words": 4},
    }
}


@pytest.mark.usefixtures("without_matplotlib")
def test_without_matplotlib_one_line_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(TolkaError, match=r"pip install 'tolka\[plots\]'"):
        draw_curves([FinishedRun("a", {"model": {}}, {}, [{"update": 1, "train_loss": 5.0}], [])], tmp_path)


def test_the_card_has_every_score_with_its_signature() -> None:
    config = {"corpus": {"source": "en", "target": "ko"}, "run": {"name": "mine"}}
    scores = {"update": 7, "validation": {"bleu": 1.5}, "signatures": {"bleu": "v:1"}, "test": TESTS}
    card = model_card(config, {"architecture": "small"}, scores)
    for expected in (
        "# en to ko: mine",
        "| architecture | small |",
        "| BLEU | 12.35 | 10.00 to 14.00 |",
        "Perplexity 3.46",
    ):
        assert expected in card
    assert f"- BLEU: `{SIGNATURE}`" in card
    assert "- bleu: `v:1`" in card


def test_the_closing_words_end_on_the_next_command() -> None:
    words = closing_words(Path("runs/my run"), {"best model": "there"}, TESTS, {}, TYPED)
    assert words.splitlines()[-1] == "  mt-translate M FILE"
    assert f"BLEU: {SIGNATURE}" in words
    assert "12.35" in words
    assert "no test set was given" in closing_words(Path("runs/a"), {"best model": "there"}, {}, {}, TYPED)


def test_a_useless_model_is_called_so_and_not_to_be_translated_with() -> None:
    verdict = {
        "level": "useless",
        "sentences": ["This model is useless."],
        "next": [{"words": "Longer:", "command": "mt-train --rerun {run}"}],
    }
    words = closing_words(Path("runs/a"), {"best model": "there"}, TESTS, verdict, TYPED)
    assert words.endswith("\nThis model is useless.\n\nnext:\n  Longer:\n    mt-train --rerun runs/a")
    weak = closing_words(Path("runs/a"), {"best model": "there"}, TESTS, verdict | {"level": "weak"}, TYPED)
    assert weak == words
    usable = closing_words(Path("runs/a"), {"best model": "there"}, TESTS, verdict | {"level": "usable"}, TYPED)
    assert usable.endswith("next:\n  mt-translate M FILE\n  Longer:\n    mt-train --rerun runs/a")


def test_the_closing_words_end_with_the_page(tmp_path: Path) -> None:
    assert "page" not in closing_words(tmp_path, {"best model": "there"}, TESTS, {}, TYPED)
    (tmp_path / "report.html").touch()
    words = closing_words(tmp_path, {"best model": "there"}, TESTS, {}, TYPED)
    assert words.endswith(f" FILE\nall of it on one page: {tmp_path / 'report.html'}")
