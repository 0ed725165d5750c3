"""The page's kernels: matrix.js has what kernels.wat says."""

import base64
import re
from importlib.resources import files

from wat import assemble


def test_the_page_has_the_assembled_kernels() -> None:
    page = files("tolka").joinpath("page")
    kept = re.search(r'KERNELS =\s+"([^"]+)"', page.joinpath("matrix.js").read_text(encoding="utf-8"))
    assert kept
    assembled = assemble(page.joinpath("kernels.wat").read_text(encoding="utf-8"))
    assert kept[1] == base64.b64encode(assembled).decode(), "put this into matrix.js"
