"""The page of the Python API names what is there."""

import importlib
import re
from pathlib import Path

from rows import each_row

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "api.md"
NAMES = re.findall(r"^\.\. auto(?:class|function):: ([\w.]+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


@each_row("name", NAMES)
def test_what_it_names_is_where_it_says(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    found = getattr(importlib.import_module(module), attribute)
    assert found.__module__ == module, "the page names a copy"
