"""The fields of a request, wherever a client puts them: JSON, a form, or the address."""

import json
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.datastructures import FormData
from starlette.requests import Request as HttpRequest

from tolka.errors import ConfigError
from tolka.options.parsing import build
from tolka.serve.guard import RefusedError

F = TypeVar("F")
_NUMBERS = ("alternatives",)  # fields of forms that are whole numbers


async def read_fields(request: HttpRequest) -> dict[str, Any]:
    """Return the fields of a request; one that a form has several times is a list, and a file an UploadFile.

    RefusedError for a body of another kind, ConfigError for one that is damaged.
    """
    fields = _plain(request.query_params.multi_items())
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in ("application/x-www-form-urlencoded", "multipart/form-data"):
        form: FormData = await request.form(max_files=1, max_fields=10_000, max_part_size=2**30)
        return {**fields, **_plain(form.multi_items())}
    body = await request.body()
    if not body.strip():
        return fields
    if kind not in ("", "application/json"):
        raise RefusedError(415, f"a body is application/json or a form, and not {kind:.60}")
    try:
        values = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the body is not JSON ({error!s:.100})") from None
    if not isinstance(values, dict):
        raise ConfigError('the body must be an object, as in {"q": "A sentence."}')
    return {**fields, **values}


def _plain(items: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the values by their names; all of those that occur several times."""
    fields: dict[str, Any] = {}
    for key, value in items:
        if key in _NUMBERS and isinstance(value, str) and value.isdecimal():
            value = int(value[:9])
        fields[key] = (
            [*fields[key], value]
            if isinstance(fields.get(key), list)
            else ([fields[key], value] if key in fields else value)
        )
    return fields


def parse(kind: type[F], fields: dict[str, Any]) -> F:
    """Return the fields as a dataclass; ConfigError for unknown ones, other types, and for one that is missing."""
    given = {key: value for key, value in fields.items() if key != "api_key"}
    try:
        return build(kind, given, "request")
    except TypeError as error:  # of the constructor
        raise ConfigError(f"the request lacks a field: {str(error).partition(': ')[2]}") from None


@dataclass(frozen=True)
class LibreRequest:
    """POST /translate as LibreTranslate has it. source: a code, or auto."""

    q: str | list[str]
    source: str
    target: str
    format: str = "text"
    alternatives: int = 0


@dataclass(frozen=True)
class CuratorRequest:
    """POST /translate as NeMo Curator has it."""

    texts: list[str]
    src_lang: str
    tgt_lang: str


@dataclass(frozen=True)
class DetectRequest:
    """POST /detect as LibreTranslate has it."""

    q: str


@dataclass(frozen=True)
class SuggestRequest:
    """POST /suggest as LibreTranslate has it. q: a text. s: the right translation. translation: the one that it had."""

    q: str
    s: str
    source: str
    target: str
    translation: str = ""


@dataclass(frozen=True)
class SentencesRequest:
    """POST /v1/sentences: a text to be split."""

    text: str
    source: str
    target: str
    model: str = ""


@dataclass(frozen=True)
class TranslateRequest:
    """POST /v1/translate. search, glossary, banned, prefixes: as `tolka.Request` takes them.

    details: whether scores of tokens, word alignments, an estimate of the quality and flags are wanted, and not the
    texts with their scores alone. attention: whether the weights between subwords are.
    """

    texts: list[str]
    source: str
    target: str
    model: str = ""
    search: dict[str, Any] = field(default_factory=dict)
    glossary: dict[str, Any] = field(default_factory=dict)
    banned: list[str] = field(default_factory=list)
    prefixes: list[str] = field(default_factory=list)
    details: bool = True
    attention: bool = False
