"""Tensors of which each of several processes has a part, written by all of them at once.

torch's distributed checkpoints in its safetensors format: each process writes what it has to a file of its own, and any
number of processes reads them.
"""

import shutil
import warnings
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import async_save

from tolka.errors import CheckpointError
from tolka.system.atomic import link_or_copy


@dataclass(frozen=True)
class Shards:
    """A folder of such files. writing: a future of all processes' parts; None for a folder that is complete."""

    folder: Path
    writing: Future[Any] | None = None

    def link_into(self, folder: Path) -> None:
        """Wait until the files are complete, and link them into another folder; CheckpointError if a write failed."""
        try:
            if self.writing:
                self.writing.result()
        except CheckpointException as error:
            raise CheckpointError(
                f"a process could not write its part ({' '.join(str(error).split())[:200]})"
            ) from None
        shutil.copytree(self.folder, folder, copy_function=link_or_copy)

    def delete(self) -> None:
        """Delete the folder and its files."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def shapes(self) -> dict[str, torch.Size]:
        """Return the shape of each whole tensor."""
        return {name: stored.size for name, stored in self._metadata().items()}

    def read(self, like: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
        """Return the whole tensors. like: tensors to fill instead, of which each process has its part."""
        tensors = {
            name: like[name] if like and name in like else torch.empty(stored.size, dtype=stored.properties.dtype)
            for name, stored in self._metadata().items()
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # torch's, that one process reads by itself
            load(tensors, storage_reader=HuggingFaceStorageReader(str(self.folder)), no_dist=not like)
        return tensors

    def _metadata(self) -> dict[str, TensorStorageMetadata]:
        """Return shape and dtype of each tensor."""
        stored = HuggingFaceStorageReader(str(self.folder)).read_metadata().state_dict_metadata
        return {name: each for name, each in stored.items() if isinstance(each, TensorStorageMetadata)}


def begin_writing(tensors: Mapping[str, Tensor], folder: Path, group: dist.ProcessGroup) -> Shards:
    """Copy this process's parts of the tensors, and write them in the background; every process of `group` calls it.

    folder: on a file system that all of them share. group: used by nothing else meanwhile.
    """
    writer = HuggingFaceStorageWriter(str(folder), save_distributed=True)
    writing = async_save(dict(tensors), storage_writer=writer, process_group=group)
    assert isinstance(writing, Future)
    return Shards(folder, writing)
