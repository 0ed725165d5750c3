"""The tree in docs/architecture.md is the tree."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_tree_has_every_package_with_its_rank() -> None:
    shown = {
        name.rstrip("/"): int(rank) for name, rank in re.findall(r"^[├└]── ([\w./]+)\s+\[(\d+)\]", PAGE, re.MULTILINE)
    }
    tree = ast.parse((ROOT / "tests" / "test_layers.py").read_text(encoding="utf-8"))
    (ranks,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "RANKS"
    )
    assert {name.removesuffix(".py"): rank for name, rank in shown.items()} == ranks
    packages = {path.name for path in (ROOT / "src" / "tolka").iterdir() if not path.name.startswith("_")}
    assert set(shown) == packages - {"py.typed"}


def test_every_package_inside_a_package_is_named() -> None:
    parts = re.split(r"^[├└]── ", PAGE, flags=re.MULTILINE)[1:]
    sections = {part.split()[0].rstrip("/"): part for part in parts}
    for path in (ROOT / "src" / "tolka").glob("*/*/__init__.py"):
        assert f"{path.parent.name}/" in sections[path.parents[1].name], path


def test_every_module_that_is_named_exists() -> None:
    tree = PAGE[PAGE.index("src/tolka/") : PAGE.index("## The way of a sentence")]
    existing = {path.name for path in (ROOT / "src" / "tolka").rglob("*.py")}
    assert set(re.findall(r"[\w]+\.py", tree)) <= existing


def test_every_config_group_is_named() -> None:
    for folder in (ROOT / "configs").iterdir():
        if folder.is_dir():
            assert f"{folder.name}/" in PAGE
