"""docs/transformer.md quotes what was measured, shows figures that exist and points to code that exists."""

import json
import re
import sys
from pathlib import Path

import pytest
from rows import each_row

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TEXT = (DOCS / "transformer.md").read_text(encoding="utf-8")
NUMBERS = json.loads((DOCS / "figures" / "numbers.json").read_text(encoding="utf-8"))
LINKS = re.findall(r"\[([^]]*)\]\(([^)]+)\)", TEXT)
CODE = [(name.strip("`"), target) for name, target in LINKS if target.endswith(".py")]
# Not measured: the version of torch, settings, constants of formulas, ln 2000, and the demo's PPL, from the README.
GIVEN = {"2.13", "0.9", "0.1", "-0.5", "-1.5", "7.6", "1.11"}


def tables() -> dict[str, str]:
    """The script's own wording of numbers.json."""
    pytest.importorskip("matplotlib")
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import explain_transformer
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    found: dict[str, str] = explain_transformer.tables(NUMBERS)
    return found


def test_every_measured_table_is_the_script_s() -> None:
    shown = [table for table in re.findall(r"(?:^\|.*\n)+", TEXT, flags=re.MULTILINE) if "| --- |" in table]
    assert len(shown) > 5
    assert [table for table in shown if table not in tables().values()] == []


def test_every_number_in_the_prose_is_a_measured_one() -> None:
    number = r"-?\d+\.\d+(?:e-\d+)?"
    measured = set(re.findall(number, "".join(tables().values())))
    prose = re.sub(r"^\|.*|```[^`]*```|`[^`]*`|\]\([^)]*\)", "", TEXT, flags=re.MULTILINE)
    quoted = set(re.findall(number, prose.split("## References")[0]))
    assert len(quoted) > 20
    assert quoted - measured - GIVEN == set()


def test_links_lead_somewhere() -> None:
    assert len(LINKS) > 10
    assert [target for _, target in LINKS if not (DOCS / target).exists()] == []


@each_row(("name", "target"), CODE)
def test_the_code_pointed_to_is_there(name: str, target: str) -> None:
    source = (DOCS / target).read_text(encoding="utf-8")
    assert re.search(rf"^\s*(def |class )?{re.escape(name)}\b", source, flags=re.MULTILINE), name


def test_every_figure_is_shown_and_small() -> None:
    figures = {path.name for path in (DOCS / "figures").glob("*.png")}
    text = "".join(path.read_text(encoding="utf-8") for path in DOCS.glob("*.md"))
    assert figures == set(re.findall(r"\]\(figures/(\w+\.png)\)", text))
    assert all((DOCS / "figures" / name).stat().st_size < 150_000 for name in figures)
