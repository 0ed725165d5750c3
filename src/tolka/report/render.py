"""Pages from the templates beside this file: what they are given stays text."""

from typing import Any

from tolka.version import __version__


def render(template: str, **values: Any) -> str:
    """The page that a template makes of the values; all of them are escaped, and one that is missing is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("tolka.report")
    pages = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return pages.get_template(template).render(version=__version__, **values)
