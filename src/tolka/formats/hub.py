"""Models on the Hugging Face Hub: `hub:OWNER/NAME` where a folder is expected. Needs no torch."""

from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from tolka.errors import CheckpointError, ConfigError
from tolka.model_directory.verify import MANIFEST, read_json
from tolka.text.lines import user_path

_HUB = "hub:"
_WANTED = ["*.json", "*.spm", "*.model", "*.safetensors"]
_PICKLED = "pytorch_model*.bin"  # downloaded only if there is no safetensors file
_SECONDS = 10.0  # for the Hub to answer


def opus_mt_name(source: str, target: str) -> str:
    """Return the name that an OPUS-MT model of these languages would have; not every pair of languages has one."""
    source, target = (code.replace("_", "-").partition("-")[0].lower() for code in (source, target))
    return f"{_HUB}Helsinki-NLP/opus-mt-{source}-{target}"


def local_folder(name: str | Path) -> Path:
    """Return the folder of a model; `hub:OWNER/NAME` is downloaded, or read from the Hub's cache when offline.

    CheckpointError, in one line, if neither works; ConfigError without the package huggingface_hub.
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
        return _download(hub, repository, [*_WANTED, *pickled])
    except Exception as error:  # of the library, of its HTTP client or of the system, which differ by version
        with suppress(Exception):  # it is not in the Hub's cache
            return _download(hub, repository, _WANTED, local_files_only=True)
        reason = " ".join(str(error).split())[:160]
        raise CheckpointError(
            f"{text} cannot be downloaded ({type(error).__name__}: {reason}); offline, copy the folder here and name "
            "its path"
        ) from None


def _download(hub: Any, repository: str, wanted: Sequence[str], **options: Any) -> Path:
    """Return the folder of a repository in the Hub's cache, with the files that match, and all of a model directory."""
    # Always with patterns: all other files are missing there, which offline counts as an unfinished download.
    folder = Path(hub.snapshot_download(repository, allow_patterns=wanted, **options))
    if (folder / MANIFEST).is_file():
        hub.snapshot_download(repository, allow_patterns=[*wanted, *read_json(folder / MANIFEST)["files"]], **options)
    return folder
