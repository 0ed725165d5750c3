"""The addresses of a server: LibreTranslate's, our own, and the page."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import Future
from copy import deepcopy
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
from tolka.serve.guard import Guard, RefusedError, check_token
from tolka.serve.metrics import Metrics
from tolka.serve.models import ServedModels, language_name, shown_code
from tolka.serve.options import LimitsConfig
from tolka.serve.requests import (
    CuratorRequest,
    DetectRequest,
    LibreRequest,
    SentencesRequest,
    SuggestRequest,
    TranslateRequest,
    parse,
    read_fields,
)
from tolka.serve.service import Service, split_text
from tolka.serve.suggestions import Suggestions
from tolka.system.memory import resident_memory_bytes
from tolka.system.package_data import table_beside
from tolka.system.progress import Say
from tolka.translation.request import Request
from tolka.version import __version__

Fields = dict[str, Any]
_AUTO = "auto"


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
        posts = {
            "/translate": self._translate,
            "/detect": self._detect,
            "/suggest": self._suggest,
            "/translate_file": self._translate_file,
            "/v1/translate": self._translate_in_detail,
            "/v1/sentences": self._sentences,
            "/v1/documents": self._add_document,
        }
        gets = {
            "/": self._page,
            "/languages": self._languages,
            "/frontend/settings": self._frontend_settings,
            "/health": self._health,
            "/metrics": self._metrics,
            "/openapi.json": self._openapi,
        }
        routes = [Route(path, self._with_fields(answer), methods=["POST"]) for path, answer in posts.items()]
        routes += [Route(path, answer, methods=["GET"]) for path, answer in gets.items()]
        routes.append(Route("/v1/documents/{key}/file", self._document_file, methods=["GET"], name="file"))
        routes.append(Route("/v1/documents/{key}", self._document, methods=["GET", "DELETE"]))
        handlers = dict.fromkeys((TolkaError, RefusedError, HTTPException, Exception), _answer_error)
        app = Starlette(routes=routes, exception_handlers=handlers)
        return Guard(app, self.service.limits, names, self.metrics)

    def _with_fields(
        self, answer: Callable[[HttpRequest, Fields], Awaitable[Any]]
    ) -> Callable[[HttpRequest], Awaitable[Response]]:
        """Return an endpoint that reads the fields of a request and checks its token."""

        async def endpoint(request: HttpRequest) -> Response:
            try:
                fields = await read_fields(request)
                check_token(self._token, request.headers, fields)
                return JSONResponse(await answer(request, fields))
            finally:
                await request.close()  # the file of a form

        return endpoint

    # ---- As LibreTranslate and NeMo Curator have it ----

    async def _translate(self, request: HttpRequest, fields: Fields) -> Fields:
        if "texts" in fields:
            asked = parse(CuratorRequest, fields)
            translator = self.models.translator(asked.src_lang, asked.tgt_lang)
            found = await self.service.translate_lines(translator, asked.texts)
            return {"translations": [texts[0] for texts in found]}
        libre = parse(LibreRequest, fields)
        if libre.format not in ("text", "html") or not 0 <= libre.alternatives < self.service.limits.hypotheses:
            most = self.service.limits.hypotheses - 1
            raise RefusedError(400, f"format is text or html, and alternatives 0 to {most} (limits.hypotheses)")
        texts = libre.q if isinstance(libre.q, list) else [libre.q]
        detected = await self._detected(texts, libre) if libre.source == _AUTO else []
        sources = [each["language"] for each in detected] or [libre.source] * len(texts)
        results: list[list[str]] = [[] for _ in texts]
        for source in dict.fromkeys(sources):
            rows = [row for row, each in enumerate(sources) if each == source]
            translator, own = self.models.translator(source, libre.target), [texts[row] for row in rows]
            if libre.format == "html":
                found = [[text] for text in await self.service.translate_html(translator, own)]
            else:
                found = await self.service.translate_lines(translator, own, libre.alternatives)
            for row, each in zip(rows, found, strict=True):
                results[row] = each
        answer: Fields = {"translatedText": [each[0] for each in results]}
        if libre.alternatives:
            answer["alternatives"] = [each[1:] for each in results]
        if detected:
            answer["detectedLanguage"] = detected
        return answer if isinstance(libre.q, list) else {key: value[0] for key, value in answer.items()}

    async def _detected(self, texts: list[str], libre: LibreRequest) -> list[Fields]:
        found = await asyncio.to_thread(lambda: [self.models.detect(text, libre.target)[0] for text in texts])
        return [{"language": code, "confidence": round(100 * share, 1)} for code, share in found]

    async def _detect(self, request: HttpRequest, fields: Fields) -> list[Fields]:
        found = await asyncio.to_thread(self.models.detect, parse(DetectRequest, fields).q)
        return [{"language": code, "confidence": round(100 * share, 1)} for code, share in found]

    async def _suggest(self, request: HttpRequest, fields: Fields) -> Fields:
        asked = parse(SuggestRequest, fields)
        if self._suggestions is None:
            raise RefusedError(403, "this server keeps no corrections: mt-serve --suggestions FILE does")
        if not asked.q.strip() or not asked.s.strip() or len(asked.q + asked.s) > self.service.limits.characters:
            raise RefusedError(409, "q and s are a text and its translation, and neither is blank nor too long")
        direction = self.models.translator(asked.source, asked.target).direction
        self._suggestions.add(direction, asked.q, asked.s, asked.translation)
        return {"success": True}

    async def _translate_file(self, request: HttpRequest, fields: Fields) -> Fields:
        key, future = self._submitted(fields)
        try:
            await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            self.documents.remove(key)
            raise
        if error := self.documents.find(key).error:
            raise RefusedError(400, error)
        return {"translatedFileUrl": str(request.url_for("file", key=key))}

    async def _languages(self, request: HttpRequest) -> Response:
        return JSONResponse(self.models.languages())

    async def _frontend_settings(self, request: HttpRequest) -> Response:
        source, target = map(shown_code, self.models.models[0].directions[0])
        sides = {"source": source, "target": target}
        return JSONResponse(
            {
                "apiKeys": bool(self._token),
                "keyRequired": bool(self._token),
                "charLimit": self.service.limits.characters,
                "frontendTimeout": 500,
                "language": {side: {"code": code, "name": language_name(code)} for side, code in sides.items()},
                "suggestions": self._suggestions is not None,
                "filesTranslation": True,
                "supportedFilesFormat": document_endings(),
            }
        )

    # ---- Our own ----

    async def _translate_in_detail(self, request: HttpRequest, fields: Fields) -> Fields:
        asked = parse(TranslateRequest, fields)
        translator = self.models.translator(asked.source, asked.target, asked.model)
        wishes = Request(asked.search or None, None, asked.glossary or None, asked.banned or None, asked.prefixes)
        if asked.prefixes and len(asked.prefixes) != len(asked.texts):
            raise RefusedError(409, f"request.prefixes are {len(asked.prefixes)} for {len(asked.texts)} texts")
        values = await self.service.translate_in_detail(translator, asked.texts, wishes, asked.details, asked.attention)
        return {"translations": values, "source": translator.direction.source, "target": translator.direction.target}

    async def _sentences(self, request: HttpRequest, fields: Fields) -> Fields:
        asked = parse(SentencesRequest, fields)
        translator = self.models.translator(asked.source, asked.target, asked.model)
        async with self.service.admitted([asked.text], translator.request.search):
            return await asyncio.to_thread(split_text, translator, asked.text)

    async def _add_document(self, request: HttpRequest, fields: Fields) -> Fields:
        return {"id": self._submitted(fields)[0]}

    def _submitted(self, fields: Fields) -> tuple[str, "Future[None]"]:
        file = fields.get("file")
        if not isinstance(file, UploadFile):
            raise RefusedError(400, "the form has no file: send it as multipart/form-data, in the field `file`")
        source, target = str(fields.get("source", "")), str(fields.get("target", ""))
        translator = self.models.translator(source, target, str(fields.get("model", "")))
        return self.documents.submit(file.filename or "", file.file, translator)

    async def _document(self, request: HttpRequest) -> Response:
        document = self.documents.find(request.path_params["key"])
        if request.method == "DELETE":
            self.documents.remove(request.path_params["key"])
            return Response(status_code=204)
        return JSONResponse(document.values())

    async def _document_file(self, request: HttpRequest) -> Response:
        kept = self.documents.find(request.path_params["key"])
        if kept.report is None:
            raise RefusedError(409, "the document is not translated yet")
        return FileResponse(kept.output, filename=kept.path.name)

    # ---- About the server ----

    async def _page(self, request: HttpRequest) -> Response:
        models = [
            {
                "title": each.name,
                "directions": [way._asdict() for way in each.page_directions],
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

    async def _health(self, request: HttpRequest) -> Response:
        return JSONResponse({"status": "ok"})

    async def _metrics(self, request: HttpRequest) -> Response:
        check_token(self._token, request.headers, {**request.query_params})
        gauges = {
            "tolka_waiting_characters": self.service.capacity.waiting,
            "tolka_models": len(self.models.models),
            "process_resident_memory_bytes": resident_memory_bytes(),
        }
        return PlainTextResponse(self.metrics.exposition(gauges), media_type="text/plain; version=0.0.4")

    async def _openapi(self, request: HttpRequest) -> Response:
        return JSONResponse(openapi(self.models, self.service.limits))


async def _answer_error(request: HttpRequest, error: Exception) -> Response:
    """Return the answer to a request that failed."""
    if isinstance(error, HTTPException):  # no such address or method, a damaged form
        refused = RefusedError(error.status_code, error.detail)
        return refused.response(error.headers)
    if isinstance(error, RefusedError):
        return error.response()
    if isinstance(error, TolkaError):  # what the model cannot do
        return RefusedError(500 if isinstance(error, CheckpointError) else 409, str(error)).response()
    return RefusedError(500, "the server has failed here: its log says why").response()


def openapi(models: ServedModels, limits: LimitsConfig) -> dict[str, Any]:
    """Return the description of the addresses (OpenAPI 3.1), with what these models and limits allow."""
    described: dict[str, Any] = deepcopy(table_beside(__file__))
    described["info"]["version"] = __version__
    languages, schemas = models.languages(), described["components"]["schemas"]
    schemas["Source"]["enum"] = [each["code"] for each in languages if each["targets"]]
    schemas["Target"]["enum"] = sorted({code for each in languages for code in each["targets"]})
    schemas["Model"]["enum"] = ["", *(each.name for each in models.models)]
    schemas["LibreRequest"]["properties"]["alternatives"]["maximum"] = limits.hypotheses - 1
    for setting in schemas["TranslateRequest"]["properties"]["search"]["properties"].values():
        setting["maximum"] = limits.hypotheses
    return described
