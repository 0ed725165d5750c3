"""Rendering of the HTML templates beside this file."""

from typing import Any

from tolka.version import __version__


def render(template: str, **values: Any) -> str:
    """Return the page of a template; all values are escaped, and a missing one is an error."""
    # Escaped, since pages quote texts and names of files that may come from anybody.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("tolka.report")
    pages = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return pages.get_template(template).render(version=__version__, **values)
