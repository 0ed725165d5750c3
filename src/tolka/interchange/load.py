"""Load a model whatever it is: a model directory, a run, a folder of Hugging Face's Marian, or one on the Hub."""

import hashlib
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from tolka.errors import CheckpointError
from tolka.interchange.import_marian import is_marian, load_marian, marian_settings
from tolka.model_directory import read
from tolka.model_directory.read import Folders, SavedModel
from tolka.text.lines import user_path

_HUB = "hub:"
_WANTED = ["*.json", "*.spm", "*.safetensors", "pytorch_model.bin"]


def local_folder(name: str | Path) -> Path:
    """Return the folder that a name stands for; `hub:OWNER/NAME` is downloaded, or taken from the Hub's cache.

    CheckpointError, in one line, if it can be neither.
    """
    text = str(name)
    if not text.startswith(_HUB):
        return user_path(text)
    repository = text.removeprefix(_HUB)
    hub: Any = import_module("huggingface_hub")
    files = list(_WANTED)
    try:
        listed = hub.list_repo_files(repository)
        if any(file.endswith(".safetensors") for file in listed):
            files.remove("pytorch_model.bin")
        return Path(hub.snapshot_download(repository, allow_patterns=files))
    except Exception as error:
        cached = _cached(hub, repository)
        if cached is None:
            reason = " ".join(str(error).split())[:160]
            raise CheckpointError(
                f"{text} cannot be downloaded ({type(error).__name__}: {reason}); offline, copy the folder here and "
                "name its path"
            ) from None
        return cached


def _cached(hub: Any, repository: str) -> Path | None:
    """Return the folder of a model in the Hub's cache; None if it is not there."""
    try:
        return Path(hub.snapshot_download(repository, local_files_only=True))
    except Exception:
        return None


def load_any(name: str | Path, load: Callable[[Path], SavedModel] = read.load_model) -> SavedModel:
    """Load one model; a folder of Marian is only read. CheckpointError as `load_model` and `load_marian`.

    load: what loads a model directory.
    """
    folder = local_folder(name)
    return load_marian(folder) if is_marian(folder) else load(folder)


def load_any_ensemble(folders: Folders, weights: Sequence[float] = ()) -> SavedModel:
    """Load one model or several as an ensemble; see `load_ensemble`."""
    return read.load_ensemble(folders, weights, lambda folder: load_any(folder, read.load_to_translate))


def settings_of_any(name: str | Path) -> dict[str, Any]:
    """Return the training configuration of a model; of a folder of Marian what config.yaml would have of it."""
    folder = local_folder(name)
    return marian_settings(folder) if is_marian(folder) else read.load_settings(folder)


def digests_of_any(folders: Folders) -> list[str]:
    """Return a digest of what each model translates with; of a folder of Marian from sizes and times of its files."""
    listed = [folders] if isinstance(folders, str | Path) else folders
    found = []
    for folder in map(local_folder, listed):
        if not is_marian(folder):
            found += read.digests(folder)
            continue
        files = [(path.name, path.stat()) for path in sorted(folder.iterdir()) if path.is_file()]
        text = repr([(name, stat.st_size, stat.st_mtime_ns) for name, stat in files])
        found.append(hashlib.sha256(text.encode()).hexdigest()[:16])
    return found
