"""tolka as a library: the three jobs as functions, settings as texts or keywords, results that read well."""

import pydoc
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rows import each_row

import tolka
from tolka.config.command_line import translate_config
from tolka.config.typed import as_overrides, typed_settings


def test_help_shows_what_there_is_with_an_example_each() -> None:
    text = pydoc.render_doc(tolka, renderer=pydoc.plaintext)  # type: ignore[attr-defined]
    for name in ("train(", "translate(", "evaluate(", "class Translator", "class TrainConfig"):
        assert name in text
    for example in ('tolka.train(["model=lstm"', "tolka.translate(", "tolka.evaluate(", "tolka.load("):
        assert example in text
    assert set(tolka.__all__) <= set(dir(tolka))


@each_row(
    ("settings", "typed"),
    [
        ({"model": "lstm"}, ["model=lstm"]),
        ({"trainer": {"updates": 300, "max_minutes": 0.5}}, ["trainer.updates=300", "trainer.max_minutes=0.5"]),
        ({"model": {"name": "rnn", "bidirectional": True}}, ["model=rnn", "model.bidirectional=true"]),
        ({"run": {"name": "a=b (1)"}}, ["run.name=a=b (1)"]),
        ({"corpus": {"train": ["a,b", Path("c")]}}, ["corpus.train=['a,b','c']"]),
        ({"tokenizer": {"symbols": ["%s", "it's"]}}, ["tokenizer.symbols=['%s','it\\'s']"]),
        ({"reference": "test.de", "report": {"page": False}}, ["reference=test.de", "report.page=false"]),
        ({"resume": np.bool_(True), "search": {"beam_size": np.int8(3)}}, ["resume=true", "search.beam_size=3"]),
        ({"trainer": {"ema": np.float32(0.1), "updates": np.array(5)}}, ["trainer.ema=0.1", "trainer.updates=5"]),
        ({"corpus": {"weights": np.array([0.5, 2.0])}}, ["corpus.weights=[0.5,2.0]"]),
        ({"metrics": {"names": [np.str_("bleu")]}, "a": [np.bool_(False)]}, ["metrics.names=['bleu']", "a=[false]"]),
        ({"model": {"layers": torch.tensor(2)}}, ["model.layers=2"]),
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


@pytest.mark.parametrize(
    "given",
    ["trainer.updates=7", ["trainer.updates=7"], {"trainer": {"updates": 7}}, {"trainer.updates": np.int64(7)}, None],
)
def test_settings_are_a_text_several_or_a_mapping(given: Any) -> None:
    assert typed_settings(given, {"model": "lstm"}) == [*(["trainer.updates=7"] if given else []), "model=lstm"]


@each_row("function", [tolka.train, tolka.evaluate, tolka.train_config, partial(tolka.load, "runs/mine")])
@each_row(
    "given",
    [
        *(3, b"model=lstm", Path("runs/mine"), "runs/mine", [3], [{"model": "lstm"}], tolka.Translator),
        *({"trainer": {"updates": {"a": 1}}}, {"corpus": {"train": {"a"}}}, {"run": {"name": b"x"}}, {"model": len}),
    ],
)
def test_anything_else_is_a_type_error_in_one_line(function: Any, given: Any) -> None:
    with pytest.raises(TypeError) as caught:
        function(given)
    assert re.search(r"^[^\n]*(setting|must be a text, a number)[^\n]*$", str(caught.value))


def test_models_and_texts_of_a_wrong_type() -> None:
    with pytest.raises(TypeError, match="a model is a path, or several in a list"):
        tolka.load(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="lines must be a str or several of them"):
        tolka.translate("runs/mine", 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["hypothesis", "source", "language"])
def test_a_list_in_place_of_a_file_is_a_type_error(key: str) -> None:
    files = {"hypothesis": "a", "reference": "b", key: ["A text."]}
    with pytest.raises(TypeError, match=f"{key} is one name or path, and not a list: texts are read from the file"):
        tolka.evaluate(**files)  # type: ignore[arg-type]
    for settings in ({"run": {"name": ["a"]}}, {"corpus": {"source": ["en"]}}, {"search": {"glossary": ["a"]}}):
        with pytest.raises(TypeError, match="is one name or path"):
            as_overrides(settings)


@pytest.mark.slow
def test_python_m_tolka_runs_a_command_or_says_which_there_are() -> None:
    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([sys.executable, "-m", "tolka", *arguments], capture_output=True, text=True, check=False)

    done = run("translate", "nowhere")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: nowhere: there is no such model directory")
    assert run("mt-eval", "--version").stdout == f"{tolka.__version__}\n"
    known = "type python -m tolka train, translate, eval or serve"
    assert run("translat").stderr == f"error: 'translat' is no command: {known}\n"


def test_python_m_tolka_names_the_commands() -> None:
    done = subprocess.run([sys.executable, "-m", "tolka"], capture_output=True, text=True, check=True)
    assert re.findall(r"^  (\S+)", done.stdout, re.MULTILINE) == ["mt-train", "mt-translate", "mt-eval", "mt-serve"]


def test_help_begins_with_every_function() -> None:
    shown = pydoc.render_doc(tolka, renderer=pydoc.plaintext).split("PACKAGE CONTENTS")[0]  # type: ignore[attr-defined]
    assert [name for name in tolka.__all__ if name not in shown] == ["__version__"]


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
    translator = tolka.load(result.model, decoding={"backend": "torch"})
    assert repr(translator).startswith("Translator(xa to xb, Transformer, cpu, BeamConfig(")


def test_attention_of_a_translation_that_is_given_or_made(trained: Path) -> None:
    translator = tolka.load(trained, search="greedy", decoding={"device": "cpu"})
    tokenizer, text = translator.tokenizer, "lantern ferry ."
    (found,) = tolka.attention(translator, text)
    (given,) = tolka.attention(trained, text, "tolo mirka", decoding={"device": "cpu"})
    ((_, made),) = translator.translate(text)[0].segments
    assert found.rows == [*tokenizer.target_pieces(made), "</s>"]
    assert given.rows == [*tokenizer.target_pieces(tokenizer.encode_target(["tolo mirka"])[0]), "</s>"]
    for each in (found, given):
        assert each.columns == [*tokenizer.source_pieces(tokenizer.encode_source([text])[0]), "</s>"]
        assert np.shape(each.weights) == (len(each.rows), len(each.columns))
        assert np.allclose(np.sum(each.weights, axis=1), 1.0, atol=1e-5)
