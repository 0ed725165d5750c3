"""Memory of the machine and of this process, and settings of the allocators. Imports no torch."""

import ctypes
import os
import platform
import sys
from contextlib import suppress
from pathlib import Path

# In the errors of torch's allocator on the CPU, CUDA, cuBLAS and CTranslate2 when memory runs out.
_NO_MEMORY = ("can't allocate memory", "out of memory", "STATUS_ALLOC_FAILED", "bad_alloc", "failed to allocate")


def keep_freed_memory() -> bool:
    """Tell glibc to keep freed blocks; return whether this machine's allocator supports it."""
    # By default large blocks go back to the kernel when freed, and are faulted in page by page at the next training
    # step. Set from inside the process, so that nobody has to export an environment variable.
    if platform.libc_ver()[0] != "glibc":
        return False
    settings = {-4: 0, -1: 2**31 - 1, -2: 64 * 2**20}  # M_MMAP_MAX, M_TRIM_THRESHOLD and M_TOP_PAD of malloc.h
    accepted = [ctypes.CDLL(None).mallopt(*each) == 1 for each in settings.items()]
    return all(accepted)


def share_freed_memory() -> None:
    """Have all threads take memory from two of glibc's arenas: of many, each keeps what its threads have freed."""
    # A recurrent model under 32 clients for 45 s: 730 MB with two, 1400 without, and as many sentences a second.
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).mallopt(-8, 2)  # M_ARENA_MAX of malloc.h


def return_freed_memory() -> None:
    """Give freed blocks back to the system after all: those of a whole model, which nothing will need again."""
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)


def resident_memory_bytes() -> int:
    """Return the resident memory of this process; its peak where only that is known."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError):
        return peak_memory_bytes()
    return pages * os.sysconf("SC_PAGE_SIZE")


def memory_in_use() -> dict[str, float]:
    """Return the memory that this process has, in GB: "memory" of the machine, "gpu_memory" where a GPU is in use."""
    gigabytes = {"memory": resident_memory_bytes() / 1e9}
    torch = sys.modules.get("torch")
    if torch and torch.cuda.is_initialized():
        gigabytes["gpu_memory"] = torch.cuda.memory_reserved() / 1e9
    return gigabytes


def peak_memory_bytes() -> int:
    """Return the peak resident memory of this process; 0 where unknown (Windows)."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # In bytes on macOS, in KiB elsewhere.
    return peak if platform.system() == "Darwin" else peak * 1024


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that the device or the machine is out of memory."""
    is_torchs = type(error).__name__ == "OutOfMemoryError"
    return is_torchs or isinstance(error, MemoryError) or any(part in str(error) for part in _NO_MEMORY)


def total_memory_bytes() -> int:
    """Return the machine's memory, or its container's limit; 0 where unknown."""
    try:
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, ValueError, OSError):
        return 0
    # Containers see the memory of the whole machine; their limit is that of their control group, version 2 or 1.
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # no such file, or "max"
            limits.append(int(Path(path).read_text(encoding="ascii")))
    return min(limits)
