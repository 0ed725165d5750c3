"""Folders of other programs' models, which may come from anybody: nothing is run, nothing outside them is read."""

import os
import warnings
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from torch import Tensor

from tolka.errors import CheckpointError
from tolka.model_directory.verify import read_json
from tolka.model_directory.weights import is_finite
from tolka.system.surrogates import is_utf8, printable
from tolka.system.whole_files import read_whole
from tolka.tokenizer.sentencepiece_model import processor_of

_MOST_JSON = 256 * 2**20  # bytes
_DTYPES = torch.float32, torch.float16, torch.bfloat16, torch.float64
_WEIGHTS, _INDEX, _PICKLED = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"
_PICKLED_INDEX = f"{_PICKLED}.index.json"
Shape = tuple[int, ...]
Reader = Path | Tensor | Callable[[], NDArray[Any]]
"""A tensor, the safetensors file that has it, or what reads it as an array."""
Weights = dict[str, Callable[[], Tensor]]
"""Functions that read a tensor as fp32; of safetensors files nothing stays in memory."""


class ModelFolder:
    """Reads the files of a folder by their names; CheckpointError, in one line, for what it will not read."""

    FORM: ClassVar[str] = "config.json"
    """What says which tensors there are, for messages."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_dir():
            raise CheckpointError(f"{path}: there is no such folder")
        # The Hub's cache has its files as links from snapshots/COMMIT to blobs/, in the same folder of the model.
        cached = path.resolve().parent
        is_cached = cached.name == "snapshots" and (cached.parent / "blobs").is_dir()
        self._root = cached.parent if is_cached else path.resolve()
        # models--OWNER--NAME has the name; the snapshot is called by its commit.
        self.name = self._root.name.rpartition("--")[2] if is_cached else self._root.name

    def has(self, name: str) -> bool:
        """Return whether there is an entry of this name."""
        return (self.path / name).exists() or (self.path / name).is_symlink()

    def file(self, name: str) -> Path:
        """Return the path of a file; CheckpointError if it is missing, not a regular file, or outside the folder."""
        path = self.path / name
        if Path(name).name != name or not name.isprintable():
            raise CheckpointError(f"{self.path} names a file outside its folder: {name!r:.200}")
        if not self.has(name):
            raise CheckpointError(f"{self.path} lacks its file {name}")
        real = Path(os.path.realpath(path))  # which takes a link to itself as well
        if not real.is_relative_to(self._root):
            raise CheckpointError(f"{path} is a link to a file outside its folder: copy the file itself there")
        if not real.is_file():
            raise CheckpointError(f"{path} is not a file, or a link to nothing")
        # Opened here, since safetensors reports a file without permission as missing.
        try:
            path.open("rb").close()
        except OSError as error:
            raise CheckpointError(f"{path} cannot be read ({error.strerror})") from None
        return path

    def json(self, name: str) -> dict[str, Any]:
        """Return the object in a JSON file."""
        return read_json(self.file(name), _MOST_JSON)

    def vocabulary(self, name: str) -> list[str]:
        """Return the subwords in a JSON file in the order of their ids; CheckpointError as `in_order`."""
        return in_order(self.json(name), self.path / name)

    def sentencepiece_model(self, name: str) -> bytes:
        """Return the SentencePiece model in a file; CheckpointError if it is none, or too large to be read."""
        path = self.file(name)
        try:
            content = read_whole(path, _MOST_JSON)
            processor_of(content)
        except ValueError as error:
            raise CheckpointError(f"{path} cannot be read ({error})") from None
        except RuntimeError:
            raise CheckpointError(f"{path} is not a SentencePiece model") from None
        return content

    def weights(self, shapes: Mapping[str, Shape], optional: Collection[str]) -> Weights:
        """Return functions that read the tensors, of safetensors files or, with `weights_only`, of pickled files.

        shapes: of the expected tensors, of which those in `optional` may be missing; CheckpointError for any other.
        """
        # All shapes are compared before a tensor is read.
        source, found, readers = self._open_weights()
        names = [f"{name} is missing" for name in sorted(shapes.keys() - found.keys() - {*optional})]
        names += [f"{name} is unknown" for name in sorted(found.keys() - shapes.keys())]
        if names:
            raise CheckpointError(f"{source}: {len(names)} tensors differ from {self.FORM}: {', '.join(names[:4])}")
        for name, shape in found.items():
            if shape != shapes[name]:
                raise CheckpointError(
                    f"{source}: {name} is {shape}, and by {self.FORM} and the vocabulary it must be {shapes[name]}"
                )
        return {name: partial(_read, name, reader, source) for name, reader in readers.items()}

    def tensor_names(self) -> set[str]:
        """Return the names of the tensors, without reading them."""
        return {*self._open_weights()[1]}

    def weight_files(self) -> list[str]:
        """Return the names of the files of the weights, and of their index."""
        if self.has(_WEIGHTS):
            return [_WEIGHTS]
        for index, ending in ((_INDEX, ".safetensors"), (_PICKLED_INDEX, ".bin")):
            if self.has(index) and (index == _INDEX or not self.has(_PICKLED)):
                return [index, *self._parts(index, ending)]
        return [_PICKLED]

    def _open_weights(self) -> tuple[Path, dict[str, Shape], dict[str, Reader]]:
        """Return the path for messages, the shape of each tensor, and what `Weights` reads it from."""
        shapes: dict[str, Shape] = {}
        readers: dict[str, Reader] = {}
        path = self.path
        for part in self.weight_files():
            if part in (_INDEX, _PICKLED_INDEX):
                continue
            path = self.path / part
            if part.endswith(".safetensors"):
                found: dict[str, Shape] = _shapes_in(self.file(part))
                readers |= dict.fromkeys(found, path)
            else:
                tensors = self._load_pickled(part)
                found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
                readers |= tensors
            if twice := sorted(found.keys() & shapes.keys()):
                raise CheckpointError(f"{path}: {twice[0]} is in another file as well")
            shapes |= found
        return path, shapes, readers

    def _parts(self, index: str, ending: str) -> list[str]:
        """Return the names of the files of a sharded model. index: the file that names them; ending: of their names."""
        named = self.json(index).get("weight_map")
        if not isinstance(named, dict) or not all(isinstance(name, str) for name in named.values()):
            raise CheckpointError(f"{self.path / index} does not say in which files the tensors are (weight_map)")
        names = sorted({*named.values()})
        if not names or not all(name.endswith(ending) for name in names):
            raise CheckpointError(f"{self.path / index} names other files than {ending.removeprefix('.')}")
        return names

    def _load_pickled(self, name: str) -> dict[str, Tensor]:
        """Load pytorch_model.bin, or a part of it, without running anything in it."""
        if name == _PICKLED and not self.has(name):
            raise CheckpointError(f"{self.path} has no weights: neither {_WEIGHTS}, nor {_INDEX}, nor {_PICKLED}")
        path = self.file(name)
        try:
            with warnings.catch_warnings():  # torch warns of a pickle's version before it refuses the file
                warnings.simplefilter("ignore")
                # torch writes a zip file since 1.6, whose tensors can be mapped instead of read.
                found = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
        except Exception as error:  # damaged bytes raise errors of many kinds
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:160]
            complaint = f"{path} is not a file of tensors alone, and nothing in it is run: {reason}"
            raise CheckpointError(complaint) from None
        if not isinstance(found, dict) or not all(map(_is_dense, found.values())):
            raise CheckpointError(f"{path} has something else than dense tensors in it")
        return {str(name): each.detach() for name, each in found.items()}  # of parameters, as some programs save them


def in_order(ids: Mapping[str, Any], where: Path) -> list[str]:
    """Return subwords in the order of their ids; CheckpointError unless these are all from 0 on, each once."""
    # By exact type: True and 1.0 are equal to 1.
    if not all(type(number) is int for number in ids.values()) or sorted(ids.values()) != list(range(len(ids))):
        raise CheckpointError(f"{where} must number its {len(ids)} subwords from 0 to {len(ids) - 1}, each once")
    check_subwords(ids, where)
    return sorted(ids, key=ids.__getitem__)


def check_subwords(names: Iterable[str], where: Path) -> None:
    """Raise CheckpointError for subwords that cannot be written in UTF-8."""
    if broken := [name for name in names if not is_utf8(name)]:
        raise CheckpointError(
            f"{where}: the subword {printable(broken[0]):.80} is not UTF-8: a lone surrogate is in it"
        )


def _is_dense(found: Any) -> bool:
    return isinstance(found, Tensor) and (found.layout, found.is_nested, found.is_meta) == (torch.strided, False, False)


def _shapes_in(path: Path) -> dict[str, Shape]:
    """Return the shape of each tensor in a safetensors file; CheckpointError if it is damaged."""
    try:
        with safe_open(path, framework="pt") as opened:
            return {name: tuple(opened.get_slice(name).get_shape()) for name in list(opened.keys())}
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} cannot be read: {' '.join(str(error).split())[:200]}") from None


def _read(name: str, reader: Reader, source: Path) -> Tensor:
    """Return a tensor as fp32; CheckpointError unless it is of a usual floating dtype, and finite in fp32.

    source: for messages.
    """
    tensor = torch.tensor(reader()) if callable(reader) else reader
    if isinstance(tensor, Path):
        # Opened again for each tensor: pages of a mapped file count as memory until it is closed.
        with safe_open(tensor, framework="pt") as opened:
            tensor = opened.get_tensor(name)
    if tensor.dtype not in _DTYPES:
        dtype, *allowed = (str(each).removeprefix("torch.") for each in (tensor.dtype, *_DTYPES))
        raise CheckpointError(f"{source}: {name} is {dtype}, and must be one of {', '.join(allowed)}")
    converted = tensor.float()
    if not is_finite(converted):  # after the conversion: a float64 may be beyond fp32
        raise CheckpointError(f"{source}: the model's weights are not finite (NaN or inf in {name})")
    return converted
