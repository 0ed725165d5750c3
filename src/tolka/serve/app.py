"""The addresses of a server: LibreTranslate's, our own, and the page."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import Future
from copy import deepcopy
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from tolka.errors import CheckpointError, TolkaError
from tolka.formats.html.page import join_server_page
from tolka.serve.documents import Documents, document_endings
from tolka.serve.guard import Guard, check_token, refused
from tolka.serve.metrics import Metrics
from tolka.serve.models import ServedModels
from tolka.serve.options import LimitsConfig
from tolka.serve.requests import arguments_of, read_fields
from tolka.serve.service import Service, split_text
from tolka.serve.suggestions import Suggestions
from tolka.system.memory import resident_memory_bytes
from tolka.system.package_data import table_beside
from tolka.system.progress import Say
from tolka.text.languages import english_name
from tolka.translation.request import Request
from tolka.version import __version__

Fields = dict[str, Any]
Answer = Callable[..., Awaitable[Any]]
_NONE: Any = ()  # of a list or an object that a request leaves out


class Application:
    """What answers requests; `models` may be replaced at any time. token: that they must have; "" = none."""

    def __init__(
        self, models: ServedModels, limits: LimitsConfig, token: str, suggestions: Suggestions | None, say: Say
    ) -> None:
        """say: receives notes."""
        self.models, self.metrics = models, Metrics()
        self._token, self._suggestions = token, suggestions
        self.documents, self.service = Documents(say), Service(limits, self.metrics)

    def guarded(self, names: Collection[str]) -> Guard:
        """Return the ASGI application. names: see `Guard`."""
        answers: dict[str, Answer] = {
            "/translate": self._translate,
            "/detect": self._detect,
            "/suggest": self._suggest,
            "/v1/translate": self._translate_in_detail,
            "/v1/sentences": self._sentences,
        }
        routes = [Route(path, partial(self._post, answer), methods=["POST"]) for path, answer in answers.items()]
        routes += [
            Route("/translate_file", self._translate_file, methods=["POST"]),
            Route("/v1/documents", self._add_document, methods=["POST"]),
            Route("/v1/documents/{key}", self._document, methods=["GET", "DELETE"]),
            Route("/v1/documents/{key}/file", self._document_file, name="file"),
            Route("/", self._page),
            Route("/languages", lambda request: JSONResponse(self.models.languages)),
            Route("/frontend/settings", self._frontend_settings),
            Route("/health", lambda request: JSONResponse({"status": "ok"})),
            Route("/metrics", self._metrics),
            Route("/openapi.json", lambda request: JSONResponse(openapi(self.models, self.service.limits))),
        ]
        handlers = dict.fromkeys((TolkaError, HTTPException, Exception), _answer_error)
        return Guard(Starlette(routes=routes, exception_handlers=handlers), self.service.limits, names, self.metrics)

    async def _post(self, answer: Answer, request: HttpRequest) -> Response:
        return JSONResponse(await self._answered(request, answer))

    async def _answered(self, request: HttpRequest, answer: Answer) -> Any:
        """Return what a function answers to the fields of a request, which are its arguments; check the token."""
        try:
            fields = await read_fields(request)
            check_token(self._token, request.headers, fields)
            if answer == self._translate and "texts" in fields:
                answer = self._translate_for_curator
            # Some clients of LibreTranslate send fields of their own.
            is_strict = request.url.path in ("/v1/translate", "/v1/sentences")
            return await answer(**arguments_of(answer, fields, is_strict))
        finally:
            await request.close()  # the file of a form

    # ---- As LibreTranslate and NeMo Curator have it ----

    async def _translate(
        self, q: str | list[str], source: str, target: str, format: str = "text", alternatives: int = 0
    ) -> Fields:
        if format not in ("text", "html") or not 0 <= alternatives < self.service.limits.hypotheses:
            most = self.service.limits.hypotheses - 1
            raise HTTPException(400, f"format is text or html, and alternatives 0 to {most} (limits.hypotheses)")
        models = self.models  # which may be replaced meanwhile
        texts, detected = q if isinstance(q, list) else [q], list[Fields]()
        if source == "auto":
            detected = await asyncio.to_thread(lambda: [models.detect(text, target)[0] for text in texts])
        sources = [each["language"] for each in detected] or [source] * len(texts)
        results: dict[int, list[str]] = {}
        for code in dict.fromkeys(sources):
            rows = [row for row, each in enumerate(sources) if each == code]
            translator, own = models.translator(code, target), [texts[row] for row in rows]
            if format == "html":
                found = [[text] for text in await self.service.translate_html(translator, own)]
            else:
                found = await self.service.translate_lines(translator, own, alternatives)
            results |= zip(rows, found, strict=True)
        in_order = [results[row] for row in range(len(texts))]
        answer: Fields = {"translatedText": [each[0] for each in in_order]}
        if alternatives:
            answer["alternatives"] = [each[1:] for each in in_order]
        if detected:
            answer["detectedLanguage"] = detected
        return answer if isinstance(q, list) else {key: value[0] for key, value in answer.items()}

    async def _translate_for_curator(self, texts: list[str], src_lang: str, tgt_lang: str) -> Fields:
        found = await self.service.translate_lines(self.models.translator(src_lang, tgt_lang), texts)
        return {"translations": [each[0] for each in found]}

    async def _detect(self, q: str) -> list[Fields]:
        return await asyncio.to_thread(self.models.detect, q)

    async def _suggest(self, q: str, s: str, source: str, target: str, translation: str = "") -> Fields:
        if self._suggestions is None:
            raise HTTPException(403, "this server keeps no corrections: mt-serve --suggestions FILE does")
        if not q.strip() or not s.strip() or len(q + s) > self.service.limits.characters:
            raise HTTPException(409, "q and s are a text and its translation, and neither is blank nor too long")
        self._suggestions.add(self.models.translator(source, target).direction, q, s, translation)
        return {"success": True}

    async def _translate_file(self, request: HttpRequest) -> Response:
        key, future = await self._answered(request, self._submitted)
        try:
            await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            self.documents.remove(key)
            raise
        if error := self.documents.find(key).error:
            raise HTTPException(400, error)
        return JSONResponse({"translatedFileUrl": str(request.url_for("file", key=key))})

    def _frontend_settings(self, request: HttpRequest) -> Response:
        first = self.models.languages[0]
        sides = {"source": first["code"], "target": first["targets"][0]}
        values = {
            "apiKeys": bool(self._token),
            "keyRequired": bool(self._token),
            "charLimit": self.service.limits.characters,
            "frontendTimeout": 500,
            "language": {side: {"code": code, "name": english_name(code)} for side, code in sides.items()},
            "suggestions": self._suggestions is not None,
            "filesTranslation": True,
            "supportedFilesFormat": document_endings(),
        }
        return JSONResponse(values)

    # ---- Our own ----

    async def _translate_in_detail(
        self,
        texts: list[str],
        source: str,
        target: str,
        model: str = "",
        search: dict[str, Any] = _NONE,
        glossary: dict[str, str | list[str]] = _NONE,
        banned: list[str] = _NONE,
        prefixes: list[str] = _NONE,
        details: bool = True,
        attention: bool = False,
    ) -> Fields:
        """Answer POST /v1/translate. search, glossary, banned, prefixes: as `tolka.Request` takes them.

        details: whether scores of tokens, word alignments, an estimate of the quality and flags are wanted, and not the
        texts with their scores alone. attention: whether the weights between subwords are.
        """
        translator = self.models.translator(source, target, model)
        request = Request(search or None, None, glossary or None, banned or None, prefixes)
        if prefixes and len(prefixes) != len(texts):
            raise HTTPException(409, f"request.prefixes are {len(prefixes)} for {len(texts)} texts")
        values = await self.service.translate_in_detail(translator, texts, request, details, attention)
        return {"translations": values, "source": translator.direction.source, "target": translator.direction.target}

    async def _sentences(self, text: str, source: str, target: str, model: str = "") -> Fields:
        translator = self.models.translator(source, target, model)
        async with self.service.admitted([text], translator.request.search):
            return await asyncio.to_thread(split_text, translator, text)

    async def _submitted(
        self, file: UploadFile | str = "", source: str = "", target: str = "", model: str = ""
    ) -> tuple[str, "Future[None]"]:
        if not isinstance(file, UploadFile):
            raise HTTPException(400, "the form has no file: send it as multipart/form-data, in the field `file`")
        return self.documents.submit(file.filename or "", file.file, self.models.translator(source, target, model))

    async def _add_document(self, request: HttpRequest) -> Response:
        key, _ = await self._answered(request, self._submitted)
        return JSONResponse({"id": key})

    async def _document(self, request: HttpRequest) -> Response:
        key = request.path_params["key"]
        document = self.documents.find(key)
        if request.method == "DELETE":
            self.documents.remove(key)
            return Response(status_code=204)
        return JSONResponse(document.values())

    async def _document_file(self, request: HttpRequest) -> Response:
        document = self.documents.find(request.path_params["key"])
        if document.report is None:
            raise HTTPException(409, "the document is not translated yet")
        return FileResponse(document.output, filename=document.path.name)

    # ---- About the server ----

    def _page(self, request: HttpRequest) -> Response:
        models = [
            {
                "title": each.name,
                "directions": [way._asdict() for way in each.directions],
                "languages": [*each.languages] or None,
                "verdict": (each.translator.verdict or {"sentences": [""]})["sentences"][0],
                "card": each.card,
            }
            for each in self.models.models
        ]
        abilities = {
            "token": bool(self._token),
            "suggestions": self._suggestions is not None,
            "endings": document_endings(),
            "characters": self.service.limits.characters,
            "file_bytes": self.service.limits.file_bytes,
        }
        headers = {"Content-Security-Policy": "frame-ancestors 'none'", "Referrer-Policy": "no-referrer"}
        return HTMLResponse(join_server_page(models, abilities), headers=headers)

    async def _metrics(self, request: HttpRequest) -> Response:
        check_token(self._token, request.headers, {**request.query_params})
        gauges = {
            "tolka_waiting_characters": self.service.waiting,
            "tolka_models": len(self.models.models),
            "process_resident_memory_bytes": resident_memory_bytes(),
        }
        return PlainTextResponse(self.metrics.exposition(gauges), media_type="text/plain; version=0.0.4")


async def _answer_error(request: HttpRequest, error: Exception) -> Response:
    """Return the answer to a request that failed."""
    if isinstance(error, TolkaError):  # what the model cannot do
        error = HTTPException(500 if isinstance(error, CheckpointError) else 409, str(error))
    if not isinstance(error, HTTPException):
        error = HTTPException(500, "the server has failed here: its log says why")
    return refused(error)


def openapi(models: ServedModels, limits: LimitsConfig) -> dict[str, Any]:
    """Return the description of the addresses (OpenAPI 3.1), with what these models and limits allow."""
    described: dict[str, Any] = deepcopy(table_beside(__file__))
    described["info"]["version"] = __version__
    languages, schemas = models.languages, described["components"]["schemas"]
    schemas["Source"]["enum"] = [each["code"] for each in languages if each["targets"]]
    schemas["Target"]["enum"] = sorted({code for each in languages for code in each["targets"]})
    schemas["Model"]["enum"] = ["", *(each.name for each in models.models)]
    schemas["LibreRequest"]["properties"]["alternatives"]["maximum"] = limits.hypotheses - 1
    for setting in schemas["TranslateRequest"]["properties"]["search"]["properties"].values():
        setting["maximum"] = limits.hypotheses
    return described
