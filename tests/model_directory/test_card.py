"""The model card as the Hugging Face Hub reads it."""

import re
from typing import Any

import pytest

from conftest import Command
from tolka.config.translate_command import translate_config
from tolka.errors import ConfigError
from tolka.model_directory.card import hub_data_set, model_card
from tolka.model_directory.read import load_model
from tolka.options.checks import check_licence

SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
CONFIG: dict[str, Any] = {
    "run": {"name": "captions", "licence": "cc-by-4.0"},
    "corpus": {"name": "hub", "source": "en", "target": "de", "path": "bentrevett/multi30k"},
}
METRICS = [
    {"name": "BLEU", "score": 38.7904, "signature": SIGNATURE, "interval": (37.1, 40.4)},
    {"name": "chrF2++", "score": 61.3652, "signature": "nw:2", "interval": None},
    {"name": "TER", "score": float("nan"), "signature": "case:lc", "interval": None},
]
SCORES: dict[str, Any] = {"update": 6000, "test": {"flickr": {"metrics": METRICS, "perplexity": {"ppl": 5.3}}}}


def test_the_hub_s_own_classes_read_it() -> None:
    hub = pytest.importorskip("huggingface_hub")
    facts = {"data set": "bentrevett/multi30k", "training text": "29000 pairs"}
    card = hub.ModelCard(model_card(CONFIG, facts, SCORES))
    data = card.data
    assert (data.language, data.license, data.library_name) == (["en", "de"], "cc-by-4.0", "tolka")
    assert (data.pipeline_tag, data.datasets, data.metrics) == (
        "translation",
        ["bentrevett/multi30k"],
        ["bleu", "chrf"],
    )
    assert (data.model_name, data.tags) == ("captions", ["translation", "tolka"])
    bleu, chrf = data.eval_results  # a score that is not finite is no result
    assert (bleu.task_type, bleu.dataset_type, bleu.dataset_name) == ("translation", "bentrevett/multi30k", "flickr")
    assert (bleu.metric_type, bleu.metric_value, bleu.metric_name) == ("bleu", 38.79, "BLEU")
    assert bleu.metric_args == {"signature": SIGNATURE}
    assert (chrf.metric_type, chrf.metric_value, chrf.metric_name) == ("chrf", 61.37, "chrF2++")
    assert "| BLEU | 38.79 | 37.10 to 40.40 |" in card.text
    assert f"- BLEU: `{SIGNATURE}`" in card.text
    assert "its training text (29000 pairs)" in card.text


def test_the_settings_that_it_names_are_known() -> None:
    named = re.findall(r"`(\w+\.\w+=\w+)`", model_card(CONFIG, {}, SCORES))
    assert named
    translate_config(named)


def test_what_a_training_writes(trained: Any) -> None:
    """Files of one's own have no name on the Hub; a licence that nobody stated is not in the card."""
    hub = pytest.importorskip("huggingface_hub")
    saved = load_model(trained)
    card = hub.ModelCard.load(saved.folder / "README.md", ignore_metadata_errors=False)
    assert (card.data.language, card.data.license, card.data.datasets) == (["xa", "xb"], None, None)
    found = {(result.dataset_name, result.metric_name): result.metric_value for result in card.data.eval_results}
    scores = saved.scores["test"]["test"]["metrics"]
    assert found == {("test", metric["name"]): round(metric["score"], 2) for metric in scores}


def test_the_licence_is_a_setting(command: Command, tiny: list[str], tmp_path: Any) -> None:
    assert command("mt-train", *tiny, "run.licence=mit").code == 0
    assert "\nlicense: mit\n" in (tmp_path / "run" / "best" / "README.md").read_text()
    for wrong in ("CC BY 4.0", "-mit", "a\nb: c"):
        with pytest.raises(ConfigError, match=r"(?s)run\.licence .* is not a licence"):
            check_licence(wrong, "run.licence")


def test_a_folder_is_not_taken_for_a_data_set_of_the_hub(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert hub_data_set(CONFIG["corpus"]) == "bentrevett/multi30k"
    (tmp_path / "bentrevett" / "multi30k").mkdir(parents=True)
    assert hub_data_set(CONFIG["corpus"]) == ""
    assert "bentrevett" not in model_card(CONFIG, {}, SCORES)


@pytest.mark.slow
def test_training_notes_a_data_set_of_the_hub(
    command: Command, tiny: list[str], corpus: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And of a local folder of the same shape its path only."""
    settings = [each for each in tiny if not each.startswith("corpus")]
    named = ["corpus=hub", "corpus.path=clients/acme", f"corpus.root={corpus}", "corpus.source=xa", "corpus.target=xb"]
    named.append("corpus.valid=valid")
    monkeypatch.chdir(tmp_path)
    for is_local in (False, True):
        if is_local:
            (tmp_path / "clients" / "acme").mkdir(parents=True)
        run = tmp_path / f"run-{is_local}"
        assert command("mt-train", *settings, *named, f"run.dir={run}").code == 0
        assert load_model(run).scores["facts"].get("data set", "") == ("" if is_local else "clients/acme")
        assert ("datasets:" in (run / "best" / "README.md").read_text()) != is_local


def test_an_exported_folder_has_a_card_of_its_own() -> None:
    full, short = model_card(CONFIG, {}, {}), model_card(CONFIG, {}, {}, has_config=False, marks_lines=False)
    for words in ("All settings are in `config.yaml`.", "With `output.format=jsonl`, `mt-translate` marks"):
        assert words in full
        assert words not in short


def test_a_model_of_another_program_was_not_trained_here() -> None:
    assert "imported into tolka" in model_card(CONFIG, {"imported from": "a folder of Marian"}, {})
    assert "trained with tolka" in model_card(CONFIG, {}, {})


def test_a_model_without_scores_says_so() -> None:
    card = model_card({**CONFIG, "run": {"name": "captions"}}, {}, {})
    assert "model-index" not in card
    assert "license" not in card
    assert "It was not scored." in card
