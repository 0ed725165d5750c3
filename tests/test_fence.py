"""models/, nn/ and search/ name no processor, no vendor and no private function of torch: kernels/ does."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "tolka"
# Where torch keeps what is about processors and their vendors, and operators without a Python function.
PROCESSORS = {"backends", "cpu", "cuda", "mps", "ops", "xpu"}
OF_A_TENSOR = {"is_cpu", "is_cuda", "is_mkldnn", "is_mps", "is_xpu"}


def forbidden(source: str) -> list[str]:
    """What a module names against the fence."""
    tree = ast.parse(source)
    of_torch: dict[str, str] = {}  # a name in this module -> what it is in torch
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            of_torch |= {alias.asname or "torch": alias.name for alias in node.names if _is_torch(alias.name)}
        elif isinstance(node, ast.ImportFrom) and node.module and _is_torch(node.module):
            of_torch |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            names.append(_path(node, of_torch))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("getattr", "hasattr"):
            names.append(f"{_path(node.args[0], of_torch)}.{getattr(node.args[1], 'value', '')!s}")
    return [name for name in names if _breaks(name)]


def _is_torch(name: str) -> bool:
    return name.split(".")[0] == "torch"


def _path(node: ast.expr, of_torch: dict[str, str]) -> str:
    """`torch.nn.functional.relu` of `F.relu`; `?` where it is an expression."""
    if isinstance(node, ast.Attribute):
        return f"{_path(node.value, of_torch)}.{node.attr}"
    return of_torch.get(node.id, node.id) if isinstance(node, ast.Name) else "?"


def _breaks(name: str) -> bool:
    first, *others = name.split(".")
    if first == "torch" and others:
        return others[0] in PROCESSORS or any(part.startswith("_") and not part.endswith("__") for part in others)
    return name.endswith("device.type") or bool(OF_A_TENSOR & set(others))


@pytest.mark.parametrize("room", ["models", "nn", "search"])
def test_no_processor_is_named(room: str) -> None:
    modules = sorted((PACKAGE / room).rglob("*.py"))
    assert len(modules) > 5
    found = {str(path.relative_to(PACKAGE)): forbidden(path.read_text(encoding="utf-8")) for path in modules}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("x.device.type == 'cpu'", ["x.device.type"]),
        ("device.type", ["device.type"]),
        ("x[0].is_cuda", ["?.is_cuda"]),
        ("import torch\ntorch.ops.mkldnn", ["torch.ops.mkldnn", "torch.ops"]),
        ("import torch.nn.functional as F\nF._scaled(x)", ["torch.nn.functional._scaled"]),
        ("from torch import nn\nnn.modules._functions", ["torch.nn.modules._functions"]),
        ("from torch._C import x", ["torch._C.x"]),
        ("from torch.cuda import is_available", ["torch.cuda.is_available"]),
        ("import torch._dynamo", ["torch._dynamo"]),
        ("import torch\ngetattr(torch.nn, '_x', None)", ["torch.nn._x"]),
        ("import torch\ntorch.zeros(1, device=x.device).to(x.dtype.type)\nself._x\nnn.functional.relu", []),
    ],
)
def test_what_breaks_the_fence_is_seen(line: str, names: list[str]) -> None:
    assert sorted(forbidden(line)) == sorted(names)
