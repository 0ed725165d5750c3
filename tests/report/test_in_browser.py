"""Pages in Chromium: at the widths of a telephone, a tablet and a desk, in light and dark.

AXE=FILE names axe.min.js of the npm package axe-core, whose rules then hold as well.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser import CHROMIUM, look

Command = Callable[..., Any]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium")]
SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
OF_SITE = ["index", "tutorial/first_translator", "howto/recipes", "ladder", "reference/settings"]


def check(page: Path) -> None:
    for width in (390, 900, 1400):
        for dark in (False, True):
            found = look(page, width, dark)
            assert (found["width"], found["dark"]) == (width, dark)
            assert found["overflow"] == 0, f"{page.name} is wider than {width} pixels"
            found["axe"] = [each for each in found["axe"] if 'lang="xa"' not in each]  # which is none
            serious = [each for each in found["axe"] if each.startswith(("serious", "critical"))]
            assert not serious, f"{page.name} at {width}, {'dark' if dark else 'light'}"


def test_runs(command: Command, tiny: list[str], tmp_path: Path) -> None:
    kept = [setting for setting in tiny if not setting.startswith(("model", "report"))]
    arguments = ["-m", *kept, "model=lstm_attention,transformer_tiny", "model.parameters=20000"]
    assert command("mt-train", *arguments).code == 0
    assert command("mt-train", "--check", *tiny).code == 0
    for page in ("report.html", "transformer_tiny/report.html", "check.html"):
        check(tmp_path / "run" / page)


@pytest.mark.parametrize("name", OF_SITE)
@pytest.mark.skipif(not SITE.is_dir(), reason="make docs has not been run")
def test_the_site(name: str) -> None:
    check(SITE / f"{name}.html")
