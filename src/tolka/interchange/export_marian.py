"""A model of ours as a folder of Hugging Face's Marian, which `transformers` loads without custom code."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tolka.errors import CheckpointError, ConfigError
from tolka.formats.huggingface.marian import (
    BIAS,
    CONFIG,
    GENERATION_CONFIG,
    OUTPUT,
    SHARED,
    SOURCE,
    SOURCE_SPM,
    TARGET,
    TARGET_SPM,
    TARGET_VOCAB,
    TOKENIZER_CONFIG,
    VOCAB,
    config_of,
    tensor_names,
)
from tolka.interchange.load import load_any
from tolka.interchange.parity import BF16, FP16, FP32, TolkaSide, compare, sample_of
from tolka.interchange.transformers_side import TransformersSide, has_transformers, not_compared
from tolka.model_directory.card import model_card
from tolka.model_directory.card_values import facts_of
from tolka.model_directory.file_names import CARD, WEIGHTS
from tolka.model_directory.read import SavedModel, character_form, direction_of
from tolka.model_directory.write import save_tensors
from tolka.models.transformer.config import TransformerConfig
from tolka.models.transformer.options import TransformerOptions
from tolka.options.parsing import build
from tolka.system.atomic import whole_folder
from tolka.tokenizer.character_rules import with_rules
from tolka.tokenizer.vocabulary import Vocabulary

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
_THRESHOLDS = {"float32": FP32, "float16": FP16, "bfloat16": BF16}
_BEAM = 5  # as mt-translate has it by default
_USE = """
```python
from transformers import MarianMTModel, MarianTokenizer

tokenizer, model = (kind.from_pretrained("THIS_FOLDER") for kind in (MarianTokenizer, MarianMTModel))
batch = tokenizer(["A sentence."], return_tensors="pt", padding=True)
print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))
```
"""


def export_marian(model: Path, out: Path, dtype: str, lines: list[str], say: Callable[[str], None]) -> None:
    """Write a model as a folder of Marian, after the parity gate where `transformers` is installed.

    dtype: one of DTYPES, of the weights. lines: the sample to compare. ConfigError, with the option that would fit, for
    a model that Marian cannot express; CheckpointError if `transformers` does not translate like it. Nothing is left
    in `out` then.
    """
    if dtype not in DTYPES:
        raise ConfigError(f"--dtype ({dtype}) of a Hugging Face folder must be one of {', '.join(DTYPES)}")
    saved = load_any(model)
    options = _options(saved)
    vocabularies = saved.tokenizer.vocabularies
    sizes = len(vocabularies[0].subwords) - 1, len(vocabularies[-1].subwords) - 1
    config = config_of(options, sizes, saved.sources.longest + 1, vocabularies[-1].places)
    with whole_folder(out) as work:
        save_tensors(_tensors(saved, options, DTYPES[dtype]), work / WEIGHTS, {"format": "pt"})
        _write_json(work / CONFIG, {**config, "dtype": dtype})
        _write_json(work / GENERATION_CONFIG, _generation(config))
        _write_tokenizer(saved, vocabularies, config["max_position_embeddings"], work)
        if has_transformers():
            ours, side = TolkaSide(saved), TransformersSide(work, vocabularies[-1], shown=out)
            parity = compare(ours, side, sample_of(saved, lines, say), ours.beginning)
            section = parity.passed(_THRESHOLDS[dtype], say)
        else:
            section = not_compared(say)
        card = model_card(
            saved.config, facts_of(saved.folder, saved.config, saved.scores), saved.scores, has_config=False
        )
        (work / CARD).write_text(f"{card}{_USE}\n{section}", encoding="utf-8")
    form = character_form(saved.config)
    if form.unicode == "nfc":
        say("note: tolka composes its input (cleaning.unicode=nfc), and MarianTokenizer does not: give it NFC text")
    if form.control != "keep" and (kind := saved.config["tokenizer"].get("normalization", "identity")) != "identity":
        say(
            "note: tolka takes characters out of its input that no reader sees (cleaning.control), and MarianTokenizer "
            f"does not: it has the rules of tokenizer.normalization={kind}"
        )


def _options(saved: SavedModel) -> TransformerOptions:
    """Return the resolved options of a Transformer; ConfigError for another architecture."""
    values = saved.config["model"]
    if values["name"] != "transformer":
        raise ConfigError(
            f"Hugging Face's Marian is a Transformer, and {saved.folder} is model.name={values['name']}: train with "
            "model=transformer_marian, which fits"
        )
    return build(TransformerConfig, values, "model").resolved(saved.tokenizer.shared)


def _tensors(saved: SavedModel, options: TransformerOptions, dtype: torch.dtype) -> dict[str, Tensor]:
    """Return Marian's tensors by name; CheckpointError if a weight is too large for the dtype."""
    ours, vocabularies = saved.model.state_dict(), saved.tokenizer.vocabularies
    found: dict[str, Tensor] = {}
    for name, fused in tensor_names(options.layers, options.decoder_layers).items():
        found |= dict(zip(fused, ours[name].chunk(len(fused)), strict=True))
    orders = [torch.tensor(each.ids_in_original_order()) for each in (vocabularies[0], vocabularies[-1])]
    if options.share_embeddings == "all":
        found[SHARED] = ours["target_embedding.weight"][orders[1]]
    else:
        found[SOURCE] = ours["source_embedding.weight"][orders[0]]
        found[TARGET] = ours["target_embedding.weight"][orders[1]]
    if options.share_embeddings in ("source_target", "none"):
        found[OUTPUT] = ours["output_embedding.weight"][orders[1]]
    bias = ours["output_bias"] if options.output_bias else torch.zeros(len(vocabularies[-1].subwords))
    found[BIAS] = bias[orders[1]][None]
    converted = {name: tensor.to(dtype, copy=True).contiguous() for name, tensor in found.items()}
    if infinite := [name for name, tensor in converted.items() if not bool(tensor.isfinite().all())]:
        raise CheckpointError(f"{infinite[0]} has values that float16 cannot hold: take --dtype bfloat16 or float32")
    return converted


def _generation(config: dict[str, Any]) -> dict[str, Any]:
    """Return the `generation_config.json`: our beam, and never `<pad>`."""
    keys = ("pad_token_id", "eos_token_id", "forced_eos_token_id", "decoder_start_token_id")
    own = {"bad_words_ids": [[config["pad_token_id"]]], "num_beams": _BEAM, "max_length": 512}
    return {**{key: config[key] for key in keys}, **own}


def _write_tokenizer(saved: SavedModel, vocabularies: Sequence[Vocabulary], longest: int, folder: Path) -> None:
    """Write the SentencePiece models and the vocabularies, in Marian's order."""
    models, names = saved.tokenizer.models, [VOCAB, TARGET_VOCAB]
    source, target = direction_of(saved.config)
    form = character_form(saved.config)
    (folder / SOURCE_SPM).write_bytes(with_rules(models[0], form.source, source))
    (folder / TARGET_SPM).write_bytes(with_rules(models[-1], form.target, target))
    for name, vocabulary in zip(names, vocabularies, strict=False):
        order = vocabulary.ids_in_original_order()
        special = dict(zip(vocabulary.places, ("</s>", "<unk>", "<pad>"), strict=True))
        ids = {special.get(place) or vocabulary.subwords[number]: place for place, number in enumerate(order)}
        if len(ids) < len(order):
            raise CheckpointError(f"{saved.folder}: a subword is twice in the vocabulary, which {name} cannot have")
        _write_json(folder / name, ids)
    about = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": source,
        "target_lang": target,
        "separate_vocabs": len(vocabularies) > 1,
        "model_max_length": longest,
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "pad_token": "<pad>",
        "clean_up_tokenization_spaces": False,
    }
    _write_json(folder / TOKENIZER_CONFIG, about)


def _write_json(path: Path, values: dict[str, Any]) -> None:
    path.write_text(json.dumps(values, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
