"""Exports to Marian: what is in the folder, what comes back, what is refused, and Bergamot's engine if it is there."""

import json
import os
import random
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import yaml
from marian_files import STUDENT, random_student, write_student, write_zip_of_opus_mt
from marian_folder import write_by_hand
from random_model import TEXTS
from random_page_model import DIRECTION, write_random_model
from rows import each_row
from safetensors.torch import load_file, save_file

from conftest import Command
from tolka.engines.options import DecodingConfig
from tolka.errors import CheckpointError, ConfigError
from tolka.formats.any_model import load_any
from tolka.interchange.huggingface import import_huggingface
from tolka.interchange.marian import ENGINE, BergamotSide, export_marian
from tolka.interchange.parity import TolkaSide, compare, made_up_lines
from tolka.model_directory.read import load_model
from tolka.models.rnn import RnnConfig
from tolka.search.options import GreedyConfig
from tolka.text.direction import Direction
from tolka.translation.opening import open_model

SSRU = replace(STUDENT, decoder="ssru", d_ff=128)


@pytest.fixture(autouse=True)
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENGINE, raising=False)


def written(folder: Path, out: Path, dtype: str = "float32") -> list[str]:
    """Export a model; return what was said."""
    said = list[str]()
    export_marian(folder, out, dtype, [], said.append)
    return said


def translations(folder: Path, lines: Sequence[str] = TEXTS) -> list[str]:
    return open_model(folder, GreedyConfig(max_length_extra=5), DecodingConfig(device="cpu", split="never"))(lines)


@pytest.mark.parametrize(
    ("config", "shared"), [(STUDENT, True), (replace(SSRU, share_embeddings="none"), False)], ids=["one", "two"]
)
def test_a_folder_translates_as_the_model_does(config: Any, shared: bool, tmp_path: Path) -> None:
    made, out = write_student(tmp_path / "made", config, shared), tmp_path / "out"
    (said,) = written(made, out)
    assert said == (
        "note: TOLKA_BERGAMOT names no folder of @browsermt/bergamot-translator, the engine of Firefox, so that its "
        "translations were not compared with tolka's"
    )
    vocabularies = ["vocab.spm"] if shared else ["source.spm", "target.spm"]
    others = ["README.md", "config.intgemm8bitalpha.yml", "config.yml", "model.bin", "model_info.json"]
    assert sorted(path.name for path in out.iterdir()) == sorted([*others, *vocabularies])
    settings = yaml.safe_load((out / "config.yml").read_text())
    assert (settings["models"], settings["vocabs"]) == (["model.bin"], [vocabularies[0], vocabularies[-1]])
    assert json.loads((out / "model_info.json").read_text())["srcTags"] == {"xa": "xa"}
    assert "Not compared" in (out / "README.md").read_text(encoding="utf-8")
    found = translations(out)
    assert found == translations(made)
    assert len({*found}) > 1
    # In int8 every weight is at most half a step away.
    written(made, tmp_path / "int8", "int8")
    assert (tmp_path / "int8" / "model.bin").stat().st_size < 0.5 * (out / "model.bin").stat().st_size
    whole, rounded = (load_any(folder).model.state_dict() for folder in (out, tmp_path / "int8"))
    for name, tensor in whole.items():
        most = float(tensor.abs().max())
        difference = float((tensor - rounded[name]).abs().max())
        assert difference <= (most / 253 if tensor.ndim == 2 else 0.0), name


def test_what_was_imported_goes_out_again(tmp_path: Path) -> None:
    said = list[str]()
    out = tmp_path / "out"
    written(write_student(tmp_path / "made", SSRU), out)
    import_huggingface(out, tmp_path / "in", None, [], said.append)
    assert load_model(tmp_path / "in").config["corpus"] == {"source": "xa", "target": "xb"}
    written(tmp_path / "in", tmp_path / "again")
    assert (tmp_path / "again" / "model.bin").read_bytes() == (out / "model.bin").read_bytes()
    assert (tmp_path / "again" / "vocab.spm").read_bytes() == (out / "vocab.spm").read_bytes()


def test_a_zip_of_opus_mt_goes_out(tmp_path: Path) -> None:
    """Its subwords and ids are of two files, and each side's SentencePiece model has some that the ids lack."""
    opus, out = write_zip_of_opus_mt(tmp_path / "zip", tmp_path / "hf"), tmp_path / "out"
    written(opus, out)
    one, other = load_any(opus), load_any(out)
    lines = made_up_lines(one.tokenizer, 30)
    assert translations(out, lines) == translations(opus, lines)
    assert other.tokenizer.source_size % 8 == 2  # with our <pad> and <s>
    assert other.tokenizer.shared
    with pytest.raises(ConfigError, match=r"zip does not say the languages \(tokenizer_config.json\): add them"):
        import_huggingface(opus, tmp_path / "in", None, [], print)


@each_row(
    ("config", "said"),
    [
        (replace(STUDENT, norm="pre"), "Marian has no model.norm=pre (it has post): train with model=transformer_stud"),
        (replace(STUDENT, activation="gelu"), "no model.activation=gelu (it has swish or relu)"),
        (replace(STUDENT, normalization="rmsnorm"), "no model.normalization=rmsnorm (it has layernorm)"),
        (
            replace(STUDENT, positions="learned"),
            "no model.positions=learned (it has sinusoidal_marian or sinusoidal_hal",
        ),
        (replace(STUDENT, scale_embeddings=False), "no model.scale_embeddings=False (it has True)"),
        (
            replace(STUDENT, positions="sinusoidal_halves"),
            "model.positions=sinusoidal_halves, which Marian computes ot",
        ),
        (replace(STUDENT, decoder_start="bos"), "(model.decoder_start=bos): train with model.decoder_start=zero"),
        (RnnConfig(d_model=32), "mt-train recipe=distillation teacher="),
    ],
)
def test_what_marian_does_not_have(config: Any, said: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("refused")
    with pytest.raises(ConfigError) as caught:
        written(write_student(folder / "made", config), folder / "out")
    assert said in str(caught.value)
    assert not (folder / "out").exists()


def test_a_row_of_zeros_is_a_start_from_zeros(tmp_path: Path) -> None:
    """As in a folder of Hugging Face that was converted from Marian's, whose positions are those of its class."""
    folder, out = write_by_hand(tmp_path / "hf"), tmp_path / "out"
    with pytest.raises(ConfigError, match="Marian's decoder starts from zeros"):
        written(folder, out)
    tensors = load_file(folder / "model.safetensors")
    tensors["model.shared.weight"][-1] = 0.0
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ConfigError, match=r"has model.positions=sinusoidal_halves, which Marian computes otherwise"):
        written(folder, out)


def test_a_model_of_several_directions(tmp_path: Path) -> None:
    """A student is of one direction, whatever its teacher is."""
    write_random_model(tmp_path / "recurrent", 0, (DIRECTION, DIRECTION.swapped))
    for folder in (write_by_hand(tmp_path / "tagged", tags=True), tmp_path / "recurrent"):
        with pytest.raises(ConfigError) as caught:
            written(folder, tmp_path / "out")
        assert str(caught.value).startswith(f"{folder} is of several directions, and Marian's programs translate")
        assert "one direction at a time (without corpus.both_directions)" in str(caught.value)


def test_what_is_typed(tmp_path: Path, command: Command) -> None:
    made = write_student(tmp_path / "made")
    narrow = write_student(tmp_path / "narrow", replace(STUDENT, d_model=48))
    for typed, said in (
        ([made, "--dtype", "float16"], "--dtype (float16) of a Marian folder must be one of float32, int8"),
        ([narrow, "--dtype", "int8"], "--dtype int8 needs widths that are multiples of 64, and model.d_model is 48"),
    ):
        refused = command("mt-train", "export", *typed, "--to", "marian", "-o", tmp_path / "out")
        assert refused.code == 2
        assert said in refused.err
    assert command("mt-train", "export", made, "--to", "marian", "-o", tmp_path / "out").code == 0
    (tmp_path / "in").write_text("lantern ferry .\n")
    assert command("mt-translate", tmp_path / "out", tmp_path / "in", "-o", tmp_path / "text").code == 0
    assert (tmp_path / "text").read_text().count("\n") == 1


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("cat", "Bergamot's engine 7 in float32 does not translate like tolka: 0 of 64 lines are identical"),
        ("echo '[now] Error: no such model' >&2; exit 3", "cannot translate with it: [now] Error: no such mode"),
    ],
)
def test_an_engine_that_translates_otherwise(
    script: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    (package / "worker").mkdir(parents=True)
    made = write_student(tmp_path / "made")
    monkeypatch.setenv(ENGINE, str(package))
    with pytest.raises(ConfigError, match=r"is not the folder of @browsermt/bergamot-translator: it has no worker"):
        written(made, tmp_path / "out")
    (package / "worker" / "bergamot-translator-worker.wasm").touch()
    (package / "package.json").write_text('{"version": "7"}')
    (tmp_path / "node").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "node").chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(CheckpointError) as caught:
        written(made, tmp_path / "out")
    assert said in str(caught.value)
    assert not (tmp_path / "out").exists()


PACKAGE = os.environ.get(ENGINE)
needs_engine = pytest.mark.skipif(not PACKAGE, reason=f"{ENGINE} names no folder of @browsermt/bergamot-translator")


@pytest.mark.slow
@needs_engine
@pytest.mark.parametrize("first", [0, 10, 20, 30])
def test_forty_random_models_in_bergamots_engine(first: int, tmp_path: Path) -> None:
    """Every line is equal in float32; -rP shows how many are in int8."""
    different, texts, equal, bleu = list[Any](), list[int](), list[int](), list[float]()
    for seed in range(first, first + 10):
        draw, step = random.Random(seed), 64 if seed % 2 else 1  # every second one has widths for int8
        shared = draw.choice([True, False])
        made = write_student(tmp_path / f"{seed}", random_student(draw, shared, step), shared, seed)
        saved = load_model(made)
        lines, ours = made_up_lines(saved.tokenizer, 30), TolkaSide(saved, has_logits=False, factor=2)
        for dtype in ("float32", "int8")[: 1 + seed % 2]:
            out = tmp_path / f"{seed}-{dtype}"
            written(made, out, dtype)
            vocabularies = ["vocab.spm"] if shared else ["source.spm", "target.spm"]
            parity = compare(ours, BergamotSide(out, vocabularies, dtype, Path(str(PACKAGE))), lines)
            if dtype == "int8":
                equal, bleu = [*equal, parity.identical], [*bleu, parity.bleu.value]
            elif parity.first:
                different.append((seed, parity))
            texts.append(parity.different)
    print(f"float32: all lines of {10 - len(different)} models equal; different texts of 30 (median): {median(texts)}")
    print(f"int8: {sum(equal)} of {30 * len(equal)} lines equal; BLEU between both (median): {median(bleu):.1f}")
    assert different == []


@pytest.mark.slow
@needs_engine
def test_folders_in_both_directions_with_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENGINE, str(PACKAGE))
    (said,) = written(write_student(tmp_path / "made", SSRU), tmp_path / "out")
    assert said.startswith("Of 64 lines, Bergamot's engine 0.4.9 in float32 and tolka translate 64 identically")
    opus = write_zip_of_opus_mt(tmp_path / "zip", tmp_path / "hf")
    for folder in (tmp_path / "out", opus):
        lines = list[str]()
        import_huggingface(folder, tmp_path / f"{folder.name}-in", Direction("en", "de"), [], lines.append)
        assert "translate 64 identically" in lines[0]
