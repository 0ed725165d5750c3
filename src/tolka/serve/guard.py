"""What stands between the network and the answers: limits, refusals, and clients that go away."""

import asyncio
import re
import secrets
from collections.abc import Collection, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tolka.serve.metrics import Metrics
from tolka.serve.options import LimitsConfig

_MOST_READ = 2**28  # bytes of all requests that are being answered
_PER_CHARACTER = 16  # most bytes of a character of text in JSON or a form, with what is around it


def refused(error: HTTPException) -> JSONResponse:
    """Return the answer to a request that is refused; LibreTranslate's clients read `error`."""
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


class Guard:
    """An ASGI application around another one: it refuses what is too large, too slow or from another site.

    Whoever disconnects has the work on the answer cancelled.
    """

    def __init__(self, app: ASGIApp, limits: LimitsConfig, names: Collection[str], metrics: Metrics) -> None:
        """names: of the server, by which it may be asked; none = any."""
        self._app, self._limits, self._names, self._metrics = app, limits, names, metrics
        self._reading = 0  # bytes of all requests that are being answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        read, status, size, begun = asyncio.Event(), 499, 0, monotonic()  # 499: the client has gone, as nginx has it
        most = max(self._limits.characters * _PER_CHARACTER, 2**16)
        if scope["path"] in ("/translate_file", "/v1/documents"):
            most = self._limits.file_bytes + 2**16

        async def receive_some() -> Message:
            nonlocal size
            if read.is_set():
                await asyncio.Event().wait()  # `watch` hears of a client that goes
            try:
                async with asyncio.timeout(self._limits.seconds):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, f"nothing came for {self._limits.seconds} s (limits.seconds)") from None
            size += len(message.get("body", b""))
            self._reading += len(message.get("body", b""))
            if self._reading > _MOST_READ:
                raise HTTPException(503, "the server reads too much at the moment", {"Retry-After": "1"})
            if size > most:
                raise HTTPException(413, f"more than {most} bytes at once (limits.characters, limits.file_bytes)")
            if not message.get("more_body"):
                read.set()
            return message if message["type"] != "http.disconnect" else await receive_some()

        async def send_counted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        async def watch() -> None:
            await read.wait()
            while (await receive())["type"] != "http.disconnect":
                pass

        async def answer() -> None:
            try:
                self._check_site(Headers(scope=scope))
                await self._app(scope, receive_some, send_counted)
            except HTTPException as error:
                response = refused(error)
                if not read.is_set():
                    response.headers["Connection"] = "close"  # what is left of the body is not read
                await response(scope, receive, send_counted)

        work, gone = asyncio.create_task(answer()), asyncio.create_task(watch())
        try:
            await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            work.cancel()
            gone.cancel()
            self._reading -= size
            self._metrics.count(getattr(scope.get("route"), "path", "other"), status, monotonic() - begun)
        with suppress(asyncio.CancelledError):
            await work

    def _check_site(self, headers: Headers) -> None:
        """Raise HTTPException for what a page of another site has sent, in a browser that can reach this server."""
        host, origin = headers.get("host", ""), headers.get("origin", "")
        if self._names and re.sub(r":\d*$", "", host.lower()).strip("[]") not in self._names:
            raise HTTPException(403, f"this server is not '{host:.60}': mt-serve --name gives it another name")
        if origin and origin.partition("://")[2] != host:
            raise HTTPException(403, "pages of other sites may not use this server")


def check_token(token: str, headers: Mapping[str, str], fields: Mapping[str, Any]) -> None:
    """Raise HTTPException unless a request has the token: `Authorization: Bearer ...`, or the field api_key."""
    if not isinstance(fields.get("api_key"), str | None):
        raise HTTPException(400, "api_key must be a text")
    if not token:
        return
    kind, _, given = headers.get("authorization", "").partition(" ")
    given = given if kind.lower() == "bearer" else fields.get("api_key") or ""
    if not secrets.compare_digest(given.strip().encode(), token.encode()):
        raise HTTPException(403, "a token is needed: Authorization: Bearer TOKEN, or the field api_key")
