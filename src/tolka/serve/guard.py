"""What stands between the network and the answers: limits, refusals, and clients that go away."""

import asyncio
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tolka.serve.metrics import Metrics
from tolka.serve.options import LimitsConfig

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_PER_CHARACTER = 16  # most bytes of a character of text in JSON or a form, with what is around it


class RefusedError(Exception):
    """A request that is not answered. status: of HTTP. retry_after: seconds after which it may be."""

    def __init__(self, status: int, message: str, retry_after: int = 0) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after

    def response(self, headers: Mapping[str, str] | None = None) -> JSONResponse:
        """Return the answer; LibreTranslate's clients read `error`."""
        headers = {"Retry-After": str(self.retry_after)} if self.retry_after else headers
        return JSONResponse({"error": str(self)}, self.status, headers)


class Capacity:
    """The characters that are being translated, and how fast they are."""

    def __init__(self, most: int) -> None:
        self._most, self.waiting = most, 0
        self._rate = 2000.0  # characters a second, until something is measured
        self._done, self._since = 0, monotonic()

    @contextmanager
    def reserved(self, characters: int) -> Iterator[None]:
        """Count characters while they are translated; RefusedError with 503 where there would be too many."""
        if self.waiting and self.waiting + characters > self._most:
            raise self.refusal("the server has too much to translate at the moment (limits.waiting)")
        if not self.waiting:
            self._done, self._since = 0, monotonic()
        self.waiting += characters
        try:
            yield
            self._done += characters
            self._rate = self._done / max(0.001, monotonic() - self._since)
        finally:
            self.waiting -= characters

    def refusal(self, reason: str) -> RefusedError:
        """Return the refusal of a request that may be answered once the others are."""
        return RefusedError(503, reason, max(1, round(self.waiting / self._rate)))


class Guard:
    """An ASGI application around another one: it refuses what is too large, too slow or from another site.

    Whoever disconnects has the work on the answer cancelled.
    """

    def __init__(self, app: ASGIApp, limits: LimitsConfig, host: str, metrics: Metrics) -> None:
        """host: that the server listens on; of one that only this machine reaches, the names that are asked for."""
        self._app, self._limits, self._metrics = app, limits, metrics
        self._names = _LOOPBACK if host in _LOOPBACK else ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        read, status, begun = asyncio.Event(), 499, monotonic()  # 499: the client has gone, as nginx has it
        most = max(self._limits.characters * _PER_CHARACTER, 2**16)
        if scope["path"] in ("/translate_file", "/v1/documents"):
            most = self._limits.file_bytes + 2**16
        size = 0

        async def receive_some() -> Message:
            nonlocal size
            if read.is_set():
                await asyncio.Event().wait()  # `watch` hears of a client that goes
            try:
                async with asyncio.timeout(self._limits.seconds):
                    message = await receive()
            except TimeoutError:
                raise RefusedError(408, f"nothing came for {self._limits.seconds} s (limits.seconds)") from None
            size += len(message.get("body", b""))
            if size > most:
                raise RefusedError(413, f"more than {most} bytes at once (limits.characters, limits.file_bytes)")
            if not message.get("more_body"):
                read.set()
            return message

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
                self._check_site({key.decode(): value.decode("latin-1") for key, value in scope["headers"]})
                await self._app(scope, receive_some, send_counted)
            except RefusedError as refused:
                response = refused.response()
                if not read.is_set():
                    response.headers["Connection"] = "close"  # what is left of the body is not read
                await response(scope, receive, send_counted)

        work, gone = asyncio.create_task(answer()), asyncio.create_task(watch())
        try:
            await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work, gone):
                task.cancel()
            with suppress(asyncio.CancelledError):
                await work
            route = scope.get("route")
            self._metrics.count(getattr(route, "path", "other"), status, monotonic() - begun)

    def _check_site(self, headers: Mapping[str, str]) -> None:
        """Raise RefusedError for what a page of another site has sent, in a browser that can reach this server."""
        host = headers.get("host", "")
        if self._names and (urlsplit(f"//{host}").hostname or "") not in self._names:
            raise RefusedError(403, f"this server is {' or '.join(self._names[:2])}, and not '{host}'")
        origin = headers.get("origin", "")
        if origin and urlsplit(origin).netloc != host:
            raise RefusedError(403, "pages of other sites may not use this server")


def check_token(token: str, headers: Mapping[str, str], fields: Mapping[str, Any]) -> None:
    """Raise RefusedError unless a request has the token: `Authorization: Bearer ...`, or the field api_key."""
    if not isinstance(fields.get("api_key"), str | None):
        raise RefusedError(400, "api_key must be a text")
    if not token:
        return
    kind, _, given = headers.get("authorization", "").partition(" ")
    given = given if kind.lower() == "bearer" else fields.get("api_key") or ""
    if not secrets.compare_digest(given.strip().encode(), token.encode()):
        raise RefusedError(403, "a token is needed: Authorization: Bearer TOKEN, or the field api_key")
