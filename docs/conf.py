"""Configuration of Sphinx for the documentation site: `make docs` writes docs/_build/html."""

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator as HTMLTranslator

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE)]

project = "tolka"
author = "The tolka authors"
# myst_nb: MyST pages, and notebooks, which it executes.
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_copybutton", "executed"]
copybutton_selector = ":not(.output) > .highlight pre"
highlight_language = "sh"  # of blocks that name no language
root_doc = "index"
exclude_patterns = ["_build", "README.md", "figures"]
default_role = "code"  # a single backtick in a docstring is code
smartquotes = False  # they would turn -- of an option into a dash
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
html_math_renderer = "mathml"  # which browsers lay out by themselves: nothing is fetched
nb_execution_mode = "cache"  # executed when its cells have changed, and in a fresh clone
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True
suppress_warnings = ["myst.xref_missing"]  # links into the source tree; tests/docs checks every link
html_theme = "furo"  # its styles and scripts are copied into the pages: nothing is fetched from elsewhere
html_title = "tolka"
html_static_path = ["_static"]
html_css_files = ["wrapped.css"]
html_show_sphinx = False
html_copy_source = False

_GROUP = re.compile(r"^  - (\w+): (\w+)$", re.MULTILINE)
_SETTING = re.compile(r"^# (.*)\n(\w+): (.*)$", re.MULTILINE)


def settings_page() -> str:
    """Return the page of all settings, from the YAML files, which are written from the dataclasses."""
    configs = HERE.parent / "configs"
    lines = ["# Settings", "", "Written from `configs/`, as `--help` of the three commands is.", ""]
    for command, name in (("mt-train", "train"), ("mt-translate", "translate"), ("mt-eval", "evaluate")):
        lines += [f"## {command}", ""]
        for group, default in _GROUP.findall((configs / f"{name}.yaml").read_text(encoding="utf-8")):
            files = sorted((configs / group).glob("*.yaml"), key=lambda path: (path.stem != default, path.stem))
            choices = ", ".join(f"`{path.stem}`" for path in files)
            lines += [f"### {group}", ""]
            if len(files) > 1:
                lines += [
                    f"`{group}=` one of {choices}" + (f"; default `{default}`." if default != "null" else "."),
                    "",
                ]
            if default == "null":
                continue
            shown: set[str] = set()
            lines += ["| setting | default | |", "|---|---|---|"]
            for path in files:
                for text, key, value in _SETTING.findall(path.read_text(encoding="utf-8")):
                    if key not in shown and (key != "name" or group == "run"):
                        shown.add(key)
                        of = "" if path.stem == default else f" (`{group}={path.stem}`)"
                        cells = (f"`{group}.{key}`{of}", f"`{value}`", re.sub(r"[<>]", r"\\\g<0>", text))
                        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
            lines.append("")
    return "\n".join(lines)


def visit_math(writer: HTMLTranslator, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML."""
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    writer.body.append(convert(node.astext(), display=display))
    raise nodes.SkipNode


def make_accessible(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Say the level of a table of contents' heading, and let the keyboard reach what scrolls, which Sphinx does not."""
    for part in ("body", "furo_navigation_tree"):
        text = context.get(part, "").replace('role="heading"', 'role="heading" aria-level="2"')
        text = re.sub('<div class="(table|math)-wrapper', r'<div tabindex="0" class="\1-wrapper', text)
        context[part] = re.sub('("output [^>]*><div class="highlight"><pre)', r'\1 tabindex="0"', text)


def setup(app: Sphinx) -> None:
    """Write the generated page before the sources are read."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
    app.connect("html-page-context", make_accessible, priority=900)  # after the theme's
    (HERE / "reference" / "settings.md").write_text(settings_page(), encoding="utf-8")
