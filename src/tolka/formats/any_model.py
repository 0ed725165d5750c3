"""Load a model of any kind: a model directory, a run, a folder of one of `FAMILIES` or of Marian, or one on the Hub."""

from pathlib import Path
from typing import Any

from tolka.formats.hub import local_folder
from tolka.formats.huggingface.family import Foreign, read_foreign
from tolka.formats.marian.folder import read_marian
from tolka.model_directory.read import SavedModel, as_ensemble, load_model, load_tokenizer
from tolka.model_directory.settings import Folders, is_foreign, is_of_marian, listed_folders, load_settings
from tolka.tokenizer.tokenizer import Tokenizer


def load_any(models: Folders, to_translate: bool = False) -> SavedModel:
    """Load one model, or several as an ensemble. to_translate: whether the weights may be in int8."""
    loaded = []
    for folder in map(local_folder, listed_folders(models)):
        loaded.append(read_folder(folder).load() if is_foreign(folder) else load_model(folder, to_translate))
    return as_ensemble(loaded)


def read_folder(folder: Path) -> Foreign:
    """Read another program's folder but for its weights; CheckpointError for what is missing or does not fit."""
    return read_marian(folder) if is_of_marian(folder) else read_foreign(folder)


def tokenizer_of(name: str | Path) -> Tokenizer:
    """Return the tokenizer of a model, without reading its weights."""
    folder = local_folder(name)
    return read_folder(folder).tokenizer if is_foreign(folder) else load_tokenizer(folder)


def settings_of(name: str | Path) -> dict[str, Any]:
    """Return the training configuration of a model; for another program's, the settings that are known of it."""
    folder = local_folder(name)
    return read_folder(folder).settings if is_foreign(folder) else load_settings(folder)
