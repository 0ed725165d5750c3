"""The model that a training begins with: fresh weights, or those of another model, some of them frozen."""

from collections.abc import Mapping
from dataclasses import asdict

import torch

from tolka.config.schemas import TrainConfig
from tolka.errors import ConfigError
from tolka.model_directory.read import SavedModel
from tolka.models.base import Seq2Seq
from tolka.models.embeddings import VOCABULARY_TENSORS, with_new_rows
from tolka.system.memory import return_freed_memory
from tolka.system.progress import Say
from tolka.tokenizer.extension import spellings
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.training.memory import check_size, copies_of_weights


def initial_model(
    config: TrainConfig, tokenizer: Tokenizer, start: SavedModel | None, like: Mapping[str, str], log: Say
) -> Seq2Seq:
    """Build the model with fresh weights, or those of a model to start from, which then leave the memory there.

    like: new language -> the known one whose tag's row it gets.
    """
    model, new_subwords = config.model.build(tokenizer.source_size, tokenizer.target_size, tokenizer.shared), (0, 0)
    if start is not None:
        old = start.tokenizer
        new_subwords = tokenizer.source_size - old.source_size, tokenizer.target_size - old.target_size
        _load(model, tokenizer, start, like)
        start.model.to("meta")  # the tests read them again
        return_freed_memory()
        log(f"weights, sizes and tokenizer: from {start.folder}")
    config.finetuning.apply(model, new_subwords)
    if config.finetuning.lora_rank and any(new_subwords):
        log(
            "note: best/ gets the adapters merged, and no adapter.safetensors, which fits no model without the new rows"
            f"{'' if like else ': tokenizer.extend=0 trains the adapters alone, and writes it'}"
        )
    return model


def check_fits(config: TrainConfig, tokenizer: Tokenizer, device: torch.device, processes: int) -> None:
    """Raise ConfigError for a model that is too large to be trained on the device."""
    finetuning, trainer = config.finetuning, config.trainer
    # Several processes may share all but the weights out.
    is_shared = processes > 1 and trainer.parallel in ("auto", "fsdp")
    trains_all = not (finetuning.lora_rank or finetuning.freeze or is_shared)
    sizes = tokenizer.source_size, tokenizer.target_size, tokenizer.shared
    copies = copies_of_weights(asdict(config.optimizer)["name"], trains_all)
    check_size(config.model, sizes, device, copies, 1e9 * trainer.memory)


def _load(model: Seq2Seq, tokenizer: Tokenizer, start: SavedModel, like: Mapping[str, str]) -> None:
    """Load the weights of run.init_from; subwords and tags that were added to its tokenizer get rows.

    like: new language -> the known one whose tag's row it gets.
    """
    state = start.model.state_dict()
    if tokenizer.digests != start.tokenizer.digests:
        state = with_new_rows(state, *spellings(start.tokenizer, tokenizer, like))
    differing = [name for name, tensor in model.state_dict().items() if tensor.shape != state[name].shape]
    if differing:
        raise ConfigError(
            f"tokenizer.extend: {model.architecture} keeps rows of subwords in {', '.join(differing)}, and only "
            f"those in {', '.join(VOCABULARY_TENSORS)} can be extended: type tokenizer.extend=0"
        )
    model.load_state_dict(state)
