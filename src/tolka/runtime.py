"""The machine a command runs on: device, precision, threads, memory allocator, seeds."""

import ctypes
import os
import platform
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tolka.errors import ConfigError

PRECISIONS = ("auto", "fp32", "bf16", "fp16")
MOST_THREADS = 1024  # more is a slip of the finger, and OpenMP ends the process for want of memory
# What the CPU's allocator, CUDA and cuBLAS say when they have none left.
_NO_MEMORY = ("can't allocate memory", "CUDA error: out of memory", "STATUS_ALLOC_FAILED")
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4  # glibc's malloc.h


def choose_device(name: str, key: str = "trainer.device") -> torch.device:
    """`auto` takes the first CUDA device, else the CPU; `cpu`, `cuda`, `cuda:N` are taken at their word.

    key: the setting that `name` came from, for the message of the ConfigError. cuDNN's attention is not used from then
    on: it makes a plan for every shape anew, and texts have many.
    """
    torch.backends.cuda.enable_cudnn_sdp(False)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"{key} ({name}) is no device; allowed: auto, cpu, cuda, cuda:N") from None
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"{key} ({name}) is not supported; allowed: auto, cpu, cuda, cuda:N")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"{key} is {name}, but this machine shows {torch.cuda.device_count()} CUDA devices; try auto")
    return device


def use_threads(count: int) -> None:
    """Let torch calculate with so many CPU threads from now on; 0 leaves it as it is."""
    if count:
        torch.set_num_threads(count)


def has_fast_bf16(device: torch.device) -> bool:
    """Whether the device multiplies bf16 matrices in hardware (CUDA: natively; CPU: AMX or AVX512-BF16)."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported())


@dataclass(frozen=True)
class Precision:
    """fp32, or autocast in bf16 or fp16 with master weights in fp32 (Micikevicius et al. 2018)."""

    device: torch.device
    name: str

    @contextmanager
    def autocast(self) -> Iterator[None]:
        """The forward pass's context; does nothing in fp32."""
        dtype = torch.float16 if self.name == "fp16" else torch.bfloat16
        with torch.autocast(self.device.type, dtype=dtype, enabled=self.name != "fp32"):
            yield

    @property
    def needs_scaler(self) -> bool:
        """fp16's smallest gradients vanish unless the loss is scaled; bf16 has fp32's range."""
        return self.name == "fp16"


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy and torch on every device."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def random_state() -> dict[str, Any]:
    """Where Python's and NumPy's generators stand, in values that fit into JSON; torch's are tensors of their own."""
    version, numbers, gauss = random.getstate()
    name, key, *rest = np.random.get_state(legacy=True)
    return {"python": [version, list(numbers), gauss], "numpy": [name, [int(number) for number in key], *rest]}


@contextmanager
def torch_random_kept(device: torch.device) -> Iterator[None]:
    """Whatever a block draws, torch's generators go on as if it had not been."""
    before, before_cuda = torch.get_rng_state(), None
    if device.type == "cuda":
        before_cuda = torch.cuda.get_rng_state(device)
    try:
        yield
    finally:
        torch.set_rng_state(before)
        if before_cuda is not None:
            torch.cuda.set_rng_state(before_cuda, device)


def set_random_state(state: Mapping[str, Any]) -> None:
    """Go on from what `random_state` gave."""
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    name, key, *rest = state["numpy"]
    np.random.set_state((name, np.array(key, dtype=np.uint32), *rest))


def make_deterministic() -> None:
    """Have torch take no kernel whose result may differ from run to run; an operation that has none other fails.

    Slower on a GPU. On a CPU the same number of threads gives the same result anyway.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when cuBLAS starts
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False


def keep_freed_memory() -> bool:
    """Tell glibc to keep freed blocks; returns whether this machine's allocator understood.

    By default large blocks go back to the kernel when freed and are faulted in page by page at the next training
    step. Set from inside the process, so that nobody has to export an environment variable.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    settings = {_M_MMAP_MAX: 0, _M_TRIM_THRESHOLD: 2**31 - 1, _M_TOP_PAD: 64 * 2**20}
    accepted = [int(libc.mallopt(parameter, value)) == 1 for parameter, value in settings.items()]
    return all(accepted)


def available_memory_bytes() -> int:
    """What this process can still have without others losing theirs, within its container; 0 where unknown."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return 0
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            left = int(Path(limit).read_text(encoding="ascii")) - int(Path(used).read_text(encoding="ascii"))
        except (OSError, ValueError):  # no such file, or "max"
            continue
        free = min(free, max(0, left))
    return free


def resident_memory_bytes() -> int:
    """What this process has now; its peak where only that is known."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError):
        return peak_memory_bytes()
    return pages * os.sysconf("SC_PAGE_SIZE")


def peak_memory_bytes() -> int:
    """Peak resident memory of this process (Linux reports KiB, macOS bytes); 0 where unknown (Windows)."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if platform.system() == "Darwin" else peak * 1024


def is_out_of_memory(error: BaseException) -> bool:
    """Whether it says that a device, or this machine, has no memory left."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(part in str(error) for part in _NO_MEMORY)


def empty_cache(device: torch.device) -> None:
    """Give freed blocks of GPU memory back, so that larger ones can be made of them."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


def total_memory_bytes() -> int:
    """The machine's memory, or what a container may have of it; 0 where unknown."""
    limits = []
    try:
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return 0
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limits.append(int(Path(path).read_text(encoding="ascii")))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return min(limits)


def describe(device: torch.device) -> str:
    """One phrase for logs and model cards: the device, and the threads where it is a CPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    counted = f"{threads} thread{'s' if threads > 1 else ''}"
    return f"{platform.machine()} CPU ({torch.backends.cpu.get_cpu_capability()}), {counted}"
