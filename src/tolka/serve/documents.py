"""Documents that clients send: translated one after the other, in the background, and kept for an hour."""

import secrets
import shutil
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import IO, Any, BinaryIO

from starlette.exceptions import HTTPException

from tolka.documents.base import DOCUMENTS, Document, document_of
from tolka.documents.text import Text
from tolka.errors import StoppedError, TolkaError
from tolka.jobs.document_plan import kind_among_others
from tolka.jobs.document_texts import Outcome, TextTranslation
from tolka.jobs.documents import DocumentReport, written
from tolka.jobs.notes import UnusualLines
from tolka.system.progress import Say
from tolka.translation.batch_decoder import Tick
from tolka.translation.translator import Translator

_KEPT_SECONDS = 3600.0
_MOST_KEPT = 30
_WINDOW = 128  # texts at once: the requests of others come in between


def translate_document(
    document: Document,
    translator: Translator[Any],
    stream: IO[bytes],
    is_left: Callable[[], bool],
    tick: Tick = lambda share: None,
) -> DocumentReport:
    """Write a document translated to a stream; return the report.

    is_left: whether nobody wants it any more, which raises StoppedError. tick: receives each batch's share of texts.
    """
    report = DocumentReport(Path(document.path.name), None)
    translation = TextTranslation(translator, {}, UnusualLines(translator.direction, unit="text"))

    def outcomes(number: int, texts: Sequence[Text]) -> list[Outcome]:
        if is_left():
            raise StoppedError("nobody wants it any more")
        return translation.outcomes(texts, tick)

    stream.writelines(written(document, translator.direction, _WINDOW, outcomes, report))
    return report


@dataclass
class KeptDocument:
    """A document that a client has sent.

    total, done: of its texts. error: why it could not be translated. is_left: whether nobody wants it any more.
    """

    path: Path
    output: Path
    begun: float = field(default_factory=monotonic)
    total: int = 0
    done: float = 0.0
    error: str = ""
    report: DocumentReport | None = None
    is_left: bool = False

    def values(self) -> dict[str, Any]:
        """Return how far it is, and once it is finished what became of its texts."""
        state = "failed" if self.error else "done" if self.report else "translating" if self.total else "waiting"
        share = 1.0 if self.report else min(1.0, self.done / max(1, self.total))
        values: dict[str, Any] = {"name": self.path.name, "state": state, "share": round(share, 3)}
        if self.error:
            values["error"] = self.error
        if self.report:  # without the folder of this server, which is nobody's business
            folder, values["report"] = f"{self.path.parent}/", self.report.values()
            check = [{**each, "where": each["where"].replace(folder, "")} for each in self.report.to_check]
            values["report"]["check"] = check
        return values


class Documents:
    """The documents of a server, in a temporary folder."""

    def __init__(self, say: Say) -> None:
        self._say, self._folder = say, Path(tempfile.mkdtemp(prefix="tolka-"))
        self._documents: dict[str, KeptDocument] = {}
        self._thread = ThreadPoolExecutor(1, "documents")

    def submit(self, name: str, content: BinaryIO, translator: Translator[Any]) -> tuple[str, "Future[None]"]:
        """Begin to translate a document; return its key and what ends with it. HTTPException for an unknown kind."""
        self._remove_old()
        name = Path(name.replace("\\", "/")).name.replace("\0", "")
        name = name.encode(errors="ignore")[-200:].decode(errors="ignore")  # file systems have names of 255 bytes
        kind = kind_among_others(Path(name))
        if kind is None:
            known = " ".join(document_endings())
            raise HTTPException(409, f"'{name:.60}' is no kind of document that is translated; these are: {known}")
        if len(self._documents) >= _MOST_KEPT:
            raise HTTPException(503, f"{_MOST_KEPT} documents are kept or wait already", {"Retry-After": "60"})
        key = secrets.token_urlsafe(16)
        folder = self._folder / key
        folder.mkdir()
        document = KeptDocument(folder / name, folder / "translated")
        with document.path.open("wb") as stream:
            shutil.copyfileobj(content, stream)
        self._documents[key] = document
        return key, self._thread.submit(self._translate, document, kind(document.path), translator)

    def find(self, key: str) -> KeptDocument:
        """Return a document; HTTPException if there is none, or no more."""
        self._remove_old()
        if document := self._documents.get(key):
            return document
        raise HTTPException(404, "there is no such document: translations are kept for an hour")

    def remove(self, key: str) -> None:
        """Remove a document, if it is there; if it is being translated, that ends."""
        if document := self._documents.pop(key, None):
            document.is_left = True
            shutil.rmtree(document.path.parent, ignore_errors=True)

    def close(self) -> None:
        """Remove all documents."""
        for key in [*self._documents]:
            self.remove(key)
        self._thread.shutdown(cancel_futures=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _remove_old(self) -> None:
        for key, document in [*self._documents.items()]:
            if monotonic() - document.begun > _KEPT_SECONDS:
                self.remove(key)

    def _translate(self, kept: KeptDocument, document: Document, translator: Translator[Any]) -> None:
        def tick(share: float) -> None:
            kept.done += share

        try:
            kept.total = sum(not text.reason for text in document.texts()) or 1
            with kept.output.open("wb") as stream:
                report = translate_document(document, translator, stream, lambda: kept.is_left, tick)
            kept.report = report  # now that all is written: from now on it may be downloaded
        except (TolkaError, OSError) as error:
            kept.error = str(error).replace(f"{kept.path.parent}/", "")
        except Exception as error:  # of a document from anybody: the next one is translated all the same
            self._say(f"warning: {kept.path.name}: {type(error).__name__}: {error}")
            kept.error = "the document cannot be read"


def document_endings() -> list[str]:
    """Return the endings of documents that are translated."""
    kinds = [DOCUMENTS.get(name) for name in DOCUMENTS.names()]
    documents = [document_of(kind) for kind in kinds if False in kind.with_column]
    return sorted({ending for kind in documents if kind for ending in kind.endings})
