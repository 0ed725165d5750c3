"""An import points only to a strictly lower rank between rooms, and there are no circles of modules."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "tolka"

# docs/architecture.md shows the same.
RANKS = {
    "errors": 0,
    "version": 0,
    "page": 0,
    "system": 1,
    "distributed": 2,
    "options": 2,
    "metrics": 3,
    "kernels": 4,
    "text": 5,
    "tokenizer": 6,
    "terminology": 7,
    "documents": 8,
    "data": 8,
    "nn": 9,
    "models": 10,
    "losses": 11,
    "optim": 12,
    "search": 13,
    "model_directory": 14,
    "formats": 15,
    "engines": 16,
    "translation": 17,
    "interchange": 18,
    "training": 18,
    "evaluation": 19,
    "auto": 19,
    "report": 20,
    "tracking": 21,
    "jobs": 21,
    "serve": 22,
    "config": 23,
    "run": 24,
    "recipes": 25,
    "api": 26,
    "cli": 27,
}


def module_name(path: Path, package: Path) -> str:
    """'tolka.text.lines' of package / 'text' / 'lines.py'; a package's own name for its `__init__.py`."""
    parts = [package.name, *path.relative_to(package).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def rank(module: str) -> tuple[str, int]:
    """('text', 3) of 'tolka.text.lines'; the package itself, from which users import, stands above all."""
    if "." not in module or module.endswith(".__main__"):
        return "", max(RANKS.values()) + 1
    room = module.split(".")[1]
    return room, RANKS.get(room, -1)


def imports(source: str, modules: set[str]) -> set[str]:
    """The modules among `modules` that a file's text imports, wherever in it and for whatever reason.

    Imports in functions and under TYPE_CHECKING count; so do `import_module` and `__import__` of a constant.
    `from tolka import api` is an import of `tolka.api`, `from tolka import train` one of `tolka`.
    """
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "tolka has no relative imports"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in modules else str(node.module) for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__"):
                found.add(str(node.args[0].value))
    return found & modules


def graph(package: Path) -> dict[str, set[str]]:
    """Every module of a package -> the modules of it that it imports."""
    paths = {module_name(path, package): path for path in package.rglob("*.py")}
    texts = {name: path.read_text(encoding="utf-8") for name, path in paths.items()}
    return {name: imports(text, set(texts)) - {name} for name, text in texts.items()}


def upward(package: Path) -> list[str]:
    """Imports between rooms that do not point to a strictly lower rank."""
    found = []
    for module, imported in graph(package).items():
        room, own = rank(module)
        for other in sorted(imported):
            other_room, below = rank(other)
            if other_room != room and below >= own:
                found.append(f"{module} ({own}) imports {other} ({below})")
    return found


def circles(edges: dict[str, set[str]]) -> list[str]:
    """What is left of a graph when modules that import nothing left, again and again, are taken away."""
    left = {module: set(imported) for module, imported in edges.items()}
    while free := {module for module, imported in left.items() if not imported & left.keys()}:
        left = {module: imported for module, imported in left.items() if module not in free}
    return sorted(left)


GRAPH = graph(PACKAGE)


def test_every_module_has_a_rank() -> None:
    assert [module for module in GRAPH if rank(module)[1] < 0] == []


def test_imports_point_to_a_lower_rank() -> None:
    assert upward(PACKAGE) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles(GRAPH) == []


def within(parent: str, edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """What the modules and sub-packages of a package import from each other, sub-packages as a whole."""

    def part(module: str) -> str:
        return module.removeprefix(f"{parent}.").split(".")[0]

    inside = {module: imported for module, imported in edges.items() if module.startswith(f"{parent}.")}
    found: dict[str, set[str]] = {part(module): set() for module in inside}
    for module, imported in inside.items():
        found[part(module)] |= {part(other) for other in imported if other in inside} - {part(module)}
    return found


def test_no_sub_packages_import_each_other_in_a_circle() -> None:
    packages = {module.rpartition(".")[0] for module in GRAPH if "." in module}
    assert {package: found for package in packages if (found := circles(within(package, GRAPH)))} == {}


def test_a_circle_of_sub_packages_is_seen() -> None:
    edges = {"a.b.c": {"a.d.e"}, "a.d.e": set(), "a.d.f": {"a.b.g"}, "a.b.g": set()}
    assert circles(edges) == []
    assert circles(within("a", edges)) == ["b", "d"]


def test_imports_are_seen_wherever_they_stand(tmp_path: Path) -> None:
    package = tmp_path / "tolka"
    (package / "nn").mkdir(parents=True)
    texts = {
        "__init__.py": "",
        "errors.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from tolka.nn.linear import Linear\n",
        "options.py": "import tolka\n",
        "system.py": "def f():\n    import tolka.nn.linear\n",
        "metrics.py": "import importlib\nimportlib.import_module('tolka.nn')\n",
        "data.py": "from tolka import train, options\n",
        "nn/__init__.py": "",
        "nn/linear.py": "from tolka.nn import norms\nfrom tolka import errors\n",
        "nn/norms.py": "def f():\n    from tolka.nn.linear import Linear\n",
    }
    for name, text in texts.items():
        (package / name).write_text(text, encoding="utf-8")
    assert sorted(line.split(" (")[0] + " >" + line.split("imports")[1].split(" (")[0] for line in upward(package)) == [
        "tolka.data > tolka",
        "tolka.errors > tolka.nn.linear",
        "tolka.metrics > tolka.nn",
        "tolka.options > tolka",
        "tolka.system > tolka.nn.linear",
    ]
    assert {"tolka.nn.linear", "tolka.nn.norms"} <= set(circles(graph(package)))
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []


WITHOUT_TORCH = [
    *("tolka.models.transformer.options", "tolka.models.rnn.options", "tolka.models.options"),
    *("tolka.data.shards", "tolka.system.workers", "tolka.translation.flags", "tolka.translation.translator"),
]


def test_what_starts_quickly_imports_no_torch() -> None:
    """Options, also in their registry, the processes that prepare text, and a translator of another engine."""
    script = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
        "    assert 'torch' not in sys.modules, name\n"
        "assert sys.modules['tolka.models.options'].MODELS.presets()\n"
        "assert 'torch' not in sys.modules, 'the registry'\n"
    )
    command = [sys.executable, "-c", script, *WITHOUT_TORCH]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["train", "translate", "evaluate"])
def test_help_needs_nothing_heavy(command: str) -> None:
    script = (
        "import sys\n"
        f"from tolka.cli.{command} import run\n"
        "try:\n    run(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'numpy', 'datasets', 'sacrebleu', 'hydra', 'omegaconf', 'sentencepiece'}\n"
        "print(*sorted(heavy & set(sys.modules)), file=sys.stderr, end='')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_commands_import_little_at_their_top() -> None:
    """What a command imports before it parses its arguments."""
    for name in ("common", "train", "train_commands", "translate", "evaluate"):
        tree = ast.parse((PACKAGE / "cli" / f"{name}.py").read_text(encoding="utf-8"))
        top = {node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.module}
        allowed = {
            "tolka.system.launch",
            "tolka.system",
            "tolka.system.atomic",
            "tolka.cli",
            "tolka.cli.common",
            "tolka.cli.train_commands",
            "tolka.errors",
            "tolka.model_directory",
            "tolka.model_directory.names",
            "tolka.system.surrogates",
            "tolka.system.package_data",
            "tolka.system.progress",
            "tolka.text.lines",
            "tolka.version",
        }
        assert {module for module in top if module.startswith("tolka.")} <= allowed
