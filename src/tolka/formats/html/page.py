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
# No request, except those that a page adds; child-src is the worker-src of older browsers.
_POLICY = "default-src 'none'; form-action 'none'; base-uri 'none'"


def join_page(title: str, models: Sequence[Mapping[str, Any]], weights: Sequence[bytes]) -> str:
    """Return the HTML file of models and their weights.

    models: what `page/model.js` opens, for each model. weights: the bytes of all its tensors.
    """
    sized = [{**model, "bytes": len(each)} for model, each in zip(models, weights, strict=True)]
    encoded = {f"weights-{number}": base64.b64encode(each).decode() for number, each in enumerate(weights)}
    return _joined(
        title,
        {"models": sized},
        script=_page_file("page.js") + _page_file("file.js"),
        style=_page_file("page.css"),
        privacy="Works without a network. What you type stays on this device.",
        policy="worker-src blob:; child-src blob:; script-src {script} 'wasm-unsafe-eval'",
        tools="",
        data={"runtime": join_modules(MODULES), **encoded},
    )


def join_server_page(models: Sequence[Mapping[str, Any]], abilities: Mapping[str, Any]) -> str:
    """Return the page of a server.

    models: title, directions, verdict and card of each. abilities: what the server can do.
    """
    return _joined(
        "Translate",
        {"models": [*models], "abilities": {**abilities}},
        script=join_modules(["page", "server", "server_page"]),
        style=_page_file("page.css") + _page_file("server.css"),
        privacy="Works without the internet. What you type is sent to this server and to no other.",
        policy="connect-src 'self'; script-src {script}",
        tools=_page_file("server.html"),
        data={},
    )


def _joined(
    title: str,
    about: Mapping[str, Any],
    *,
    script: str,
    style: str,
    privacy: str,
    policy: str,
    tools: str,
    data: Mapping[str, str],
) -> str:
    """Return page.html with its parts. policy: beside what all pages have. data: texts for the script, by their ids."""
    assert not re.search(r"<!--|</?script", script + data.get("runtime", ""), re.IGNORECASE), "it would end an element"
    values = json.dumps({"version": __version__, **about}, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    allowed = f"{policy.format(script=_source_hash(script))}; style-src {_source_hash(style)}"
    return Template(_page_file("page.html")).substitute(
        title=html.escape(title),
        policy=f"{_POLICY}; {allowed}",
        style=style,
        script=script,
        privacy=privacy,
        tools=tools,
        version=__version__,
        about=values.replace("<", "\\u003c"),  # so that no text of a model can end the script element
        data="".join(f'<script type="text/plain" id="{name}">{text}</script>\n' for name, text in data.items()),
    )


def join_modules(names: Sequence[str]) -> str:
    """Return one script of modules of `tolka/page/`, without their imports and exports."""
    text = "".join(_page_file(f"{name}.js") for name in names)
    return '"use strict";\n' + re.sub(r"^(import [^;]*;\n|export )", "", text, flags=re.MULTILINE)


def _page_file(name: str) -> str:
    return files("tolka").joinpath("page", name).read_text(encoding="utf-8")


def _source_hash(text: str) -> str:
    """Return the source expression of a content security policy that allows an inline text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
