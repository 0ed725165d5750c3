"""tolka as a library: the three jobs as functions, settings as texts or keywords, results that read well."""

import pydoc
from pathlib import Path

import pytest

import tolka
from tolka.config.command_line import translate_config
from tolka.config.typed import as_overrides


def test_help_shows_what_there_is_with_an_example_each() -> None:
    text = pydoc.render_doc(tolka, renderer=pydoc.plaintext)  # type: ignore[attr-defined]
    for name in ("train(", "translate(", "evaluate(", "class Translator", "class TrainConfig"):
        assert name in text
    for example in ('tolka.train(["model=lstm"', "tolka.translate(", "tolka.evaluate(", "tolka.load("):
        assert example in text
    assert set(tolka.__all__) <= set(dir(tolka))


@pytest.mark.parametrize(
    ("settings", "typed"),
    [
        ({"model": "lstm"}, ["model=lstm"]),
        ({"trainer": {"updates": 300, "max_minutes": 0.5}}, ["trainer.updates=300", "trainer.max_minutes=0.5"]),
        ({"model": {"name": "rnn", "bidirectional": True}}, ["model=rnn", "model.bidirectional=true"]),
        ({"run": {"name": "a=b (1)"}}, ["run.name=a=b (1)"]),
        ({"corpus": {"train": ["a,b", Path("c")]}}, ["corpus.train=['a,b','c']"]),
        ({"tokenizer": {"symbols": ["%s", "it's"]}}, ["tokenizer.symbols=['%s','it\\'s']"]),
        ({"reference": "test.de", "legacy": True}, ["reference=test.de", "legacy=true"]),
    ],
)
def test_keywords_are_settings(settings: dict[str, object], typed: list[str]) -> None:
    assert as_overrides(settings) == typed


def test_a_configuration_of_texts_is_one_of_keywords() -> None:
    texts = tolka.train_config(["model=lstm", "trainer.updates=3000", "corpus=files", "corpus.train=[a b,c=d]"])
    keywords = tolka.train_config(
        model="lstm", trainer={"updates": 3000}, corpus={"name": "files", "train": ["a b", "c=d"]}
    )
    assert texts == keywords
    assert texts.trainer.updates == 3000
    with pytest.raises(tolka.TolkaError, match=r"Did you mean 'trainer\.updates'"):
        tolka.train_config(trainer={"update": 3})


def test_a_configuration_is_complete() -> None:
    with pytest.raises(TypeError, match="a configuration is complete"):
        tolka.train(tolka.train_config(), model="lstm")
    with pytest.raises(TypeError, match="a configuration is complete"):
        tolka.translate("runs/mine", "a", translate_config([]), search="greedy")


@pytest.mark.parametrize("setting", ["input.prefix=none", "output.format=jsonl", "alignments=true"])
def test_settings_of_files_are_refused_for_texts(setting: str) -> None:
    with pytest.raises(tolka.TolkaError, match=r"are for the files of mt-translate, and here are none"):
        tolka.translate("runs/mine", "a", [setting])


def test_train_translate_evaluate(tiny: list[str], trained: Path, corpus: Path, tmp_path: Path) -> None:
    result = tolka.train(tiny, trainer={"updates": 6})
    assert "best model" in repr(result)
    assert "BLEU: nrefs:1|" in repr(result)
    (found,) = tolka.translate(result.model, "ferry pebble", search="greedy")
    assert repr(found).startswith("Translation(text='")
    assert "segments" not in repr(found)
    scored = tolka.evaluate(
        model=result.model, source=corpus / "test.xa", reference=corpus / "test.xb", metrics={"bootstrap": 0}
    )
    assert repr(scored).startswith("metric ")
    assert "BLEU: nrefs:1|case:mixed" in repr(scored)
    assert "PPL " in repr(scored)
    translator = tolka.load(result.model)
    assert repr(translator).startswith("Translator(xa to xb, Transformer, BeamConfig(")
