"""The house has no circles: an import points only to a strictly lower rank."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "tolka"

# The first entry that a module's path starts with gives its rank; README and DESIGN show the same.
RANKS = {
    "errors": 0,
    "names": 0,
    "registry": 1,
    "checks": 2,
    "resources": 1,
    "special": 1,
    "runtime": 1,
    "threads": 1,
    "progress": 1,
    "stopping": 1,
    "children": 2,
    "upgrade": 1,
    "atomic": 1,
    "layout": 1,
    "line_statistics": 1,
    "numbers": 1,
    "manifest": 1,
    "settings": 2,
    "compose": 2,
    "batch": 2,
    "scoring": 2,
    "nn": 2,
    "text": 3,
    "report": 3,
    "models": 3,
    "data": 4,
    "losses": 4,
    "search": 4,
    "checkpoint": 4,
    "snapshot": 4,
    "decoding": 4,
    "inherited": 5,
    "translator": 5,
    "combine": 5,
    "evaluation": 6,
    "training": 6,
    "config": 7,
    "announcement": 8,
    "overrides": 8,
    "inputs": 8,
    "provenance": 4,
    "assembly": 9,
    "pipeline": 10,
    "api": 12,
    "checkup": 11,
    "multirun": 13,
    "cli": 14,
}


def rank(module: str) -> tuple[str, int]:
    """('text', 3) of 'tolka.text.lines'."""
    room = module.split(".")[1] if "." in module else ""
    return room, RANKS.get(room, -1)


def imports(path: Path) -> set[str]:
    """Names of the tolka modules that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tolka."):
            found.add(node.module)
        elif isinstance(node, ast.ImportFrom) and node.module == "tolka":
            found |= {f"tolka.{alias.name}" for alias in node.names if not alias.name.startswith("_")}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("tolka.")}
    return found


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_to_a_lower_rank(path: Path) -> None:
    module = ".".join(["tolka", *path.relative_to(PACKAGE).with_suffix("").parts])
    room, own = rank(module)
    assert own >= 0, f"{room} has no rank yet"
    for imported in imports(path):
        other, below = rank(imported)
        # Within one room, files may use each other; Python itself refuses a circle of them.
        assert other == room or below < own, f"{module} ({own}) imports {imported} ({below})"


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
    for name in ("common", "train", "translate", "evaluate"):
        tree = ast.parse((PACKAGE / "cli" / f"{name}.py").read_text(encoding="utf-8"))
        top = {node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.module}
        allowed = {
            "tolka.atomic",
            "tolka.cli",
            "tolka.cli.common",
            "tolka.errors",
            "tolka.names",
            "tolka.resources",
            "tolka.progress",
            "tolka.text.lines",
        }
        assert {module for module in top if module.startswith("tolka.")} <= allowed
