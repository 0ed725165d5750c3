"""The manifest: a model directory's files with their checksums, which are verified before anything is read.

`manifest.json` is written last; a folder without it is incomplete.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tolka.errors import CheckpointError
from tolka.version import __version__

FORMAT = 1
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class TrainingSources:
    """Statistics of the source texts that a model was trained on.

    longest: subwords of the longest one. several_sentences: share of texts with several sentences; None for a model
    written by an earlier version.
    """

    longest: int
    several_sentences: float | None = None


@dataclass(frozen=True)
class Manifest:
    """The content of `manifest.json`. files: paths relative to the folder."""

    folder: Path
    sources: TrainingSources
    files: Collection[str]

    def require(self, names: Iterable[str]) -> None:
        """Raise CheckpointError if a file is not listed, and so was not verified."""
        for name in names:
            if name not in self.files:
                raise CheckpointError(f"{self.folder / MANIFEST} does not list {name}")


def write_manifest(folder: Path, sources: TrainingSources) -> None:
    """Write the manifest of all files that are in the folder now."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    manifest = {
        "format": FORMAT,
        "tolka": __version__,
        "longest_source": sources.longest,
        **({} if sources.several_sentences is None else {"several_sentences": sources.several_sentences}),
        "files": {path.relative_to(folder).as_posix(): _sha256(path) for path in files},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def checked_manifest(folder: Path) -> Manifest:
    """Read the manifest and verify every file that it lists; CheckpointError for a missing or damaged one."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        version, files = int(manifest["format"]), dict(manifest["files"])
        sources = _sources(manifest)
    except FileNotFoundError:
        raise CheckpointError(f"{folder} has no {MANIFEST}: it is no model directory") from None
    except (ValueError, KeyError, TypeError, OSError, OverflowError, RecursionError) as error:
        raise CheckpointError(f"{folder / MANIFEST} is damaged ({error})") from None
    if version > FORMAT:
        raise CheckpointError(f"{folder} has format {version}, this tolka reads up to {FORMAT}; install a newer tolka")
    for name, digest in files.items():
        _check_file(folder, name, digest)
    return Manifest(folder, sources, list(files))


def _sources(manifest: Mapping[str, Any]) -> TrainingSources:
    """Read the statistics of the sources; ValueError if a value is invalid."""
    longest, share = manifest["longest_source"], manifest.get("several_sentences")
    if type(longest) is not int or longest < 1:  # not True, which is an int too
        raise ValueError(f"longest_source is {longest!r}")
    if share is not None and (isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1):
        raise ValueError(f"several_sentences is {share!r}")
    return TrainingSources(longest, share)


def _check_file(folder: Path, name: str, digest: str) -> None:
    path = folder / name
    if not name.isprintable():  # a zero byte or a lone surrogate, say, which no file system allows
        raise CheckpointError(f"{folder / MANIFEST} is damaged (a file is called {name!r})")
    if Path(name).is_absolute() or ".." in Path(name).parts or path.resolve() != folder.resolve() / name:
        raise CheckpointError(f"{folder / MANIFEST} names a file outside its folder: {name}")
    if not path.is_file():
        raise CheckpointError(f"{folder} lacks its file {name}; copy the model directory again")
    if _sha256(path) != digest:
        raise CheckpointError(f"{path} is damaged: its checksum is not the manifest's; copy the directory again")


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
