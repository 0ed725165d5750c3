"""The fields of a request, wherever a client puts them: JSON, a form, or the address."""

import json
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from starlette.datastructures import FormData
from starlette.requests import Request as HttpRequest

from tolka.errors import ConfigError
from tolka.options.parsing import build
from tolka.serve.guard import RefusedError

F = TypeVar("F")
_NUMBERS = ("alternatives",)  # fields of forms that are whole numbers
_STRICT = ("SentencesRequest", "TranslateRequest")


async def read_fields(request: HttpRequest) -> dict[str, Any]:
    """Return the fields of a request; one that a form has several times is a list, and a file an UploadFile.

    RefusedError for a body of another kind, and for a damaged one.
    """
    found = _plain(request.query_params.multi_items())
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in ("application/x-www-form-urlencoded", "multipart/form-data"):
        form: FormData = await request.form(max_files=1, max_fields=10_000, max_part_size=2**30)
        return {**found, **_plain(form.multi_items())}
    body = await request.body()
    if not body.strip():
        return found
    if kind not in ("", "application/json"):
        raise RefusedError(415, f"a body is application/json or a form, and not {kind:.60}")
    try:
        values = json.loads(body, parse_float=_number)
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, f"the body is not JSON ({error!s:.100})") from None
    if not isinstance(values, dict):
        raise RefusedError(400, 'the body must be an object, as in {"q": "A sentence."}')
    return {**found, **values}


def _number(text: str) -> float:
    """Return a number of JSON, where 3.0 is a whole number as 3 is."""
    value = float(text)
    return int(value) if value.is_integer() else value


def _plain(items: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the values by their names; all of those that occur several times."""
    listed: dict[str, list[Any]] = {}
    for key, value in items:
        is_number = key in _NUMBERS and isinstance(value, str) and value.isdecimal()
        listed.setdefault(key, []).append(int(value[:9]) if is_number else value)
    return {key: values if len(values) > 1 else values[0] for key, values in listed.items()}


def parse(kind: type[F], values: dict[str, Any]) -> F:
    """Return the fields as a dataclass; RefusedError for other types, for one that is missing, and unknown ones.

    LibreTranslate's addresses ignore unknown fields, as some of its clients send some.
    """
    names = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    ignored = ("api_key",) if kind.__name__ in _STRICT else values.keys() - names
    given = {key: value for key, value in values.items() if key not in ignored}
    if missing := [key for key, each in names.items() if key not in given and each.default is each.default_factory]:
        raise RefusedError(400, f"the request lacks the field '{missing[0]}'")
    try:
        return build(kind, given, "request")
    except ConfigError as error:
        raise RefusedError(400, str(error)) from None


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
    glossary: dict[str, str | list[str]] = field(default_factory=dict)
    banned: list[str] = field(default_factory=list)
    prefixes: list[str] = field(default_factory=list)
    details: bool = True
    attention: bool = False
