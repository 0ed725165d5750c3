"""Going on from a model with subwords added to its vocabulary: mt-train run.init_from=... tokenizer.extend=N."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from marian_folder import TAGS, load_marian, write_by_hand
from safetensors.torch import load_file

from conftest import XB, sentences
from tolka.config.command_line import train_config
from tolka.errors import ConfigError
from tolka.model_directory.read import load_model
from tolka.system.progress import say
from tolka.tokenizer.extension import spellings

Command = Callable[..., Any]
OWN_SIZES = ("model", "tokenizer", "trainer.updates", "scheduler")
HANGUL = dict(zip(XB, ["다람쥐", "강", "바다", "산길", "나무", "구름", "별", "달빛", "하늘", "땅콩"], strict=True))


@pytest.fixture
def korean(tmp_path: Path) -> Path:
    """train, valid and test, as .xa and .ko: the sources of the made-up corpus, and words in Hangul."""
    folder = tmp_path / "korean"
    folder.mkdir()
    for name, count, seed in (("train", 60, 1), ("valid", 8, 2), ("test", 8, 3)):
        pairs = sentences(count, seed)
        (folder / f"{name}.xa").write_text("".join(f"{source}\n" for source, _ in pairs), encoding="utf-8")
        targets = [" ".join(HANGUL.get(word, word) for word in target.split()) for _, target in pairs]
        (folder / f"{name}.ko").write_text("".join(f"{target}\n" for target in targets), encoding="utf-8")
    return folder


def going_on(tiny: list[str], start: Path, text: Path, run: str, *more: str) -> list[str]:
    """The settings of `tiny`, from a model, with other text; the run goes to a folder of this name."""
    own = (*OWN_SIZES, "corpus.", "run.dir")
    kept = [setting for setting in tiny if not setting.startswith(own)]
    splits = [f"corpus.{split}={text / split}" for split in ("train", "valid", "test")]
    folder = f"run.dir={text.parent / run}"
    return [*kept, *splits, folder, f"run.init_from={start}", "trainer.updates=3", "scheduler.warmup=1", *more]


def tensors(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


@pytest.mark.slow
def test_with_nothing_but_text_subwords_are_added_where_they_are_missing(
    command: Command, tiny: list[str], trained: Path, korean: Path
) -> None:
    text = [f"corpus.{split}={korean / split}" for split in ("train", "valid", "test")]
    settings = [f"run.init_from={trained}", "corpus.target=ko", f"run.dir={korean.parent / 'ko'}", "trainer.updates=3"]
    outcome = command("mt-train", *text, *settings, "report.page=false", "report.plots=false")
    assert outcome.code == 0, outcome.err
    assert "tokenizer.extend" in outcome.err
    assert "no effect" not in outcome.err
    assert "% of a side's subwords are bytes, or unknown to the model" in outcome.err
    assert load_model(korean.parent / "ko").tokenizer.target_size > load_model(trained).tokenizer.target_size


def test_new_rows_start_as_the_means_of_the_old_ones(
    command: Command, tiny: list[str], trained: Path, korean: Path
) -> None:
    arguments = going_on(tiny, trained, korean, "ko", "corpus.target=ko", "tokenizer.extend=30", "optimizer.lr=1e-30")
    outcome = command("mt-train", *arguments)
    assert outcome.code == 0, outcome.err
    assert "note: corpus.source=xa, as the model in run.init_from has it" in outcome.err
    assert "note: it was trained from xa to xb; it is now trained from xa to ko" in outcome.err
    assert "30 subwords of the target added, " in outcome.err
    old, new = load_model(trained), load_model(korean.parent / "ko")
    assert new.config["corpus"]["target"] == "ko"
    spelt, _ = spellings(old.tokenizer, new.tokenizer)
    assert len(spelt) == 30
    for name, before in old.model.state_dict().items():
        after = new.model.state_dict()[name]
        if before.shape == after.shape:
            torch.testing.assert_close(after, before)
        else:
            torch.testing.assert_close(after[: len(before)], before)
            expected = torch.stack([before[ids].mean(0) for ids in spelt])
            torch.testing.assert_close(after[len(before) :], expected)
    saved = tensors(korean.parent / "ko" / "best")
    assert [name for name in saved if "embedding" in name] == ["target_embedding.weight"]  # still one for all
    assert "chrF" in json.dumps(json.loads((korean.parent / "ko" / "best" / "scores.json").read_text()))


@pytest.mark.slow
@pytest.mark.parametrize("sharing", ["target_output", "none"])
def test_two_vocabularies(command: Command, tiny: list[str], korean: Path, tmp_path: Path, sharing: str) -> None:
    """The target's alone is extended; the matrices of the output and of the target have new rows, tied or not."""
    base = [*tiny, "tokenizer.shared=false", f"model.share_embeddings={sharing}", "model.output_bias=true"]
    assert command("mt-train", *base).code == 0
    settings = ("corpus.target=ko", "tokenizer.extend=30")
    outcome = command("mt-train", *going_on(tiny, tmp_path / "run", korean, "ko", *settings))
    assert outcome.code == 0, outcome.err
    assert "30 subwords of the target added, " in outcome.err
    old, new = tensors(tmp_path / "run" / "best"), tensors(korean.parent / "ko" / "best")
    assert old.keys() == new.keys()
    grown = {name for name in old if len(new[name]) == len(old[name]) + 30}
    matrices = ["target_embedding.weight", *(["output_embedding.weight"] if sharing == "none" else [])]
    assert grown == {*matrices, "output_bias"}
    out = command("mt-translate", korean.parent / "ko", stdin=b"ferry kettle .\n")
    assert (out.code, out.out.count("\n")) == (0, 1)


@pytest.mark.slow
def test_a_recurrent_model(command: Command, tiny: list[str], korean: Path, tmp_path: Path) -> None:
    kept = [setting for setting in tiny if not setting.startswith("model")]
    assert command("mt-train", *kept, "model=gru", "model.d_model=16").code == 0
    settings = ("corpus.target=ko", "tokenizer.extend=30")
    outcome = command("mt-train", *going_on(tiny, tmp_path / "run", korean, "ko", *settings))
    assert outcome.code == 0, outcome.err
    assert (
        load_model(korean.parent / "ko").tokenizer.target_size
        == load_model(tmp_path / "run").tokenizer.target_size + 30
    )


@pytest.mark.slow
def test_an_extended_model_is_a_start_like_any(
    command: Command, tiny: list[str], trained: Path, korean: Path, tmp_path: Path
) -> None:
    """It resumes; the next run adds nothing by itself, trains adapters, and merges; it is not averaged with the old."""
    first = going_on(tiny, trained, korean, "ko", "corpus.target=ko", "tokenizer.extend=25")
    assert command("mt-train", *first).code == 0
    again = command("mt-train", *first, "trainer.updates=5")
    assert (again.code, "resuming from update 3" in again.err) == (0, True)
    extended, size = tmp_path / "ko", load_model(trained).tokenizer.target_size + 25
    outcome = command("mt-train", *going_on(tiny, extended, korean, "adapted", "finetuning.lora_rank=2"))
    assert outcome.code == 0, outcome.err
    adapted = load_model(tmp_path / "adapted")
    assert (adapted.tokenizer.target_size, adapted.config["tokenizer"]["extend"]) == (size, 0)
    assert command("mt-train", "merge", extended, tmp_path / "adapted", "-o", tmp_path / "merged").code == 0
    more = command("mt-train", *going_on(tiny, extended, korean, "more", "tokenizer.extend=5"))
    assert more.code == 0, more.err
    assert load_model(tmp_path / "more").tokenizer.target_size == size + 5
    mean = command("mt-train", "average", trained, extended, "-o", tmp_path / "mean")
    assert (mean.code, "the tokenizers differ" in mean.error) == (1, True)


@pytest.mark.slow
def test_without_a_new_language_the_new_subwords_are_of_the_first_text(
    command: Command, tiny: list[str], trained: Path, korean: Path, corpus: Path
) -> None:
    for split in ("train", "valid", "test"):
        (corpus / f"{split}.ko").write_bytes((corpus / f"{split}.xb").read_bytes())
    both = (f"corpus.train=[{korean / 'train'},{corpus / 'train'}]", "corpus.weights=[3,1]")
    settings = (*both, "corpus.target=ko", "tokenizer.extend=40")
    outcome = command("mt-train", *going_on(tiny, trained, korean, "mixed", *settings))
    assert outcome.code == 0, outcome.err
    assert "note: subwords are learnt from 1 of 2 training texts, characters from all" in outcome.err
    alone = command("mt-train", *going_on(tiny, trained, korean, "alone", "corpus.target=ko", "tokenizer.extend=40"))
    assert alone.code == 0
    mixed, own = (load_model(korean.parent / name).tokenizer for name in ("mixed", "alone"))
    assert mixed.digests == own.digests


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (["tokenizer.extend=-1"], "tokenizer.extend (-1)"),
        (["tokenizer.sample=10"], "tokenizer.sample (1000000, now 10)"),
    ],
)
def test_what_does_not_go_together(
    command: Command, tiny: list[str], trained: Path, corpus: Path, settings: list[str], complaint: str
) -> None:
    outcome = command("mt-train", *going_on(tiny, trained, corpus, "refused", *settings))
    assert (outcome.code, complaint in outcome.error) == (2, True), outcome.err
    assert "training text:" not in outcome.err


@pytest.mark.slow
@pytest.mark.parametrize("kept", ["finetuning.lora_rank=2", "finetuning.freeze=[target_embedding]"])
def test_new_rows_are_trained_beside_adapters_and_frozen_embeddings(
    command: Command, tiny: list[str], trained: Path, korean: Path, kept: str
) -> None:
    """The old rows stay as they are; a run that was stopped goes on as one that was not; no adapter is apart."""
    settings = ("corpus.target=ko", "tokenizer.extend=25", "optimizer.lr=0.01", "scheduler=constant", kept)
    first, ends = going_on(tiny, trained, korean, "kept", *settings), "trainer.updates=6"
    assert command("mt-train", *first).code == 0
    halfway = tensors(korean.parent / "kept" / "last")
    assert "resuming from update 3" in command("mt-train", *first, ends).err
    straight = command("mt-train", *going_on(tiny, trained, korean, "straight", *settings, ends))
    assert straight.code == 0, straight.err
    said = (
        "no adapter.safetensors, which fits no model without the new rows: tokenizer.extend=0 trains the adapters alone"
    )
    assert (said in straight.err) == ("lora_rank" in kept)
    start = tensors(trained / "best")
    resumed, whole = (tensors(korean.parent / name / "last") for name in ("kept", "straight"))
    assert all(torch.equal(resumed[name], tensor) for name, tensor in whole.items())
    name, old = "target_embedding.weight", len(start["target_embedding.weight"])
    assert torch.equal(whole[name][:old], start[name])
    assert not torch.equal(whole[name][old:], halfway[name][old:])
    refused = command("mt-train", "merge", trained, korean.parent / "kept", "-o", korean.parent / "merged")
    assert (refused.code, "has no adapter.safetensors" in refused.error) == (1, True), refused.error


def test_no_mean_of_checkpoints_with_new_rows_alone(
    command: Command, tiny: list[str], trained: Path, korean: Path
) -> None:
    settings = ("corpus.target=ko", "tokenizer.extend=5", "finetuning.freeze=[target_embedding]", "trainer.average=2")
    outcome = command("mt-train", *going_on(tiny, trained, korean, "mean", *settings))
    assert (outcome.code, "trainer.average and frozen embeddings" in outcome.error) == (2, True), outcome.error


def test_without_a_model_there_is_nothing_to_extend(command: Command, tiny: list[str]) -> None:
    outcome = command("mt-train", *tiny, "tokenizer.extend=40")
    assert (outcome.code, "name it with run.init_from" in outcome.error) == (2, True)


def test_a_frozen_encoder_and_the_settings_of_learning(
    command: Command, tiny: list[str], trained: Path, korean: Path
) -> None:
    settings = ("corpus.target=ko", "tokenizer.extend=10", "tokenizer.sample=20", "finetuning.freeze=[encoder]")
    outcome = command("mt-train", *going_on(tiny, trained, korean, "frozen", *settings, "optimizer.lr=0.01"))
    assert outcome.code == 0, outcome.err
    assert "the tokenizer learns from 20 of 60 pairs" in outcome.err
    old, new = tensors(trained / "best"), tensors(korean.parent / "frozen" / "last")
    assert all(torch.equal(old[name], new[name]) for name in old if name.startswith("encoder."))
    size = len(old["target_embedding.weight"])
    assert not torch.equal(old["target_embedding.weight"], new["target_embedding.weight"][:size])


@pytest.mark.slow
def test_a_folder_of_marian_is_extended(command: Command, tiny: list[str], korean: Path, tmp_path: Path) -> None:
    """A word in Hangul is unknown to it: the new rows start near the mean of all, and the biases too."""
    folder = write_by_hand(tmp_path / "opus")
    settings = ("corpus.target=ko", "tokenizer.extend=30", "optimizer.lr=1e-30")
    outcome = command("mt-train", *going_on(tiny, folder, korean, "ko", *settings))
    assert outcome.code == 0, outcome.err
    assert "; 0 are unknown in " in outcome.err
    old, new = load_marian(folder), load_model(korean.parent / "ko")
    added = new.tokenizer.target_size - old.tokenizer.target_size
    assert f"{added} subwords of the target added" in outcome.err
    assert 10 < added <= 30
    (before,), (after,) = old.tokenizer.vocabularies, new.tokenizer.vocabularies
    assert after.subwords[: len(before.subwords)] == before.subwords
    assert (len(after.subwords), after.places) == (len(before.subwords) + added, before.places)
    matrix, grown = (saved.model.state_dict()["target_embedding.weight"] for saved in (old, new))
    torch.testing.assert_close(grown[: len(matrix)], matrix)
    spread = matrix[4:].std(0)
    assert ((grown[len(matrix) :] - matrix[4:].mean(0)).abs() < spread).all()
    bias = new.model.state_dict()["output_bias"]
    assert (bias[len(matrix) :].abs() < 1).all()  # <pad> has -30, and is no part of the mean
    assert command("mt-translate", korean.parent / "ko", stdin=b"ferry kettle .\n").code == 0


@pytest.mark.slow
def test_language_tags_survive(command: Command, tiny: list[str], corpus: Path, tmp_path: Path) -> None:
    """A tag is one id in the token store, in the model that was fine-tuned, and in what it translates."""
    folder = write_by_hand(tmp_path / "opus-mul", tags=True)
    for split in ("train", "valid", "test"):
        path = corpus / f"{split}.xa"
        path.write_text("".join(f"{TAGS[0]} {line}\n" for line in path.read_text().splitlines()), encoding="utf-8")
    settings = ("corpus.source=xa", "corpus.target=xb", "tokenizer.extend=5", "batching.sampling=0.1")
    outcome = command("mt-train", *going_on(tiny, folder, corpus, "tuned", *settings))
    assert outcome.code == 0, outcome.err
    old, new = load_marian(folder).tokenizer, load_model(tmp_path / "tuned").tokenizer
    line = f"{TAGS[0]} ferry kettle ."
    assert new.encode_source([line])[0][0] == old.encode_source([line])[0][0]
    assert new.source_pieces(new.encode_source([line])[0])[0] == TAGS[0]
    assert [new.source_pieces(row[:1]) for row in new.resample_source(new.encode_source([line]), 0.5, 1)] == [[TAGS[0]]]
    one, other = (command("mt-translate", tmp_path / "tuned", stdin=f"{tag} ferry .\n".encode()) for tag in TAGS[:2])
    assert (one.code, other.code) == (0, 0)
    assert yaml.safe_load((tmp_path / "tuned" / "best" / "config.yaml").read_text())["tokenizer"]["extend"] == 5


def test_the_source_may_be_named_alone(tiny: list[str], trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = [each for each in tiny if not each.startswith((*OWN_SIZES, "corpus.source", "corpus.target"))]
    config = train_config([*settings, f"run.init_from={trained}", "corpus.source=fr"], say=say)
    assert (config.corpus.source, config.corpus.target) == ("fr", "xb")
    assert "note: corpus.target=xb, as the model in run.init_from has it" in capsys.readouterr().err
    with pytest.raises(ConfigError, match=r"tokenizer\.vocab_size"):
        train_config([*settings, f"run.init_from={trained}", "tokenizer.vocab_size=500"], say=say)
