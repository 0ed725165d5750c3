"""docs/reading.md leads to files and names that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tolka"
TEXT = (ROOT / "docs" / "reading.md").read_text(encoding="utf-8")
CODE = re.findall(r"(?<!`)`([^`]+)`(?!`)", TEXT)


def test_every_path_exists() -> None:
    paths = [code for code in CODE if "/" in code and not code.startswith("</")]
    assert len(paths) > 20
    assert [path for path in paths if not (SOURCE / path).exists() and not (ROOT / path).exists()] == []


def test_every_name_is_in_a_file_that_the_page_links_to_or_names() -> None:
    files = {SOURCE / path for path in CODE if path.endswith(".py") and (SOURCE / path).exists()}
    # Base classes of settings, and the contract behind models/base.py.
    files |= {SOURCE / "models" / "seq2seq.py", SOURCE / "optim" / "optimizers" / "base.py"}
    defined = {
        name
        for path in files
        for name in re.findall(r"^ *(?:def |class |self\.)?(\w+)\b(?=[(: =])", path.read_text("utf-8"), re.MULTILINE)
    }
    names = {part for code in CODE if re.fullmatch(r"[\w.]+", code) for part in code.split(".")}
    names = {name for name in names if re.search(r"[A-Z_]", name)}
    assert len(names) > 15
    assert names - defined == set()
