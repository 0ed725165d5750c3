"""The fields of a request, wherever a client puts them: JSON, a form, or the address."""

import json
from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from tolka.errors import ConfigError
from tolka.options.parsing import converted


async def read_fields(request: Request) -> dict[str, Any]:
    """Return the fields of a request; one that a form has several times is a list, and a file an UploadFile.

    HTTPException for a body of another kind, and for a damaged one.
    """
    found = _plain(request.query_params.multi_items())
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in ("application/x-www-form-urlencoded", "multipart/form-data"):
        form = await request.form(max_files=1, max_fields=10_000, max_part_size=2**30)
        return found | _plain(form.multi_items())
    body = await request.body()
    if not body.strip():
        return found
    if kind not in ("", "application/json"):
        raise HTTPException(415, f"a body is application/json or a form, and not {kind:.60}")
    try:
        values = json.loads(body, parse_float=_number)
        json.dumps(values, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise HTTPException(409, "a text of the body has half a character in it, a lone surrogate") from None
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is not JSON ({error!s:.100})") from None
    if not isinstance(values, dict):
        raise HTTPException(400, 'the body must be an object, as in {"q": "A sentence."}')
    return found | values


def _number(text: str) -> float:
    """Return a number of JSON, where 3.0 is a whole number as 3 is."""
    value = float(text)
    return int(value) if value.is_integer() else value


def _plain(items: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the values by their names, all of those that occur several times; a whole number as one."""
    listed: dict[str, list[Any]] = {}
    for key, value in items:
        listed.setdefault(key, []).append(int(value[:9]) if key == "alternatives" and str(value).isdecimal() else value)
    return {key: values if len(values) > 1 else values[0] for key, values in listed.items()}


def arguments_of(answer: Callable[..., Any], fields: dict[str, Any], is_strict: bool) -> dict[str, Any]:
    """Return the fields as the keyword arguments of a function, whose annotations say what each may be.

    HTTPException for other types, for a field that is missing, and where that is strict, for unknown ones.
    """
    wanted = signature(answer).parameters
    given = {key: value for key, value in fields.items() if key in wanted or (is_strict and key != "api_key")}
    for key, each in wanted.items():
        if key not in given and each.default is Parameter.empty:
            raise HTTPException(400, f"the request lacks the field '{key}'")
    try:
        return converted({key: each.annotation for key, each in wanted.items()}, given, "request")
    except ConfigError as error:
        raise HTTPException(400, str(error)) from None
