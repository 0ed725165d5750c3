"""A look at a page in Chromium, at a width, in light or dark: what overflows, and what axe-core finds."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from html import unescape
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
AXE = Path(os.environ.get("AXE", "axe.min.js"))
"""The file axe.min.js of the npm package axe-core; without it, its rules are not applied."""
_SECONDS = 60
# In a frame, as a window of Chromium's is at least 500 pixels wide.
_FRAME = """<!doctype html><body style="margin: 0"><iframe src="{page}" style="border: 0; width: {width}px;
height: 3000px"></iframe><pre id="found"></pre><script>
addEventListener("message", (event) => {{ document.getElementById("found").textContent = event.data; }});
</script>"""
_LOOK = """
addEventListener("load", async () => {
  const root = document.documentElement, found = {
    width: innerWidth, dark: matchMedia("(prefers-color-scheme: dark)").matches,
    overflow: Math.max(0, root.scrollWidth - root.clientWidth), axe: [],
  };
  if (window.axe) {
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    found.axe = violations.map(({ id, impact, help, nodes }) => `${impact}: ${id}: ${help}: ${nodes[0].html}`);
  }
  parent.postMessage(JSON.stringify(found), "*");
});
"""


def look(page: Path, width: int, dark: bool) -> dict[str, Any]:
    """Return width and dark as the page has them, overflow in pixels, and axe, a list of findings."""
    axe = f"<script>{AXE.read_text('utf-8')}</script>" if AXE.is_file() else ""
    with tempfile.TemporaryDirectory(dir=page.parent) as name:
        # Beside the page, so that what it links is found.
        copy, frame = page.with_name(f"{Path(name).name}.html"), Path(name, "frame.html")
        text = page.read_text("utf-8").replace("</body>", f"{axe}<script>{_LOOK}</script></body>")
        frame.write_text(_FRAME.format(page=f"../{copy.name}", width=width), "utf-8")
        scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
        window = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1700,3000"]
        try:
            copy.write_text(text, "utf-8")
            line = [CHROMIUM, *window, scheme, "--virtual-time-budget=30000", "--dump-dom", frame.as_uri()]
            made = subprocess.run(line, capture_output=True, timeout=_SECONDS, check=True, text=True)
        finally:
            copy.unlink()
    found = re.search(r'<pre id="found">(.*?)</pre>', made.stdout, re.DOTALL)
    assert found, made.stdout[-300:]
    result: dict[str, Any] = json.loads(unescape(found[1]))
    return result
