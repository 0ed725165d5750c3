"""Joining of the page, the runtime and models into one HTML file that requests nothing."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any

from tolka.version import __version__

# The runtime, each module behind those that it imports.
MODULES = ["characters", "tokenizer", "sentences", "matrix", "recurrent", "transformer", "search", "model", "worker"]
# No request of any kind; child-src is the worker-src of older browsers.
_POLICY = "default-src 'none'; worker-src blob:; child-src blob:; form-action 'none'; base-uri 'none'"


def join_page(title: str, models: Sequence[Mapping[str, Any]], weights: Sequence[bytes]) -> str:
    """Return the HTML file of models and their weights.

    models: what `page/model.js` opens, for each model. weights: the bytes of all its tensors.
    """
    script, style, runtime = _page_file("page.js"), _page_file("page.css"), join_modules(MODULES)
    assert not re.search(r"<!--|</?script", script + runtime, re.IGNORECASE), "it would end a script element"
    sized = [{**model, "bytes": len(each)} for model, each in zip(models, weights, strict=True)]
    about = json.dumps(
        {"version": __version__, "models": sized}, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    tag = '<script type="text/plain" id="weights-{}">{}</script>'
    return Template(_page_file("page.html")).substitute(
        title=html.escape(title),
        policy=f"{_POLICY}; script-src {_source_hash(script)} 'wasm-unsafe-eval'; style-src {_source_hash(style)}",
        style=style,
        script=script,
        version=__version__,
        about=about.replace("<", "\\u003c"),  # so that no text of a model can end the script element
        runtime=runtime,
        weights="\n".join(tag.format(i, base64.b64encode(each).decode()) for i, each in enumerate(weights)),
    )


def join_server_page(models: Sequence[Mapping[str, Any]], abilities: Mapping[str, Any]) -> str:
    """Return the page of a server. models: title, directions, verdict and card of each. abilities: what it can do."""
    return ""


def join_modules(names: Sequence[str]) -> str:
    """Return one script of modules of `tolka/page/`, without their imports and exports."""
    text = "".join(_page_file(f"{name}.js") for name in names)
    return '"use strict";\n' + re.sub(r"^(import [^;]*;\n|export )", "", text, flags=re.MULTILINE)


def _page_file(name: str) -> str:
    return files("tolka").joinpath("page", name).read_text(encoding="utf-8")


def _source_hash(text: str) -> str:
    """Return the source expression of a content security policy that allows an inline text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
