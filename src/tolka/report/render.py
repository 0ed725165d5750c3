"""Rendering of the HTML templates beside this file."""

import functools
from typing import TYPE_CHECKING, Any

from tolka.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **values: Any) -> str:
    """Return the page of a template; all values are escaped, and a missing one is an error."""
    return _pages().get_template(template).render(version=__version__, **values)


@functools.cache  # keeps the compiled templates: a page is written after each validation
def _pages() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    # Escaped, since pages quote texts and names of files that may come from anybody.
    loader = PackageLoader("tolka.report")
    pages = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    pages.filters["lang"] = lambda code: code.replace("_", "-")  # kor_Hang of NLLB, as HTML writes it
    return pages
