"""One name for one thing."""

import ast
import re
from collections import Counter
from pathlib import Path

import tolka

ROOT = Path(__file__).parents[1]


def public_classes(package: Path) -> list[str]:
    """The public classes at the top of each module; plain.py, the paper on one page, has the paper's names."""
    modules = [path for path in package.rglob("*.py") if path.name != "plain.py"]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in modules]
    classes = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    return [each.name for each in classes if not each.name.startswith("_")]


def test_no_two_public_classes_have_one_name(tmp_path: Path) -> None:
    assert [name for name, count in Counter(public_classes(ROOT / "src" / "tolka")).items() if count > 1] == []
    for name in ("one", "other", "plain"):
        (tmp_path / f"{name}.py").write_text("class Side: ...\nclass _Part: ...\n", encoding="utf-8")
    assert public_classes(tmp_path) == ["Side", "Side"]


def test_nothing_in_the_public_api_has_two_names() -> None:
    objects = {id(getattr(tolka, name)): name for name in tolka.__all__}
    assert sorted(objects.values()) == sorted(tolka.__all__)
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    documented = re.findall(r"auto\w+:: tolka\.\S+\.(\w+)$", page, flags=re.MULTILINE)
    assert len(documented) > 30
    assert [name for name, count in Counter(documented).items() if count > 1] == []
