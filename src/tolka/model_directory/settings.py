"""What can be read of model directories without torch: where they are, their settings, digests of their content."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tolka.errors import CheckpointError, ConfigError, TolkaError
from tolka.model_directory.file_names import CONFIG, EXPORTED, WEIGHTS
from tolka.model_directory.manifest import MANIFEST
from tolka.model_directory.upgrade import upgrade_config
from tolka.options.parsing import build
from tolka.system.atomic import standing
from tolka.system.surrogates import is_utf8
from tolka.system.whole_files import read_text
from tolka.text.characters import CharacterForm
from tolka.text.cleaning.steps import CleaningConfig
from tolka.text.direction import Direction
from tolka.text.lines import near_path
from tolka.tokenizer.vocabulary import VOCABULARY

_MOST_YAML = 2**20  # bytes: parsing that many takes seconds
_DECIDING = (WEIGHTS, CONFIG, "model.bin", "config.json", VOCABULARY, EXPORTED)
Folders = str | Path | Sequence[str | Path]
"""A model or run directory, or several."""


def digests(folders: Folders) -> list[str]:
    """Return a digest of what each model translates with: its weights, tokenizer and settings, from the manifest."""
    checksums = [json.dumps(_checksums(Path(each))) for each in listed_folders(folders)]
    return [hashlib.sha256(text.encode()).hexdigest()[:16] for text in checksums]


def _checksums(folder: Path) -> list[str]:
    """Return the checksums of a model directory's files that decide what it translates."""
    files = json.loads((find_model_folder(folder) / MANIFEST).read_text(encoding="utf-8"))["files"]
    return [f"{name}:{files[name]}" for name in sorted(files) if name in _DECIDING or name.endswith(".model")]


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
    for candidate in (folder, standing(folder / "best")):
        if (candidate / MANIFEST).is_file():
            return candidate
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: there is no such model directory{near_path(folder) or _on_the_hub(folder)}")
    if _is_of_marian(folder):
        raise CheckpointError(
            f"{folder} is no model directory, but a folder of Hugging Face's Marian: run mt-train import first, and "
            "give its OUT"
        )
    raise CheckpointError(
        f"{folder} is no model directory: it has no {MANIFEST}. Give a run directory with best/ in it, or best/ itself"
    )


def _on_the_hub(folder: Path) -> str:
    """Return a hint where the name of a folder that is not there looks like that of a model on the Hub."""
    if folder.name.startswith("opus-mt-"):
        return f"; on the Hugging Face Hub it is hub:Helsinki-NLP/{folder.name}"
    is_owner = len(folder.parts) == 2 and not folder.is_absolute() and not folder.parent.exists()
    return f"; if it is on the Hugging Face Hub, write hub:{folder}" if is_owner else ""


def is_of_transformers(folder: Path) -> bool:
    """Return whether a folder looks like one of Hugging Face's transformers and not like a model directory."""
    is_ours = (folder / MANIFEST).is_file() or (folder / "best").exists()
    return (folder / "config.json").is_file() and not is_ours


def _is_of_marian(folder: Path) -> bool:
    """Return whether the config.json of `transformers` in a folder says that its model is Marian's."""
    try:
        config = json.loads(read_text(folder / "config.json"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(config, dict) and config.get("model_type") == "marian"


def direction_of(settings: Mapping[str, Any]) -> Direction:
    """Return from which language into which a training configuration trains."""
    return Direction(str(settings["corpus"]["source"]), str(settings["corpus"]["target"]))


def character_form(settings: Mapping[str, Any]) -> CharacterForm:
    """Return the form of characters of a training configuration, which every text for its model gets.

    From before there was cleaning.blanks, training kept all blanks. A source gets ordinary ones where unseen characters
    were removed: hardly any training text has as many of the others. Its translations have the blanks they were taught.
    """
    cleaning = settings.get("cleaning", {})
    control = cleaning.get("control", "keep")
    blanks = cleaning.get("blanks", "keep" if control == "keep" else "source")
    return CharacterForm(cleaning.get("unicode", "keep"), control, blanks)


def _is_language(value: object) -> bool:
    return isinstance(value, str) and is_utf8(value)


def read_settings(folder: Path) -> dict[str, Any]:
    """Read config.yaml of a model directory, with settings of earlier versions converted; `model` is as it is there.

    CheckpointError if it cannot be read, or lacks its model or its languages.
    """
    path = folder / CONFIG
    if (folder / EXPORTED).is_file():
        raise CheckpointError(
            f"{folder} was exported for CTranslate2, which mt-translate reads; here, give the model it was made from"
        )
    try:
        config = yaml.safe_load(read_text(path, _MOST_YAML))
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read ({' '.join(str(error).split())})") from None
    if not isinstance(config, dict) or not isinstance(config.get("model"), dict):
        raise CheckpointError(f"{path} does not describe a model")
    corpus = config.get("corpus")
    if not isinstance(corpus, dict) or not all(_is_language(corpus.get(side)) for side in ("source", "target")):
        raise CheckpointError(f"{path} does not say its languages (corpus.source, corpus.target)")
    config = upgrade_config(config)
    try:
        build(CleaningConfig, config.get("cleaning", {}), "cleaning")  # has the form of characters
    except TolkaError as error:
        raise CheckpointError(f"{path}: {error}") from None
    return {str(key): value for key, value in config.items()}
