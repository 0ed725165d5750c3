"""What a server does with texts: translate them, together with those of other requests, within its limits."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

from starlette.exceptions import HTTPException

from tolka.documents.html import Html
from tolka.errors import ConfigError
from tolka.jobs.formats import JsonLines, LineResult, rounded_score
from tolka.search.options import BeamConfig, SearchConfig
from tolka.serve.documents import translate_document
from tolka.serve.metrics import Metrics
from tolka.serve.options import LimitsConfig
from tolka.system.memory import return_freed_memory
from tolka.translation.request import Request
from tolka.translation.results import Translation
from tolka.translation.splitting import sentences, separator_between
from tolka.translation.translator import Translator

_LINE_END = re.compile(r"\r\n?|\n")
_LONGEST = BeamConfig().limit(100)  # subwords of a translation of 100, unless the server's own search allows more
_REST_SECONDS = 10.0  # without a request, after which freed memory goes back to the system
_AT_ONCE = 256  # texts: a request of more does not keep others waiting


class Service:
    """Translates texts for requests. waiting: the characters that are being translated."""

    def __init__(self, limits: LimitsConfig, metrics: Metrics) -> None:
        self.limits, self._metrics, self.waiting = limits, metrics, 0
        self._rate = 2000.0  # characters a second, until something is measured
        self._done, self._since = 0, monotonic()  # characters since there was nothing to do
        self._rest: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def admitted(self, texts: Sequence[str], search: SearchConfig) -> AsyncIterator[None]:
        """Keep within the limits what is done with texts.

        HTTPException for too much; with 503, and a time, for too much of all requests and after limits.seconds.
        """
        characters = sum(len(text) + 1 for text in texts)
        if characters > self.limits.characters:
            most = self.limits.characters
            raise HTTPException(413, f"{characters} characters at once, of at most {most} (limits.characters)")
        # A translation of any length, from a request, would keep the others waiting.
        hypotheses, length = max(search.width, search.returned), search.limit(100)
        if hypotheses > self.limits.hypotheses or length > _LONGEST:
            raise HTTPException(
                400,
                f"{hypotheses} hypotheses, and translations of up to {length} subwords for 100: at most "
                f"{self.limits.hypotheses} (limits.hypotheses) and {_LONGEST}",
            )
        if self.waiting and self.waiting + characters > self.limits.waiting:
            raise self._busy("the server has too much to translate at the moment (limits.waiting)")
        if not self.waiting:
            self._done, self._since = 0, monotonic()
        if self._rest:
            self._rest.cancel()
        self.waiting += characters
        try:
            async with asyncio.timeout(self.limits.seconds):
                yield
        except TimeoutError:
            raise self._busy(f"not done within {self.limits.seconds} s (limits.seconds)") from None
        finally:
            self.waiting -= characters
            if not self.waiting:
                self._rest = asyncio.get_running_loop().call_later(_REST_SECONDS, return_freed_memory)
        self._done += characters
        self._rate = self._done / max(0.001, monotonic() - self._since)
        self._metrics.texts += len(texts)
        self._metrics.characters += characters

    def _busy(self, reason: str) -> HTTPException:
        """Return the refusal of a request that may be answered once the others are."""
        return HTTPException(503, reason, {"Retry-After": str(max(1, round(self.waiting / self._rate)))})

    async def translate(self, translator: Translator[Any], texts: Sequence[str], request: Request) -> list[Translation]:
        """Translate texts in batches with those of other requests; TolkaError as `Translator.translate`."""
        translations = list[Translation]()
        for start in range(0, len(texts), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            asked = replace(request, prefixes=request.prefixes[part])
            translations += await translator.translate_async(texts[part], asked)
        return translations

    async def translate_lines(
        self, translator: Translator[Any], texts: Sequence[str], alternatives: int = 0
    ) -> list[list[str]]:
        """Return the translation of each text, whose lines are translated one by one, and then its alternatives."""
        lines, search = [text.split("\n") for text in texts], translator.request.search
        if alternatives:
            beam = search if isinstance(search, BeamConfig) else BeamConfig()
            search = replace(beam, beam_size=max(beam.beam_size, alternatives + 1), n_best=alternatives + 1)
        every = [line for text in lines for line in text]
        async with self.admitted(every, search):
            remaining = iter(await self.translate(translator, every, Request(search, scored=False)))
        return [_joined([next(remaining) for _ in text])[: alternatives + 1] for text in lines]

    async def translate_html(self, translator: Translator[Any], texts: Sequence[str]) -> list[str]:
        """Translate parts of a page, whose markup goes to the words that it belongs to."""
        left = Event()

        def translated(text: str) -> str:
            stream = BytesIO()
            translate_document(_HtmlText(Path("q"), stream=BytesIO(text.encode())), translator, stream, left.is_set)
            return stream.getvalue().decode()

        async with self.admitted(texts, translator.request.search):
            try:
                return await asyncio.to_thread(lambda: [*map(translated, texts)])
            finally:
                left.set()  # for a thread that goes on after the request has ended

    async def translate_in_detail(
        self, translator: Translator[Any], texts: Sequence[str], request: Request, details: bool, attention: bool
    ) -> list[dict[str, Any]]:
        """Return plain values for each text, as output.format=jsonl has them; see `Application`."""

        def values() -> list[dict[str, Any]]:
            if details:
                results = [LineResult(*each) for each in zip(texts, translations, strict=True)]
                return list(JsonLines(translator, None).values(results, attention))
            hypotheses = (
                [{"text": c.text, "score": rounded_score(c.score)} for c in t.candidates] for t in translations
            )
            listed = [{"source": text, "hypotheses": each} for text, each in zip(texts, hypotheses, strict=True)]
            with suppress(ConfigError):  # a model without attention, or an ensemble
                all_maps = translator.attention(translations, with_gradients=False) if attention else ()
                for value, of_text in zip(listed, all_maps, strict=False):
                    value["attention"] = [each.as_dict() for each in of_text]
            return listed

        async with self.admitted(texts, request.search or translator.request.search):
            translations = await self.translate(translator, texts, request)
            return await asyncio.to_thread(values)


def _joined(lines: Sequence[Translation]) -> list[str]:
    """Return the translations of a text by those of its lines: of all lines the best, the second ones, and so on."""
    most = max(len(line.candidates) for line in lines)
    texts = ["\n".join(line.candidates[min(n, len(line.candidates) - 1)].text for line in lines) for n in range(most)]
    return [*dict.fromkeys(texts)]


class _HtmlText(Html):
    """A page, or a part of one, that is text already, whatever encoding it names."""

    def declared(self, raw: bytes) -> str:
        return "utf-8"


def split_text(translator: Translator[Any], text: str) -> dict[str, list[str]]:
    """Return the sentences of a text, and what stands before, between and behind their translations."""
    source, target = translator.direction
    found, separators = list[str](), [""]
    for number, line in enumerate(_LINE_END.split(text)):
        content = line.strip()
        separator = ("\n" if number else "") + line[: len(line) - len(line.lstrip())]
        for part in sentences(content, source) if translator.split == "sentences" and content else [content]:
            separators[-1] += separator
            separator = ""
            if part:
                found.append(part.rstrip())
                separators.append("")
                separator = separator_between(part[len(found[-1]) :], True, target)
    return {"sentences": found, "separators": separators}
