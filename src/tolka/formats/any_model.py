"""Load a model whatever it is: a model directory, a run, a folder of Hugging Face's Marian, or one on the Hub."""

import hashlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from tolka.errors import CheckpointError, ConfigError
from tolka.interchange.import_marian import load_marian, marian_settings
from tolka.model_directory import read
from tolka.model_directory.read import Folders, SavedModel
from tolka.model_directory.settings import is_of_transformers
from tolka.text.lines import user_path

_HUB = "hub:"
_WANTED = ["*.json", "*.spm", "*.safetensors"]
_PICKLED = "pytorch_model.bin"  # where there is no safetensors file
_SECONDS = 10.0  # for the Hub to answer


def local_folder(name: str | Path) -> Path:
    """Return the folder that a name stands for; `hub:OWNER/NAME` is downloaded, or taken from the Hub's cache.

    CheckpointError, in one line, if it can be neither; ConfigError without the package for it.
    """
    text = str(name)
    if not text.startswith(_HUB):
        return user_path(text)
    repository = text.removeprefix(_HUB)
    try:
        hub: Any = import_module("huggingface_hub")
    except ImportError:
        raise ConfigError(f"{text} needs the package huggingface_hub: pip install 'tolka[hub]'") from None
    try:
        # A single request: without a network, the library's other ones are repeated for half a minute, with warnings.
        files = [str(file.rfilename) for file in hub.model_info(repository, timeout=_SECONDS).siblings or ()]
        pickled = [] if any(file.endswith(".safetensors") for file in files) else [_PICKLED]
        return Path(hub.snapshot_download(repository, allow_patterns=[*_WANTED, *pickled]))
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
        # With the patterns: all other files are missing there, which counts as an unfinished download.
        return Path(hub.snapshot_download(repository, allow_patterns=_WANTED, local_files_only=True))
    except Exception:
        return None


def load_any(name: str | Path, load: Callable[[Path], SavedModel] = read.load_model) -> SavedModel:
    """Load one model; a folder of Marian is only read. CheckpointError as `load_model` and `load_marian`.

    load: what loads a model directory.
    """
    folder = local_folder(name)
    return load_marian(folder) if is_of_transformers(folder) else load(folder)


def load_any_ensemble(folders: Folders) -> SavedModel:
    """Load one model or several as an ensemble; see `load_ensemble`."""
    return read.load_ensemble(folders, lambda folder: load_any(folder, read.load_to_translate))


def settings_of_any(name: str | Path) -> dict[str, Any]:
    """Return the training configuration of a model; of a folder of Marian what config.yaml would have of it."""
    folder = local_folder(name)
    return marian_settings(folder) if is_of_transformers(folder) else read.load_settings(folder)


def digests_of_any(folders: Folders) -> list[str]:
    """Return a digest of what each model translates with; of a folder of Marian from sizes and times of its files."""
    listed = [folders] if isinstance(folders, str | Path) else folders
    found = []
    for folder in map(local_folder, listed):
        if not is_of_transformers(folder):
            found += read.digests(folder)
            continue
        files = [(path.name, path.stat()) for path in sorted(folder.iterdir()) if path.is_file()]
        text = repr([(name, stat.st_size, stat.st_mtime_ns) for name, stat in files])
        found.append(hashlib.sha256(text.encode()).hexdigest()[:16])
    return found
