"""A Sphinx extension: executes the commands of the tutorial, and shows what they print, with pictures and pages.

The page stays plain Markdown, with its commands in blocks of shell. `<!-- picture: FILE -->` and `<!-- page: FILE -->`
show what they have written. They are executed once for each change of a command, in docs/_build/executed.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

PAGES = ("tutorial/first_translator",)
ROOT = Path(__file__).parents[1]
COMMAND = re.compile(r"(^|\| *)mt-(train|translate|eval) ", re.MULTILINE)
WRITTEN = re.compile(r"<!-- (picture|page): (\S+) -->")
LAST = 34  # lines of an output that are shown at once; those before them are opened by a click


def execute(command: str, folder: Path) -> str:
    """Return what a shell prints for a command in a folder; ExtensionError if it fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", command],
        cwd=folder,
        env={key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"} | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    if ended.returncode:
        raise ExtensionError(f"the tutorial's command failed: {command}\n{ended.stdout}")
    return ended.stdout


def outputs_of(commands: list[str], folder: Path) -> list[str]:
    """Return what each command prints; of a build before, if all of them are as they were then."""
    digest = hashlib.sha256("\0".join(commands).encode()).hexdigest()[:16]
    record = folder / f"{digest}.json"
    if not record.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "data").symlink_to(ROOT / "data")
        record.write_text(json.dumps([execute(command, folder) for command in commands]), encoding="utf-8")
    found: list[str] = json.loads(record.read_text(encoding="utf-8"))
    return found


def shown(output: str) -> list[nodes.Node]:
    """Return an output as a block, the beginning of a long one folded."""
    lines = output.splitlines(keepends=True)
    first, last = ("".join(each) for each in (lines[:-LAST], lines[-LAST:]))
    found: list[nodes.Node] = [nodes.literal_block(last, last, language="text", classes=["output"])]
    if first:
        head = f"<details class='output'><summary>{len(lines) - LAST} lines before</summary>"
        block = nodes.literal_block(first, first, language="text", classes=["output"])
        found[:0] = [nodes.raw("", head, format="html"), block, nodes.raw("", "</details>", format="html")]
    return found


def show_outputs(app: Sphinx, doctree: nodes.document) -> None:
    """Put what they print after the commands of a page, and what they have written where the page names it."""
    page = app.env.docname
    if page not in PAGES:
        return
    folder = Path(app.srcdir) / "_build" / "executed" / page
    blocks = [node for node in doctree.findall(nodes.literal_block) if COMMAND.search(node.astext())]
    outputs = outputs_of([block.astext() for block in blocks], folder)
    for block, output in zip(blocks, outputs, strict=True):
        block.parent[block.parent.index(block) + 1 : block.parent.index(block) + 1] = shown(output)
    for comment in [*doctree.findall(nodes.raw)]:
        if not (named := WRITTEN.search(comment.astext())):
            continue
        kind, file = named.groups()
        if kind == "picture":
            uri = f"/_build/executed/{page}/{file}"
            comment.replace_self(nodes.image(uri=uri, alt=f"the picture {file}"))
        else:
            copied = Path(app.outdir) / Path(page).parent / Path(file).name
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / file, copied)
            link = nodes.reference("", f"the page {file} that it wrote", refuri=copied.name)
            comment.replace_self(nodes.paragraph("", "", link))


def setup(app: Sphinx) -> None:
    """Run before pictures are collected."""
    app.connect("doctree-read", show_outputs, priority=400)
