"""What the machine can do at most: matrix products by type and shape, and memory.

    python benchmarks/limits.py [THREADS]

Prints JSON: GFLOP/s of products, median of several; GB/s of copying 256 MB, read and written both counted.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable

import torch

SHAPES = {
    "square": (1024, 1024, 1024),
    "inner": (4096, 256, 1024),
    "outer": (4096, 1024, 256),
    "output": (4096, 256, 8000),
}
REPEATS, ENOUGH = 30, 2.0  # times; seconds


def seconds(work: Callable[[], object]) -> float:
    """Median, after a warm-up; of fewer where one takes long, as in a precision that is emulated."""
    work()
    took: list[float] = []
    while len(took) < REPEATS and sum(took) < ENOUGH:
        started_at = time.perf_counter()
        work()
        took.append(time.perf_counter() - started_at)
    return statistics.median(took)


def products(shape: str, dtype: torch.dtype) -> float:
    """GFLOP/s, by the faster of the libraries that torch has: in fp32 it takes MKL, though oneDNN may be faster."""
    rows, inner, columns = SHAPES[shape]
    a, b = torch.randn(rows, inner).to(dtype), torch.randn(inner, columns).to(dtype)
    out = torch.empty(rows, columns, dtype=dtype)
    took = seconds(lambda: torch.mm(a, b, out=out))
    if dtype == torch.float32 and hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        weight = b.t().contiguous()
        took = min(took, seconds(lambda: torch.ops.mkldnn._linear_pointwise(a, weight, None, "none", [], "")))
    return 2 * rows * inner * columns / took / 1e9


def main() -> None:
    """All of it."""
    if len(sys.argv) > 1:
        torch.set_num_threads(int(sys.argv[1]))
    found: dict[str, float] = {"threads": torch.get_num_threads()}
    for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        for shape in SHAPES:
            found[f"{name} {shape} GFLOP/s"] = products(shape, dtype)
    source, target = torch.ones(2**26), torch.empty(2**26)
    found["copy GB/s"] = 2 * 2**28 / seconds(lambda: target.copy_(source)) / 1e9
    print(json.dumps(found))


if __name__ == "__main__":
    main()
