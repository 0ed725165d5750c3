"""Read a folder that was exported for CTranslate2: its facts, its tokenizer, its checksums."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tolka.errors import CheckpointError
from tolka.formats.ctranslate2.plain_model import PlainModel
from tolka.model_directory.facts import readable_verdict
from tolka.model_directory.file_names import EXPORTED
from tolka.model_directory.settings import character_form, direction_of, find_model_folder
from tolka.model_directory.verify import QUALITY, TrainingSources, as_written, checked_manifest, read_json
from tolka.system.surrogates import is_utf8
from tolka.system.whole_files import read_text
from tolka.text.characters import CHARACTER_SETTINGS, CharacterForm
from tolka.text.direction import Direction
from tolka.tokenizer.special_tokens import BOS, EOS, UNK
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.tokenizer.vocabulary import MOST_BYTES

DTYPES = ("float32", "bfloat16", "float16", "int8")
EPSILON = {"layernorm": 1e-5, "rmsnorm": 1e-6}
POSITIONS = 4096  # in the table of a model: CTranslate2 takes no longer sentences


@dataclass(frozen=True)
class Exported:
    """The content of `tolka.json`: what translating needs besides CTranslate2's files and the tokenizer.

    characters: their form in the training text. dtype: of the weights. decoder_start: as the model's option. quality:
    the calibration of quality estimates. attention: name of the map that CTranslate2 returns, the mean over the heads
    of the last decoder layer; "" in older exports, which return that of one head. sample: of `engines/gate.py`.
    verdict: on the training.
    """

    direction: Direction
    characters: CharacterForm
    dtype: str
    decoder_start: str
    quality: dict[str, Any] | None
    attention: str = ""
    sample: dict[str, Any] | None = None
    verdict: dict[str, Any] | None = None

    @classmethod
    def of(cls, model: PlainModel, dtype: str) -> "Exported":
        """Return the facts of a model, without a sample."""
        direction, form, options = direction_of(model.config), character_form(model.config), model.options
        attention, verdict = f"decoder.{options.decoder_layers - 1}.cross", readable_verdict(model.scores)
        quality = model.scores.get(QUALITY)
        return cls(direction, form, dtype, options.decoder_start, quality, attention, verdict=verdict)

    @classmethod
    def read(cls, folder: Path) -> "Exported":
        """Read `tolka.json`; CheckpointError if it is damaged."""
        values = {"attention": "", "sample": None, **read_json(folder / EXPORTED)}
        with as_written(str(folder / EXPORTED)):
            source, target = values["languages"]
            form = {key: values[key] for key in CHARACTER_SETTINGS}
            dtype, start, attention = words = [values[key] for key in ("dtype", "decoder_start", "attention")]
            quality, sample = objects = [values[key] for key in ("quality", "sample")]
            if not all(isinstance(word, str) and is_utf8(word) for word in (source, target, *words, *form.values())):
                raise ValueError("values of another kind were expected")
            if dtype not in DTYPES:
                raise ValueError(f"dtype is {dtype!r}")
            if not all(isinstance(each, dict | None) for each in objects):
                raise ValueError("quality is not a calibration, or sample is none")
        direction, verdict = Direction(source, target), readable_verdict(values)
        characters = CharacterForm(**form, direction=direction)
        return cls(direction, characters, dtype, start, quality, attention, sample, verdict)

    def write(self, folder: Path) -> None:
        """Write `tolka.json`."""
        others = {key: value for key, value in vars(self).items() if key not in ("characters", "direction")}
        form = {key: getattr(self.characters, key) for key in CHARACTER_SETTINGS}
        values = {**others, **form, "languages": list(self.direction)}
        (folder / EXPORTED).write_text(json.dumps(values, ensure_ascii=False, indent=1), encoding="utf-8")


@dataclass(frozen=True)
class ExportedFolder:
    """An exported folder that is verified."""

    folder: Path
    facts: Exported
    tokenizer: Tokenizer
    sources: TrainingSources


def read_exported(folder: Path) -> ExportedFolder:
    """Verify an exported folder; CheckpointError if a file is missing or damaged."""
    folder = find_model_folder(folder)
    manifest = checked_manifest(folder)
    tokenizer = Tokenizer.load(folder)
    shared = "shared_vocabulary.json" in manifest.files
    names = ["shared_vocabulary.json"] * 2 if shared else ["source_vocabulary.json", "target_vocabulary.json"]
    manifest.require([EXPORTED, "model.bin", "config.json", *names, *tokenizer.file_names])
    for name, subwords in zip(names, vocabularies(tokenizer), strict=True):
        with as_written(str(folder / name)):
            stored = json.loads(read_text(folder / name, MOST_BYTES))
        if stored != subwords:
            raise CheckpointError(f"{folder / name} has other subwords than the tokenizer beside it")
    facts = Exported.read(folder)
    _check_settings(folder / "config.json", vocabularies(tokenizer)[1], facts.decoder_start)
    return ExportedFolder(folder, facts, tokenizer, manifest.sources)


def _check_settings(path: Path, target: list[str], start: str) -> None:
    """Raise CheckpointError unless CTranslate2's settings are those of an export. start: see `Exported`."""
    # CTranslate2 trusts the types of these values.
    settings = read_json(path)
    special = {"bos": BOS, "eos": EOS, "unk": UNK}
    expected: dict[str, Any] = {f"{name}_token": target[number] for name, number in special.items()}
    expected |= {"add_source_bos": False, "add_source_eos": True, "multi_query_attention": False}
    expected["decoder_start_token"] = {"bos": target[BOS], "eos": target[EOS], "zero": target[BOS]}.get(start)
    actual = {name: settings.get(name) for name in expected}  # other versions of CTranslate2 may have more
    # As text, since True == 1 and 1.0 == 1.
    has_epsilon = settings.get("layer_norm_epsilon") in EPSILON.values()
    if json.dumps(actual) != json.dumps(expected) or not has_epsilon:
        raise CheckpointError(f"{path} has other settings than tolka exports: export the model again")


def vocabularies(tokenizer: Tokenizer) -> tuple[list[str], list[str]]:
    """Return the subwords of source and target in the order of their ids; CheckpointError if two are the same."""
    sides = tokenizer.source_pieces(range(tokenizer.source_size)), tokenizer.target_pieces(range(tokenizer.target_size))
    for pieces in sides:
        if len(set(pieces)) < len(pieces):
            raise CheckpointError("the vocabulary has a subword twice, and CTranslate2 finds each by its text")
    return sides
