"""Fences: models/, nn/ and search/ name no processor and no private function of torch; library code prints nothing."""

import ast
import re
from pathlib import Path

import pytest
from rows import each_row

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


@each_row(
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


# What ends with a block or a call, or is a switch of the library's own.
ALLOWED = {
    "config/optuna_search.py": {"optuna.logging.set_verbosity"},
    "engines/ctranslate2_engine.py": {"ctranslate2.set_log_level"},
    "formats/ctranslate2/folder.py": {"sys.modules['torch']"},  # in a process that ends with the call
    "interchange/transformers_side.py": {"logging.set_verbosity_error", "logging.set_verbosity"},
    "kernels/quantized.py": {"torch.backends.quantized.engine"},
    "tracking/trackio.py": {"print"},  # whose own lines go to stdout
    "serve/server.py": {"logging.getLogger('python_multipart').setLevel"},  # the process is its own
    "training/signals.py": {"signal.signal"},
}
REDIRECTS = {"redirect_stderr", "redirect_stdout"}
CHANGES = REDIRECTS | {
    *("os.chdir", "os.umask", "os.putenv", "os.dup2", "signal.signal", "locale.setlocale"),
    *("warnings.filterwarnings", "warnings.simplefilter", "logging.basicConfig", "logging.disable"),
}
OF_THE_PROCESS = ("sys.", "os.environ", "warnings.", "logging.", "torch.backends.")
METHODS = {"setdefault", "update", "pop", "append", "insert", "extend", "remove", "clear"}
SWITCHES = {"setLevel", "set_verbosity", "set_verbosity_error", "set_log_level", "addHandler"}


def changes(source: str) -> list[str]:
    """What a module prints or changes in its process, if it is not one's own: a child's `main` may do that."""
    names: list[str] = []

    def visit(node: ast.AST, is_undone: bool) -> None:
        if (isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)) or getattr(node, "name", "") == "main":
            return
        if isinstance(node, ast.With):
            is_undone |= any("catch_warnings" in ast.unparse(item) for item in node.items)
        if isinstance(node, ast.Assign | ast.Delete):
            names.extend(text for each in node.targets if (text := ast.unparse(each)).startswith(OF_THE_PROCESS))
        if isinstance(node, ast.Name) and node.id == "print":
            names.append("print")
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            last = name.split(".")[-1]
            is_method = name.startswith(("os.environ.", "sys.path.", "sys.modules.")) and last in METHODS
            if is_method or last in SWITCHES or last in REDIRECTS or (name in CHANGES and not is_undone):
                names.append(name)
        for child in ast.iter_child_nodes(node):
            visit(child, is_undone)

    visit(ast.parse(source), False)
    return names


def test_library_code_prints_nothing_and_changes_nothing_in_its_process() -> None:
    """The commands do, and system/, which is about the process."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name, source = path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8")
        if name.split("/")[0] not in ("cli", "system") and (wrong := {*changes(source)} - ALLOWED.get(name, set())):
            found[name] = wrong
    assert found == {}


def test_only_commands_and_the_api_s_defaults_print_notes() -> None:
    """All else is handed a callback for them."""
    importing = re.compile(r"^from tolka\.system\.progress import .*\bsay\b", re.MULTILINE)
    named = [path for path in PACKAGE.rglob("*.py") if importing.search(path.read_text(encoding="utf-8"))]
    rooms = {path.relative_to(PACKAGE).parts[0] for path in named}
    assert rooms == {"api", "cli", "recipes"}
    # Those of recipes do so in a process that a recipe starts.
    assert {path.name for path in named if path.parent.name == "recipes"} == {"outcome.py", "steps.py"}
    for path in named:
        if path.parent.name == "api":
            tree = ast.parse(path.read_text(encoding="utf-8"))
            public = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name[0] != "_"]
            assert any("say" in [each.arg for each in node.args.args + node.args.kwonlyargs] for node in public), path


@each_row(
    ("lines", "names"),
    [
        ("sys.modules['torch'] = None", ["sys.modules['torch']"]),
        ("del sys.modules['torch']", ["sys.modules['torch']"]),
        ("sys.path.append('.')", ["sys.path.append"]),
        ("os.environ['X'] = '1'\nos.environ.setdefault('X', '1')", ["os.environ['X']", "os.environ.setdefault"]),
        ("with contextlib.redirect_stderr(io.StringIO()):\n    train()", ["contextlib.redirect_stderr"]),
        ("print('note')", ["print"]),
        ("warnings.simplefilter('ignore')", ["warnings.simplefilter"]),
        ("logging.getLogger('x').setLevel(0)", ["logging.getLogger('x').setLevel"]),
        ("with warnings.catch_warnings():\n    warnings.simplefilter('ignore')", []),
        ("if __name__ == '__main__':\n    sys.modules['torch'] = None\ndef main():\n    print(1)", []),
        ("path = os.environ.get('X')\nnames = sys.argv[1:]\nlog.warning('x')", []),
    ],
)
def test_what_changes_the_process_is_seen(lines: str, names: list[str]) -> None:
    assert changes(lines) == names
