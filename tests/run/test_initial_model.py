"""The weights that a training begins with: fresh ones, or those of a model, with rows for what is new to it."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from random_model import tokenizer_of
from rows import each_row

from tolka.config.command_line import train_config
from tolka.errors import ConfigError
from tolka.model_directory.read import SavedModel
from tolka.model_directory.verify import TrainingSources
from tolka.models.options import ModelConfig
from tolka.models.seq2seq import Seq2Seq
from tolka.models.transformer.config import TransformerConfig
from tolka.run.initial_model import check_fits, initial_model
from tolka.tokenizer.extension import add_tags
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.training.finetuning import FinetuningConfig
from tolka.training.options import TrainerConfig

OPTIONS = TransformerConfig(d_model=8, heads=2, layers=1, share_embeddings="all")
ALL, CPU = FinetuningConfig(), torch.device("cpu")
# Two languages are known, and a third is added: its tag is the last row.
KNOWN = add_tags(tokenizer_of(shared=True), ["xa", "xb"], "both")
EXTENDED = add_tags(KNOWN, ["xc"], "both")


def start(tokenizer: Tokenizer = KNOWN) -> SavedModel:
    torch.manual_seed(3)
    model = OPTIONS.build(tokenizer.source_size, tokenizer.target_size, tokenizer.shared)
    return SavedModel(Path("old"), model, tokenizer, {}, TrainingSources(40), {})


def state_of(saved: SavedModel) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in saved.model.state_dict().items()}


def made(
    tokenizer: Tokenizer,
    saved: SavedModel | None,
    finetuning: FinetuningConfig = ALL,
    options: ModelConfig = OPTIONS,
    like: dict[str, str] | None = None,
) -> tuple[Seq2Seq, list[str]]:
    log: list[str] = []
    config = replace(train_config(["optimizer=adamw"]), model=options, finetuning=finetuning)
    return initial_model(config, tokenizer, saved, like or {}, log.append), log


def test_fresh_weights_are_those_of_the_seed() -> None:
    torch.manual_seed(3)
    model, log = made(KNOWN, None)
    torch.testing.assert_close(model.state_dict(), start().model.state_dict(), rtol=0, atol=0)
    assert log == []
    assert all(weight.requires_grad for weight in model.parameters())


def test_the_weights_of_a_model_which_leave_its_memory() -> None:
    saved = start()
    before = state_of(saved)
    torch.manual_seed(99)
    model, log = made(KNOWN, saved)
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    assert log == ["weights, sizes and tokenizer: from old"]
    assert {weight.device.type for weight in saved.model.parameters()} == {"meta"}


@each_row("like", ["xa", "xb"])
def test_the_tag_of_a_new_language_begins_as_that_of_a_known_one(like: str) -> None:
    saved = start()
    old = state_of(saved)["target_embedding.weight"]
    model, _ = made(EXTENDED, saved, like={"xc": like})
    new = model.state_dict()["target_embedding.weight"]
    assert new.shape == (KNOWN.target_size + 1, 8)
    assert torch.equal(new[:-1], old)
    assert torch.equal(new[-1], old[KNOWN.tag_ids[1][like]])


def test_another_new_row_is_the_mean_of_those_that_spell_it() -> None:
    saved = start()
    old = state_of(saved)["target_embedding.weight"]
    model, _ = made(EXTENDED, saved)
    _, *spelt = KNOWN.encode_target(["__xc__"])[0]  # after the blank: "_" four times, "x" and "c"
    assert len(spelt) == 6
    row = model.state_dict()["target_embedding.weight"][-1]
    torch.testing.assert_close(row, sum(old[number] for number in spelt) / 6)


def trained_tensors(model: Seq2Seq) -> set[str]:
    return {name for name, weight in model.named_parameters() if weight.requires_grad}


def test_frozen_parts_have_the_old_weights_and_are_not_trained() -> None:
    saved = start()
    before = state_of(saved)
    model, _ = made(KNOWN, saved, FinetuningConfig(freeze=["encoder", "target_embedding"]))
    assert {name.split(".")[0] for name in trained_tensors(model)} == {"decoder", "decoder_norm", "encoder_norm"}
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)


def test_of_a_frozen_embedding_the_new_rows_are_trained() -> None:
    model, _ = made(EXTENDED, start(), FinetuningConfig(freeze=["target_embedding"]), like={"xc": "xa"})
    [rows] = [weight for name, weight in model.named_parameters() if "embedding" in name and weight.requires_grad]
    assert rows.shape == (1, 8)


@each_row(
    ("tokenizer", "like", "note"),
    [
        (KNOWN, {}, ""),
        (EXTENDED, {"xc": "xa"}, "no adapter.safetensors, which fits no model without the new rows"),
        (EXTENDED, {}, "tokenizer.extend=0 trains the adapters alone, and writes it"),
    ],
)
def test_adapters_and_new_rows_alone_are_trained(tokenizer: Tokenizer, like: dict[str, str], note: str) -> None:
    model, log = made(tokenizer, start(), FinetuningConfig(lora_rank=2), like=like)
    rest = {name.rpartition(".")[2] for name in trained_tensors(model)}
    assert rest == ({"lora_a", "lora_b", "lora_rows"} if note else {"lora_a", "lora_b"})
    if note:
        assert log[-1].endswith(note)
    else:
        assert len(log) == 1


def test_a_model_that_has_rows_in_other_tensors_cannot_be_extended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tolka.models.embeddings.VOCABULARY_TENSORS", ("another.weight",))
    with pytest.raises(ConfigError, match=r"rows of subwords in .*target_embedding\.weight.*type tokenizer\.extend=0"):
        made(EXTENDED, start())


def test_a_model_larger_than_memory_is_refused_before_it_is_built() -> None:
    """d_model 8 has about 10 000 weights, of which Adam trains with four numbers each: 160 kB fit into 1 MB."""
    config = replace(train_config(["optimizer=adamw"]), model=OPTIONS, trainer=TrainerConfig(memory=0.001))
    check_fits(config, KNOWN, CPU, 1)
    with pytest.raises(ConfigError, match="memory"):
        check_fits(replace(config, model=TransformerConfig(d_model=2048)), KNOWN, CPU, 1)
