"""A page of HTML: its runtime, run by Node, translates as tolka does; what is refused."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from random_page_model import DIRECTION, lines, write_random_model

from conftest import Command
from tolka.engines.options import DecodingConfig
from tolka.errors import CheckpointError, ConfigError
from tolka.formats.html.model import about_tokenizer, check_expressible, pack_weights
from tolka.interchange import export_html as module
from tolka.interchange.export_html import NodeSide, export_html, settings_of
from tolka.interchange.parity import TolkaSide
from tolka.kernels.quantized import Int8Matrix
from tolka.model_directory.combine import quantise_model
from tolka.model_directory.read import SavedModel, load_model
from tolka.model_directory.weights import read_finite
from tolka.models.rnn import RnnConfig
from tolka.search.options import BeamConfig, GreedyConfig, SearchConfig
from tolka.translation.request import Request
from tolka.translation.translator import Translator

NODE = shutil.which("node") or ""
needs_node = pytest.mark.skipif(not NODE, reason="node is not on PATH: the page's runtime was not run")
SHORT: dict[str, Any] = {"max_length_factor": 1.25, "max_length_extra": 5}  # random models seldom end by themselves


def translator_of(saved: SavedModel, search: SearchConfig) -> Translator[Any]:
    return Translator.of(saved, search, DecodingConfig(device="cpu", split="never"))


def page_of(folder: Path, monkeypatch: pytest.MonkeyPatch, dtype: str = "fp32") -> Path:
    """A page of the model in `folder`, without the comparison."""
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "which", lambda name: None)
        export_html([folder], folder.with_suffix(f".{dtype}.html"), dtype)
    return folder.with_suffix(f".{dtype}.html")


def searches(seed: int) -> list[SearchConfig]:
    return [GreedyConfig(**SHORT), BeamConfig(length_penalty=(0.6, 1.0, 2.0)[seed % 3], **SHORT)]


def translations_of(folder: Path, seed: int, count: int, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What tolka and the page of a random model translate lines into, by greedy and by beam search."""
    write_random_model(folder, seed)
    saved, texts = load_model(folder), lines(count, seed)
    side = NodeSide(NODE, page_of(folder, monkeypatch), 0, saved, DIRECTION)
    pairs = list[tuple[str, str]]()
    for search in searches(seed):
        results = side.results(texts, search=settings_of(search))
        pairs += zip(translator_of(saved, search)(texts), [each["text"] for each in results], strict=True)
    return pairs


def check(seeds: Iterable[int], count: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [(n, *each) for n in seeds for each in translations_of(folder / f"{n}", n, count, monkeypatch)]
    assert [(seed, ours, theirs) for seed, ours, theirs in pairs if ours != theirs] == []
    assert len({ours for _, ours, _ in pairs}) > 0.4 * len(pairs), "greedy and beam search say the same of most lines"


@needs_node
def test_random_models_translate_as_in_tolka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three: an LSTM with attention and tags; a Transformer; one with an SSRU."""
    check((0, 5, 1), 5, tmp_path, monkeypatch)


@needs_node
@pytest.mark.slow
def test_sixty_random_models_translate_as_in_tolka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(range(100, 160), 20, tmp_path, monkeypatch)


@needs_node
def test_alternatives_scores_and_attention(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_random_model(tmp_path / "m", 2)
    saved, texts = load_model(tmp_path / "m"), lines(4, 1)
    search = BeamConfig(n_best=4, **SHORT)
    translator = translator_of(saved, search)
    translations = translator.translate(texts, Request(scored=True))
    side = NodeSide(NODE, page_of(tmp_path / "m", monkeypatch), 0, saved, DIRECTION)
    results = side.results(texts, search=settings_of(search), alternatives=4, attention=True)
    for ours, theirs, (maps,) in zip(translations, results, translator.attention(translations), strict=True):
        assert [each["text"] for each in theirs["alternatives"]] == [each.text for each in ours.candidates]
        scores = [each.score for each in ours.candidates]
        assert [each["score"] for each in theirs["alternatives"]] == pytest.approx(scores, rel=1e-5)
        assert (theirs["attention"]["source"], theirs["attention"]["target"]) == (maps.columns, maps.rows)
        weights = np.array(theirs["attention"]["weights"]).reshape(len(maps.rows), -1)
        np.testing.assert_allclose(weights, maps.weights, atol=1e-5)


@needs_node
def test_int8_is_what_its_integers_say_with_and_without_simd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against tolka with weights that are rounded before; the plain kernels give the very same logits."""
    write_random_model(tmp_path / "m", 3)
    saved = load_model(tmp_path / "m")
    with torch.no_grad():
        for parameter in saved.model.parameters():
            if parameter.ndim == 2 and min(parameter.shape) >= 32:
                values, scales = Int8Matrix.of(parameter)
                parameter.copy_(values * scales[:, None])
    pairs = [(source, source.upper()) for source in lines(3, 2)]
    side = NodeSide(NODE, page_of(tmp_path / "m", monkeypatch, "int8"), 0, saved, DIRECTION)
    ours, theirs = TolkaSide(saved).logits(pairs), side.logits(pairs)
    assert ours is not None
    assert theirs is not None
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(other, one, atol=2e-3 * np.abs(one).max())
    forced = {"forced": [[source, [5, 6]] for source, _ in pairs]}
    assert side.run({**forced, "simd": True}) == side.run({**forced, "simd": False})


def test_a_model_in_int8_is_taken_as_it_is(tmp_path: Path) -> None:
    config = write_random_model(tmp_path / "m", 5)
    assert config.d_model >= 32
    quantise_model(tmp_path / "m", tmp_path / "q")
    tensors = read_finite(tmp_path / "q" / "model.safetensors")
    listed, content = pack_weights(tensors, "int8")
    of_int8 = {each["name"]: each for each in listed if each["dtype"] == "int8"}
    stored = {name for name, tensor in tensors.items() if tensor.dtype == torch.int8}
    assert stored
    assert stored <= of_int8.keys()
    for name in stored:
        rows, columns = of_int8[name]["shape"]
        width = -(-columns // 16) * 16  # with zeros behind each row
        values = np.frombuffer(content, np.int8, rows * width, of_int8[name]["offset"]).reshape(rows, width)
        scales = np.frombuffer(content, "<f4", rows, of_int8[name]["scales"])
        assert (values[:, :columns] == tensors[name].numpy()).all()
        assert not values[:, columns:].any()
        assert (scales == tensors[f"{name}_scale"].numpy()).all()


def test_without_node_nothing_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_random_model(tmp_path / "m", 0)
    said: list[str] = []
    monkeypatch.setattr(shutil, "which", lambda name: None)
    export_html([tmp_path / "m", tmp_path / "m"], tmp_path / "page.html", say=said.append)
    assert [line[:4] for line in said] == ["note"]
    assert "nothing was compared; PATH must name its folder" in said[0]
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "made </script>" not in text  # the name of the run
    about = json.loads(re.search(r'id="about">(.*?)</script>', text)[1])  # type: ignore[index]
    assert [model["title"] for model in about["models"]] == ["made </script><!-- & co."] * 2
    assert "Parity" not in about["models"][0]["card"]


@needs_node
def test_the_gate_refuses_another_translation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of weights that were written in another order; the file does not appear, and nothing is left."""
    write_random_model(tmp_path / "m", 0)

    def mixed(tensors: Any, dtype: str) -> Any:
        return pack_weights({**tensors, "readout.weight": tensors["readout.weight"].flip(0)}, dtype)

    export_html([tmp_path / "m"], tmp_path / "sound.html", "fp32", lines(8, 1))
    monkeypatch.setattr(module, "pack_weights", mixed)
    with pytest.raises(CheckpointError, match=r"the page does not translate like tolka: .*First line that differs"):
        export_html([tmp_path / "m"], tmp_path / "page.html", "fp32", lines(8, 1))
    sound = iter([True, False])
    monkeypatch.setattr(module, "pack_weights", lambda *each: (pack_weights if next(sound) else mixed)(*each))
    with pytest.raises(CheckpointError, match=r"model 2 of the page \(.*\) does not translate like tolka"):
        export_html([tmp_path / "m", tmp_path / "m"], tmp_path / "page.html", "fp32", lines(8, 1))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "sound.html"]
    assert "## Parity" in (tmp_path / "sound.html").read_text(encoding="utf-8")


@needs_node
def test_each_direction_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a page whose tags of the second direction are those of the first, which alone is as it should be."""
    write_random_model(tmp_path / "m", 0, (DIRECTION, DIRECTION.swapped))
    said = list[str]()
    export_html([tmp_path / "m"], tmp_path / "page.html", "fp32", lines(20, 1), say=said.append)
    assert [line[:46] for line in said] == [
        "Of 10 lines, the page from xa to xb and tolka ",
        "Of 10 lines, the page from xb to xa and tolka ",
    ]
    card = json.loads(re.search(r'id="about">(.*?)</script>', (tmp_path / "page.html").read_text("utf-8"))[1])  # type: ignore[index]
    assert card["models"][0]["card"].endswith("\n## Parity\n\n{}\n\n{}\n".format(*said))

    def same_tags(tokenizer: Any, directions: Any) -> dict[str, Any]:
        about = about_tokenizer(tokenizer, directions)
        return {**about, "directions": dict.fromkeys(about["directions"], about["directions"][DIRECTION.code])}

    monkeypatch.setattr(module, "about_tokenizer", same_tags)
    with pytest.raises(CheckpointError, match="the page from xb to xa does not translate like tolka"):
        export_html([tmp_path / "m"], tmp_path / "other.html", "fp32", lines(20, 1))


@needs_node
def test_a_damaged_file_is_named_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_random_model(tmp_path / "m", 0)
    page = page_of(tmp_path / "m", monkeypatch)
    whole = page.read_text(encoding="utf-8")
    for damage in (
        lambda text: re.sub(r'(id="weights-0">.{4000})[^<]*', r"\1", text),
        lambda text: text.replace('"name":"readout.weight"', '"name":"readout.height"').replace('"rnn"', '"nnr"'),
    ):
        page.write_text(damage(whole), encoding="utf-8")
        with pytest.raises(CheckpointError, match="This file is damaged"):
            NodeSide(NODE, page, 0, load_model(tmp_path / "m"), DIRECTION).results(["ferry"])


def test_what_a_page_cannot_compute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class PluginConfig(RnnConfig):
        pass

    for options in (PluginConfig(name="mine"), replace(RnnConfig(), name="rnn")):
        vars(options)["cell"] = "own"
        with pytest.raises(ConfigError, match=r"a page cannot compute model=.*model.cell=rnn, lstm, gru"):
            check_expressible(options, "runs/a")
    write_random_model(tmp_path / "m", 0)
    monkeypatch.setattr(module, "_LARGEST", 1000)
    with pytest.raises(ConfigError, match="a page has at most 0; larger models leave by --to ctranslate2, marian or h"):
        export_html([tmp_path / "m"], tmp_path / "page.html")
    with pytest.raises(ConfigError, match=r"--dtype \(bfloat16\) is unknown to a page. Known: int8, fp32"):
        export_html([tmp_path / "m"], tmp_path / "page.html", "bfloat16")
    assert not (tmp_path / "page.html").exists()


@needs_node
def test_the_worker_listens_to_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It splits, reports sentences one by one, answers a repeated one at once, and leaves a text when another comes."""
    write_random_model(tmp_path / "m", 3)
    page = page_of(tmp_path / "m", monkeypatch)
    script = Path(__file__).with_name("html_worker.mjs")
    result = subprocess.run([NODE, str(script), str(page)], capture_output=True, text=True)
    assert (result.returncode, result.stdout.splitlines()[-1:]) == (0, ["as expected"]), result.stderr


def test_command(command: Command, tmp_path: Path) -> None:
    write_random_model(tmp_path / "m", 0)
    (tmp_path / "there.html").touch()
    outputs: list[tuple[list[object], int, str]] = [
        (["-o", tmp_path / "there.html"], 2, "is there already; name another file to write"),
        (["-o", tmp_path / "m" / "page.html"], 1, "is inside the model"),
        ([], 2, "needs -o OUT, the file to write"),
    ]
    for words, code, message in outputs:
        refused = command("mt-train", "export", tmp_path / "m", "--to", "html", *words)
        assert (refused.code, message in refused.err) == (code, True), refused.err
    refused = command("mt-train", "export", tmp_path / "m", tmp_path / "m", "--to", "ctranslate2", "-o", tmp_path / "c")
    assert (refused.code, "--to ctranslate2 takes one model" in refused.err) == (2, True), refused.err
