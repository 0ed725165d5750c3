"""Import a folder of Hugging Face's format as a model directory, or export one, and compare what both sides translate.

Nothing appears before the comparison. `transformers` loads what is exported without code of its own.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tolka.errors import CheckpointError, ConfigError
from tolka.formats.any_model import load_any, read_folder
from tolka.formats.huggingface.family import CONFIG, FAMILIES, GENERATION_CONFIG, TOKENIZER_CONFIG, Family
from tolka.formats.marian.folder import MarianFiles
from tolka.interchange.marian import compare_imported
from tolka.interchange.parity import BF16, FP16, FP32, LIMIT, TolkaSide, compare, direction_to_compare, sample_of
from tolka.interchange.transformers_side import TransformersSide, checked_copy, uncompared_section
from tolka.interchange.trim import check_languages, trim
from tolka.model_directory.card import facts_of, model_card
from tolka.model_directory.file_names import CARD, WEIGHTS
from tolka.model_directory.read import SavedModel
from tolka.model_directory.settings import character_form
from tolka.model_directory.verify import MANIFEST
from tolka.model_directory.write import save_tensors, snapshot
from tolka.models.options import ModelConfig, resolved_options
from tolka.system.atomic import whole_folder
from tolka.system.progress import Say
from tolka.text.characters import CHARACTER_SETTINGS
from tolka.text.direction import Direction

_NOTED = ("num_beams", "length_penalty", "no_repeat_ngram_size", "repetition_penalty", "max_length", "bad_words_ids")
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
_THRESHOLDS = {"float32": FP32, "float16": FP16, "bfloat16": BF16}
_USE = """
```python
from transformers import {0.MODEL}, {0.TOKENIZER}

tokenizer, model = (kind.from_pretrained("THIS_FOLDER") for kind in ({0.TOKENIZER}, {0.MODEL}))
batch = tokenizer(["{1}A sentence."], return_tensors="pt", padding=True)
print(tokenizer.batch_decode(model.generate(**batch{2}), skip_special_tokens=True))
```
"""


def import_huggingface(
    path: Path,
    out: Path,
    direction: Direction | None,
    lines: list[str],
    say: Say,
    languages: Sequence[str] = (),
    texts: Sequence[Path] = (),
) -> None:
    """Write a folder of one of `FAMILIES` or of Marian as a model directory; the parity gate compares it if it can.

    direction: None = the folder's. lines: the sample to compare; [] = made-up lines. languages, texts: those that the
    model is trimmed to, see `trim`. ConfigError if neither names the languages.
    """
    if any((folder / MANIFEST).is_file() for folder in (path, path / "best")):
        raise CheckpointError(f"{path} is a model directory of tolka already: use it as it is")
    foreign = read_folder(path)
    foreign = replace(foreign, direction=direction or foreign.direction)
    if not foreign.direction and not foreign.tokenizer.languages:
        raise ConfigError(
            f"{path} does not say the languages ({TOKENIZER_CONFIG}): add them, as in corpus.source=en corpus.target=de"
        )
    if direction:
        foreign.tokenizer.tags(direction)
    saved = foreign.load()
    if languages:
        check_languages(saved, languages)  # before the comparison, which may take minutes
    if isinstance(foreign.family, MarianFiles):
        section = compare_imported(foreign, saved, lines, say)
    elif not (section := uncompared_section(foreign.family, say)):
        # The other side has as many positions as its folder says: translations are limited to these.
        sample, limit = sample_of(saved, lines, say), min(LIMIT, foreign.longest)
        positions = max(LIMIT, *map(len, saved.tokenizer.encode_source(sample))) + 1
        with checked_copy(foreign, positions) as copy:
            ours, vocabulary = TolkaSide(saved, limit), saved.tokenizer.vocabularies[-1]
            side = TransformersSide(copy, foreign.family, vocabulary, limit, path, ours.direction)
        section = compare(ours, side, sample, ours.beginning).check(FP32, say)
    for name in (CONFIG, GENERATION_CONFIG):
        values = foreign.folder.json(name) if foreign.folder.has(name) else {}
        if noted := ", ".join(f"{key}={values[key]!r:.40}" for key in _NOTED if values.get(key) is not None):
            say(f"note: {name} asks for {noted}; tolka searches as search=... says")
    if languages:
        saved, trimmed = trim(saved, languages, texts, lines, say)
        section += f"\n{trimmed}"
    card = f"{model_card(saved.config, saved.scores['facts'], saved.scores)}\n{section}"
    snapshot(saved.model, saved.tokenizer, saved.config, saved.sources, saved.scores, card).write(out)


def export_huggingface(model: Path, out: Path, dtype: str, lines: list[str], say: Say) -> None:
    """Write a model as a folder of the first of `FAMILIES` that can express it, all or nothing.

    The parity gate compares it if `transformers` is installed. dtype: one of DTYPES; "" is float32. lines: the sample
    to compare; [] = made-up lines. ConfigError, with the option that would fit, if no family can express the model;
    CheckpointError if `transformers` translates otherwise.
    """
    dtype = dtype or "float32"
    if dtype not in DTYPES:
        raise ConfigError(f"--dtype ({dtype}) of a Hugging Face folder must be one of {', '.join(DTYPES)}")
    saved = load_any(model)
    options = resolved_options(saved.config["model"], saved.tokenizer.shared)
    family, files = _first_family(saved, options)
    files[CONFIG]["dtype"] = dtype
    with whole_folder(out) as work:
        save_tensors(_convert(family.tensors(saved, options), DTYPES[dtype]), work / WEIGHTS, {"format": "pt"})
        for name, content in files.items():
            if not isinstance(content, bytes):
                content = (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode()
            (work / name).write_bytes(content)
        vocabulary, direction = saved.tokenizer.vocabularies[-1], direction_to_compare(saved)
        before = saved.tokenizer.tag_before(direction)
        if not (section := uncompared_section(family, say)):
            # Translations are limited to the positions that there are, less those of a tag and </s>.
            limit = min(LIMIT, files[CONFIG].get("max_position_embeddings", sys.maxsize) - 2)
            ours = TolkaSide(saved, limit)
            side = TransformersSide(work, family, vocabulary, limit, out, direction, before)
            parity = compare(ours, side, sample_of(saved, lines, say), ours.beginning)
            section = parity.check(_THRESHOLDS[dtype], say)
        card = model_card(saved.config, facts_of(saved.folder, saved.scores), saved.scores, has_config=False)
        tag = vocabulary.tags.get(direction.target)
        first = f', forced_bos_token_id=tokenizer.convert_tokens_to_ids("{tag}")' if tag else ""
        use = _USE.format(family, before, first) if family.MODEL else ""
        (work / CARD).write_text(f"{card}{use}\n{section}", encoding="utf-8")
    form, rules = character_form(saved.config), saved.config["tokenizer"].get("normalization", "identity")
    for key in CHARACTER_SETTINGS:
        # Without rules of its own, the SentencePiece model takes out what no reader sees.
        if (value := getattr(form, key)) != "keep" and (key != "control" or rules != "identity"):
            say(
                f"note: tolka changes characters of its input (cleaning.{key}={value}), and {family.TOKENIZER} does "
                "not: give it such text"
            )


def _first_family(saved: SavedModel, options: ModelConfig) -> tuple[Family, dict[str, Any]]:
    """Return the first family that can express a model, and its files; ConfigError, with all reasons, if none can."""
    reasons = []
    for name in FAMILIES.names():
        family = FAMILIES.get(name)()
        try:
            return family, family.files(saved, options)
        except ConfigError as error:
            reasons.append(str(error))
    raise ConfigError("; ".join(dict.fromkeys(reasons)))  # one class may be registered under several names


def _convert(tensors: dict[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    """Convert the tensors; CheckpointError if a weight is too large for the dtype."""
    # Copies, since shared matrices may be tensors of one memory, which safetensors refuses.
    converted = {name: tensor.to(dtype, copy=True).contiguous() for name, tensor in tensors.items()}
    if infinite := [name for name, tensor in converted.items() if not bool(tensor.isfinite().all())]:
        raise CheckpointError(f"{infinite[0]} has values that float16 cannot hold: take --dtype bfloat16 or float32")
    return converted
