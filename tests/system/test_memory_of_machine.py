"""The memory of this process and of the machine, as the system's files say, and errors that mean that it ran out."""

import os
from pathlib import Path

import pytest
import torch
from rows import each_row

from tolka.system import memory

PAGE = os.sysconf("SC_PAGE_SIZE")


def with_files(monkeypatch: pytest.MonkeyPatch, files: dict[str, str]) -> None:
    """Let the machine have these files of the system alone."""

    def read(path: Path, encoding: str = "") -> str:
        if str(path) not in files:
            raise FileNotFoundError(path)
        return files[str(path)]

    monkeypatch.setattr(Path, "read_text", read)


def test_resident_memory_is_the_second_number_of_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    with_files(monkeypatch, {"/proc/self/statm": "900 250 30 1 0 80 0\n"})
    assert memory.resident_memory_bytes() == 250 * PAGE
    assert memory.memory_in_use()["memory"] == 250 * PAGE / 1e9


@each_row("files", [{}, {"/proc/self/statm": "unreadable pages"}])
def test_where_it_is_not_known_the_peak_stands_for_it(monkeypatch: pytest.MonkeyPatch, files: dict[str, str]) -> None:
    monkeypatch.setattr(memory, "peak_memory_bytes", lambda: 12345)
    with_files(monkeypatch, files)
    assert memory.resident_memory_bytes() == 12345


def test_memory_that_is_written_is_resident_and_counts_in_the_peak() -> None:
    before = memory.resident_memory_bytes()
    block = bytearray(b"x" * 2**26)
    with_block = memory.resident_memory_bytes()
    assert with_block - before > 0.9 * len(block)
    # The kernel counts pages in batches, so that the two may differ by a few.
    assert memory.peak_memory_bytes() > with_block - 2**22


@each_row(
    ("files", "expected"),
    [
        ({}, 1000 * PAGE),
        ({"/sys/fs/cgroup/memory.max": "max\n"}, 1000 * PAGE),
        ({"/sys/fs/cgroup/memory.max": "4096000\n"}, min(4096000, 1000 * PAGE)),
        ({"/sys/fs/cgroup/memory.max": "9999999999999\n"}, 1000 * PAGE),
        ({"/sys/fs/cgroup/memory/memory.limit_in_bytes": "65536\n"}, 65536),  # version 1
        ({"/sys/fs/cgroup/memory.max": "max\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes": "65536"}, 65536),
    ],
)
def test_the_machine_or_its_containers_limit(
    monkeypatch: pytest.MonkeyPatch, files: dict[str, str], expected: int
) -> None:
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": PAGE, "SC_PHYS_PAGES": 1000}.__getitem__)
    with_files(monkeypatch, files)
    assert memory.total_memory_bytes() == expected


def test_a_system_that_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> int:
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(os, "sysconf", unknown)
    assert memory.total_memory_bytes() == 0


@each_row(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), True),
        (
            RuntimeError("[enforce fail at alloc_cpu.cpp:114] . DefaultCPUAllocator: can't allocate memory: 8 bytes"),
            True,
        ),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("CUDA error: device-side assert triggered"), False),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (OSError(28, "No space left on device"), False),
    ],
)
def test_which_errors_mean_that_memory_ran_out(error: BaseException, expected: bool) -> None:
    assert memory.is_out_of_memory(error) is expected


def test_torchs_own_error_of_a_tensor_that_no_machine_holds() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**55, dtype=torch.uint8)
    assert memory.is_out_of_memory(caught.value)
