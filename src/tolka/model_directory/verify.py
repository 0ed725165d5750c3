"""The manifest: the files of a model directory with their checksums, verified before anything else is read.

`manifest.json` is written last: a folder without it is incomplete.
"""

import hashlib
import json
import math
import os
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

from tolka.errors import CheckpointError, reason_of
from tolka.model_directory.file_names import CONFIG, EXPORTED, SCORES, WEIGHTS
from tolka.system.surrogates import is_utf8
from tolka.system.whole_files import MOST_BYTES, read_text
from tolka.text.direction import Direction
from tolka.version import __version__

FORMAT = 1
MANIFEST = "manifest.json"
QUALITY = "quality"  # the key in scores.json of the calibration of quality estimates
_MOST_LOGARITHM = 20.0  # of a ratio of lengths


@dataclass(frozen=True)
class LengthRatio:
    """Mean and standard deviation of the logarithm of the ratio of target length to source length."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, str]]) -> "LengthRatio | None":
        """Return the ratio in characters of (source, target) pairs; None without two pairs that have both."""
        logarithms = [math.log(len(target) / len(source)) for source, target in pairs if source and target]
        return None if len(logarithms) < 2 else cls(statistics.fmean(logarithms), statistics.stdev(logarithms))


@dataclass(frozen=True)
class TrainingSources:
    """Statistics of the texts that a model was trained on.

    longest: subwords of the longest source. several_sentences: share of sources with several sentences. length_ratios:
    of targets and sources, by direction. directions: of the texts. Models of other programs have longest alone.
    """

    longest: int
    several_sentences: float | None = None
    length_ratios: Mapping[Direction, LengthRatio] = field(default_factory=dict)
    directions: tuple[Direction, ...] = ()

    @classmethod
    def combine(cls, sources: Sequence["TrainingSources"], choose: Callable[..., Any]) -> "TrainingSources":
        """Return the statistics of several models as one, of which `choose` is min or max.

        The first model's length ratios and directions stand for all.
        """
        shares = [each.several_sentences for each in sources]
        share = None if None in shares else choose(shares)
        return cls(choose(each.longest for each in sources), share, sources[0].length_ratios, sources[0].directions)


@dataclass(frozen=True)
class Manifest:
    """The content of `manifest.json`. files: paths relative to the folder. int8: whether the weights are in int8."""

    folder: Path
    sources: TrainingSources
    files: Collection[str]
    int8: bool = False

    def require(self, names: Iterable[str]) -> None:
        """Raise CheckpointError if a file is not listed, and so was not verified."""
        for name in names:
            if name not in self.files:
                raise CheckpointError(f"{self.folder / MANIFEST} does not list {name}")


def write_manifest(folder: Path, sources: TrainingSources, int8: bool = False) -> None:
    """Write the manifest of all files that are in the folder now. int8: whether the weights are stored in int8."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    manifest = {
        "format": FORMAT,
        "tolka": __version__,
        "weights": "int8" if int8 else "fp32",
        "longest_source": sources.longest,
        "several_sentences": sources.several_sentences,
        "length_ratios": [[*direction, *astuple(ratio)] for direction, ratio in sources.length_ratios.items()],
        "directions": sources.directions,
        "files": {path.relative_to(folder).as_posix(): _sha256(path) for path in files},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def checked_manifest(folder: Path) -> Manifest:
    """Read the manifest and verify every file that it lists; CheckpointError for a missing or damaged one."""
    try:
        manifest = json.loads(read_text(folder / MANIFEST))
        version, files = int(manifest["format"]), dict(manifest["files"])
        sources, int8 = _sources(manifest), manifest["weights"] == "int8"
    except FileNotFoundError:
        raise CheckpointError(f"{folder} has no {MANIFEST}: it is not a model directory") from None
    except (ValueError, KeyError, TypeError, OSError, OverflowError, RecursionError) as error:
        raise CheckpointError(f"{folder / MANIFEST} is damaged ({reason_of(error)})") from None
    if version > FORMAT:
        raise CheckpointError(f"{folder} has format {version}, this tolka reads up to {FORMAT}; install a newer tolka")
    for name, digest in files.items():
        _check_file(folder, name, digest)
    return Manifest(folder, sources, list(files), int8)


def verified_manifest(folder: Path) -> Manifest:
    """Verify a model directory by its manifest; CheckpointError, too, if that does not list all files of a model."""
    manifest = checked_manifest(folder)
    refuse_exported(folder)
    manifest.require([CONFIG, WEIGHTS, SCORES])
    return manifest


def refuse_exported(folder: Path) -> None:
    """Raise CheckpointError for a folder for CTranslate2."""
    if (folder / EXPORTED).is_file():
        raise CheckpointError(
            f"{folder} was exported for CTranslate2, which mt-translate reads; here, give the model it was made from"
        )


@contextmanager
def as_written(what: str) -> Iterator[None]:
    """Raise CheckpointError instead of the errors that values of unexpected kinds lead to. what: the files."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        if "memory" in str(error):  # torch's RuntimeError: the file may well be whole
            raise
        raise CheckpointError(f"{what} is damaged ({reason_of(error)})") from error


def read_json(path: Path, most: int = MOST_BYTES) -> dict[str, Any]:
    """Read a JSON file that holds an object, of at most so many bytes."""
    try:
        values = json.loads(read_text(path, most))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read ({reason_of(error)})") from None
    if not isinstance(values, dict):
        raise CheckpointError(f"{path} cannot be read (it has no names in it)")
    return values


def _sources(manifest: Mapping[str, Any]) -> TrainingSources:
    """Read the statistics of the sources; ValueError if a value is invalid."""
    longest, share = manifest["longest_source"], manifest["several_sentences"]
    if type(longest) is not int or longest < 1:  # not True, which is an int too
        raise ValueError(f"longest_source is {longest!r}")
    if share is not None and (isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1):
        raise ValueError(f"several_sentences is {share!r}")
    ratios = {_direction(each[:2]): _length_ratio(each[2:]) for each in manifest["length_ratios"]}
    return TrainingSources(longest, share, ratios, tuple(map(_direction, manifest["directions"])))


def _direction(codes: Any) -> Direction:
    """Read a direction; ValueError or TypeError unless it is two codes of languages."""
    if not isinstance(codes, list) or not all(isinstance(code, str) and is_utf8(code) for code in codes):
        raise ValueError(f"a direction is {codes!r:.80}")
    return Direction(*codes)  # TypeError for more than two


def _length_ratio(values: Any) -> LengthRatio:
    """Read the ratio of lengths; ValueError if it is invalid."""
    mean, deviation = map(float, values)
    # NaN fails as well: no comparison with it is true.
    if not (abs(mean) <= _MOST_LOGARITHM and 0 <= deviation <= _MOST_LOGARITHM):
        raise ValueError(f"a length ratio is {values!r}")
    return LengthRatio(mean, deviation)


def _check_file(folder: Path, name: str, digest: str) -> None:
    path = folder / name
    # A zero byte or a lone surrogate, say, would be an error of the operating system.
    if not name.isprintable():
        raise CheckpointError(f"{folder / MANIFEST} is damaged (a file is called {name!r})")
    # A manifest may come from anybody: no file outside the folder is read, through a link neither.
    # os.path.realpath, not Path.resolve, which fails for a link to itself.
    real, own = Path(os.path.realpath(path)), folder.resolve()
    is_inside = real == own / name or real.parent == own.parent.parent / "blobs"  # to which the Hub's cache links
    if Path(name).is_absolute() or ".." in Path(name).parts or not is_inside:
        raise CheckpointError(f"{folder / MANIFEST} names a file outside its folder: {name}")
    if not path.is_file():
        raise CheckpointError(f"{folder} lacks its file {name}; copy the model directory again")
    if _sha256(path) != digest:
        raise CheckpointError(f"{path} is damaged: its checksum is not the manifest's; copy the directory again")


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
