"""Model directories without torch: where they are, their settings, digests of their content."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from tolka.errors import CheckpointError, ConfigError, TolkaError, reason_of
from tolka.model_directory.file_names import CONFIG, EXPORTED, WEIGHTS
from tolka.model_directory.verify import MANIFEST, refuse_exported
from tolka.models.options import MODELS, ModelConfig
from tolka.options.parsing import build
from tolka.options.registry import plugins_of
from tolka.system.atomic import readable_folder
from tolka.system.surrogates import is_utf8
from tolka.system.whole_files import read_text
from tolka.text.characters import CHARACTER_SETTINGS, CharacterForm
from tolka.text.cleaning.steps import CleaningConfig
from tolka.text.direction import Direction
from tolka.text.lines import near_path
from tolka.tokenizer.tokenizer import TokenizerConfig
from tolka.tokenizer.vocabulary import VOCABULARY

_MOST_YAML = 2**20  # bytes: parsing that many takes seconds
# Files that translations depend on, beside the SentencePiece models; scores and the card may change.
_DECIDING = (WEIGHTS, CONFIG, "model.bin", "config.json", VOCABULARY, EXPORTED)
MARIAN_CONFIGS = ("decoder.yml", "config.yml", "config.intgemm8bitalpha.yml")
"""Files that name those of a model of Marian: of OPUS-MT, of an export, of translateLocally."""
Folders = str | Path | Sequence[str | Path]
"""A model or run directory, or several."""


def digest(folder: Path) -> str:
    """Return a digest of the files that a model's translations depend on."""
    # No manifest has their checksums, and weights of gigabytes are not hashed for a digest.
    if is_foreign(folder):
        stats = [(path.name, path.stat()) for path in sorted(folder.iterdir()) if path.is_file()]
        text = repr([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])
        return hashlib.sha256(text.encode()).hexdigest()[:16]
    files = json.loads((find_model_folder(folder) / MANIFEST).read_text(encoding="utf-8"))["files"]
    checksums = [f"{name}:{files[name]}" for name in sorted(files) if name in _DECIDING or name.endswith(".model")]
    return hashlib.sha256(json.dumps(checksums).encode()).hexdigest()[:16]


def listed_folders(folders: Folders) -> Sequence[str | Path]:
    """Return the folders as a list; ConfigError if there is none."""
    listed = [folders] if isinstance(folders, str | Path) else folders
    if not listed:
        raise ConfigError("no model directory is named")
    if not isinstance(listed, Sequence):
        raise TypeError(f"a model is a path, or several in a list, and not {type(listed).__name__}")
    return listed


def find_model_folder(folder: Path) -> Path:
    """Return the folder itself, or `best/` of a run directory."""
    for candidate in (folder, readable_folder(folder / "best")):
        if (candidate / MANIFEST).is_file():
            return candidate
    if folder.is_file():
        raise CheckpointError(f"{folder} is a file, and not a model directory: give a run directory")
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: there is no such model directory{near_path(folder) or _on_the_hub(folder)}")
    if is_foreign(folder) and not (folder / EXPORTED).is_file():
        program = "Marian" if is_of_marian(folder) else "Hugging Face's transformers"
        raise CheckpointError(
            f"{folder} is not a model directory, but a folder of {program}: run mt-train import first, and give its OUT"
        )
    raise CheckpointError(
        f"{folder} is not a model directory: it has no {MANIFEST}. Give a run directory with best/ in it, or best/ "
        "itself"
    )


def _on_the_hub(folder: Path) -> str:
    """Return a hint if the name of a missing folder looks like that of a model on the Hub; "" otherwise."""
    if folder.name.startswith("opus-mt-"):
        return f"; on the Hugging Face Hub it is hub:Helsinki-NLP/{folder.name}"
    is_owner = len(folder.parts) == 2 and not folder.is_absolute() and not folder.parent.exists()
    return f"; if it is on the Hugging Face Hub, write hub:{folder}" if is_owner else ""


def is_foreign(folder: Path) -> bool:
    """Return whether a folder looks like one of Hugging Face's transformers or of Marian, and not like one of ours."""
    is_ours = (folder / MANIFEST).is_file() or (folder / "best").exists()
    return ((folder / "config.json").is_file() or is_of_marian(folder)) and not is_ours


def is_of_marian(folder: Path) -> bool:
    """Return whether a folder has what only Marian's programs write: their settings, or a model beside vocabularies."""
    named = any((folder / name).is_file() for name in MARIAN_CONFIGS if name != "config.yml")  # which many write
    return (named or all(marian_files(folder))) and not (folder / "config.json").is_file()


def marian_files(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the files in a folder that are named as models of Marian are, and those that are as vocabularies."""
    return [*folder.glob("*.npz"), *folder.glob("model*.bin")], [*folder.glob("*.spm"), *folder.glob("*vocab*.yml")]


def direction_of(settings: Mapping[str, Any]) -> Direction:
    """Return from which language into which a training configuration trains."""
    return Direction(str(settings["corpus"]["source"]), str(settings["corpus"]["target"]))


def character_form(settings: Mapping[str, Any]) -> CharacterForm:
    """Return the form of characters of a training configuration, which every text for its model gets."""
    form = CharacterForm(*(settings.get("cleaning", {}).get(key, "keep") for key in CHARACTER_SETTINGS))
    return form.of(direction_of(settings)) if "corpus" in settings else form


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file; CheckpointError if it cannot be read."""
    try:
        return yaml.safe_load(read_text(path, _MOST_YAML))
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read ({reason_of(error)})") from None


def read_settings(folder: Path) -> tuple[dict[str, Any], ModelConfig]:
    """Read config.yaml of a model directory, and its model's options.

    CheckpointError if it cannot be read, lacks its model or its languages, or has invalid options.
    """
    path = folder / CONFIG
    refuse_exported(folder)
    config = read_yaml(path)
    if not isinstance(config, dict) or not isinstance(config.get("model"), dict):
        raise CheckpointError(f"{path} does not describe a model")
    corpus = config.get("corpus")
    codes = [corpus.get(side) for side in ("source", "target")] if isinstance(corpus, dict) else [None]
    if not all(isinstance(code, str) and is_utf8(code) for code in codes):
        raise CheckpointError(f"{path} does not say its languages (corpus.source, corpus.target)")
    try:
        build(CleaningConfig, config.get("cleaning", {}), "cleaning")  # checked here for `character_form`
        options = {str(key): value for key, value in config["model"].items()}
        model = build(MODELS.get(str(options.get("name")), plugins_of(config)), options, "model")
    except TolkaError as error:
        raise CheckpointError(f"{path}: {error}") from None
    return {**{str(key): value for key, value in config.items()}, "model": asdict(model)}, model


def load_settings(folder: Path) -> dict[str, Any]:
    """Return the training configuration of a model directory, or of a run directory's `best/`.

    Options that are newer than the file have their defaults.
    """
    folder = find_model_folder(folder)
    settings, _ = read_settings(folder)
    if not isinstance(settings.get("tokenizer"), dict):
        raise CheckpointError(f"{folder / CONFIG} does not describe a tokenizer")
    try:
        tokenizer = build(TokenizerConfig, settings["tokenizer"], "tokenizer")
    except TolkaError as error:
        raise CheckpointError(f"{folder / CONFIG}: {error}") from None
    return {**settings, "tokenizer": asdict(tokenizer)}
