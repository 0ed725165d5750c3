"""Models stored in int8: translate as decoding.precision=int8 does, are a quarter of the size, and are not trained."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from conftest import Command, sentences
from tolka.data.batch import EOS
from tolka.engines.options import DecodingConfig
from tolka.engines.torch_engine import convert_model
from tolka.errors import CheckpointError, ConfigError
from tolka.model_directory.combine import quantise_model
from tolka.model_directory.read import load_model
from tolka.model_directory.verify import checked_manifest, write_manifest
from tolka.model_directory.write import rescore, snapshot
from tolka.models.base import ModelConfig, Seq2Seq
from tolka.models.rnn.config import RnnConfig
from tolka.models.transformer import TransformerConfig
from tolka.search.beam import BeamConfig
from tolka.translation.opening import open_model

MODELS: dict[str, ModelConfig] = {
    "transformer": TransformerConfig(d_model=64, layers=2),
    "swiglu": TransformerConfig(d_model=64, layers=1, positions="rotary", normalization="rmsnorm", activation="swiglu"),
    "nothing shared": TransformerConfig(d_model=64, layers=1, positions="learned", share_embeddings="none"),
    "output bias": TransformerConfig(d_model=64, layers=1, norm="post", output_bias=True),
    "ssru": TransformerConfig(d_model=64, layers=1, decoder="ssru"),
    "narrow": TransformerConfig(d_model=16, layers=1),
    "lstm": RnnConfig(d_model=64, attention="additive", bidirectional=True),
}


def written(trained: Path, config: ModelConfig, folder: Path) -> Path:
    """Write a model with random weights and the tokenizer of a run."""
    saved = load_model(trained)
    torch.manual_seed(3)
    model = config.build(saved.tokenizer.source_size, saved.tokenizer.target_size, saved.tokenizer.shared)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.1)
    settings = {**saved.config, "model": asdict(config)}
    snapshot(model, saved.tokenizer, settings, saved.sources, saved.scores, "").write(folder)
    return folder


def first_scores(model: Seq2Seq) -> torch.Tensor:
    source = torch.tensor([[4, 5, 6, EOS], [7, EOS, 0, 0]])
    with torch.inference_mode():
        features, _ = model.step(torch.ones(2, 1, dtype=torch.long), model.start(source, torch.tensor([4, 2])))
        return model.logits(features)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_it_translates_to_the_last_bit_as_the_model_does_in_int8(trained: Path, tmp_path: Path, name: str) -> None:
    folder = written(trained, MODELS[name], tmp_path / "model")
    quantise_model(folder, tmp_path / "int8")
    stored = load_model(tmp_path / "int8", or_int8=True).model
    assert torch.equal(first_scores(stored), first_scores(convert_model(load_model(folder).model, "int8")))
    texts, search = [source for source, _ in sentences(6, seed=9)], BeamConfig(beam_size=2, max_length_extra=4)
    wanted = open_model(folder, search, DecodingConfig(device="cpu", precision="int8")).translate(texts)
    for precision in ("fp32", "int8"):
        found = open_model(tmp_path / "int8", search, DecodingConfig(precision=precision)).translate(texts)
        assert [each.text for each in found] == [each.text for each in wanted]
        assert [each.score for each in found] == [each.score for each in wanted]


def test_it_is_a_quarter_of_the_size(trained: Path, tmp_path: Path) -> None:
    folder = written(trained, TransformerConfig(d_model=256, layers=2), tmp_path / "model")
    quantise_model(folder, tmp_path / "int8")
    before, after = ((each / "model.safetensors").stat().st_size for each in (folder, tmp_path / "int8"))
    assert 0.25 < after / before < 0.27
    manifest = json.loads((tmp_path / "int8" / "manifest.json").read_text())
    assert (manifest["format"], manifest["weights"]) == (1, "int8")


def test_it_says_what_its_scores_are_of(command: Command, trained: Path, tmp_path: Path) -> None:
    assert command("mt-train", "quantise", trained, "-o", tmp_path / "int8").code == 0
    scores = json.loads((tmp_path / "int8" / "scores.json").read_text())
    assert scores["test"] == load_model(trained).scores["test"]
    assert scores["measured"] == "in fp32, before the weights were quantised to int8"
    card = (tmp_path / "int8" / "README.md").read_text()
    assert "Scores were measured in fp32, before the weights were quantised to int8." in card
    rescore(tmp_path / "int8", scores, card)
    assert checked_manifest(tmp_path / "int8").int8


def test_translating_and_scoring_with_it(command: Command, trained: Path, corpus: Path, tmp_path: Path) -> None:
    assert command("mt-train", "quantise", trained, "-o", tmp_path / "int8").code == 0
    source, reference = corpus / "test.xa", corpus / "test.xb"
    wanted = command("mt-translate", trained, source, "decoding.precision=int8", "-o", tmp_path / "one")
    found = command("mt-translate", tmp_path / "int8", source, "-o", tmp_path / "other")
    assert (wanted.code, found.code) == (0, 0)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    scored = command("mt-eval", tmp_path / "int8", f"source={source}", f"reference={reference}", "metrics.bootstrap=0")
    assert (scored.code, "BLEU" in scored.out) == (0, True)


def test_it_is_for_translating_only(command: Command, tiny: list[str], trained: Path, tmp_path: Path) -> None:
    int8 = tmp_path / "int8"
    assert command("mt-train", "quantise", trained, "-o", int8).code == 0
    words = f"{int8} has its weights in int8, for translating only: give the model that it was made from"
    tuned = [*tiny, f"run.init_from={int8}"]
    for arguments in (
        ["average", trained, int8, "-o", tmp_path / "out"],
        ["average", int8, trained, "-o", tmp_path / "out"],
        ["merge", int8, trained, "-o", tmp_path / "out"],
        ["quantise", int8, "-o", tmp_path / "out"],
        [each for each in tuned if not each.startswith(("model", "tokenizer"))],
    ):
        outcome = command("mt-train", *arguments)
        assert (outcome.code, outcome.error) == (1, words), arguments
    assert not (tmp_path / "out").exists()


def test_another_dtype_or_device_is_refused(trained: Path, tmp_path: Path) -> None:
    quantise_model(trained, tmp_path / "int8")
    for decoding, setting in (
        (DecodingConfig(precision="bf16"), "decoding.precision=bf16"),
        (DecodingConfig(precision="fp16"), "decoding.precision=fp16"),
    ):
        with pytest.raises(ConfigError, match=f"{setting} is not for a model stored in int8, which translates in int8"):
            open_model(tmp_path / "int8", decoding=decoding)


def test_on_a_gpu_s_machine_it_takes_the_cpu(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quantise_model(trained, tmp_path / "int8")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert open_model(tmp_path / "int8").engine.device.type == "cpu"
    with pytest.raises(ConfigError, match=r"decoding\.device=cuda is not for a model stored in int8"):
        open_model(tmp_path / "int8", decoding=DecodingConfig(device="cuda"))


def test_where_torch_has_no_int8(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quantise_model(trained, tmp_path / "int8")
    monkeypatch.setattr("tolka.model_directory.weights.supports_int8", lambda: False)
    with pytest.raises(CheckpointError, match="this build of torch has no int8 multiplication"):
        load_model(tmp_path / "int8", or_int8=True)


def test_weights_that_do_not_fit_are_refused(trained: Path, tmp_path: Path) -> None:
    folder = written(trained, MODELS["transformer"], tmp_path / "model")
    quantise_model(folder, tmp_path / "int8")
    path, sources = tmp_path / "int8" / "model.safetensors", load_model(folder).sources
    whole = load_file(path)
    name = "encoder.0.feedforward.inner.weight"
    for changed in (
        {**whole, name: whole[name].float()},
        {**whole, name: whole[name][:5].clone()},
        {**whole, f"{name}_scale": whole[f"{name}_scale"][:5].clone()},
        {key: tensor for key, tensor in whole.items() if key != f"{name}_scale"},
        {key: tensor for key, tensor in whole.items() if key != "target_embedding.weight_scale"},
    ):
        save_file(changed, path)
        write_manifest(tmp_path / "int8", sources, int8=True)
        with pytest.raises(CheckpointError, match=r"does not fit config.yaml; 1 tensors differ: \S+weight"):
            load_model(tmp_path / "int8", or_int8=True)


def test_a_larger_model_than_the_file_is_not_allocated(trained: Path, tmp_path: Path) -> None:
    quantise_model(trained, tmp_path / "int8")
    saved = load_model(trained)
    settings = {**saved.config, "model": {**saved.config["model"], "d_ff": 30_000, "d_model": 4096}}
    whole = snapshot(saved.model, saved.tokenizer, settings, saved.sources, {}, "")
    replace(whole, weights=load_file(tmp_path / "int8" / "model.safetensors"), int8=True).write(tmp_path / "int8")
    with pytest.raises(CheckpointError, match=r"bytes of weights, and model\.safetensors has"):
        load_model(tmp_path / "int8", or_int8=True)
