"""Documents that clients send: translated one after the other, in the background, and kept for an hour."""

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, BinaryIO

from tolka.documents.base import Document, LineFile
from tolka.errors import StoppedError, TolkaError
from tolka.jobs.document_texts import TextTranslation
from tolka.jobs.documents import DocumentReport, windows
from tolka.jobs.inputs import kind_of_ending
from tolka.jobs.notes import UnusualLines
from tolka.serve.guard import RefusedError
from tolka.system.progress import Say
from tolka.text.direction import Direction
from tolka.text.scripts import language_tag
from tolka.translation.batch_decoder import Tick
from tolka.translation.translator import Translator

_KEPT_SECONDS = 3600.0
_MOST_KEPT = 100
_WINDOW = 128  # texts at once: the requests of others come in between


def translated(
    document: Document, translator: Translator[Any], tick: Tick = lambda share: None
) -> tuple[Iterator[bytes], DocumentReport]:
    """Return an iterator of the parts of a document as they are written, and the report, complete once it has ended.

    tick: receives each batch's share of the texts.
    """
    report = DocumentReport(document.path, None)
    texts = TextTranslation(translator, {}, UnusualLines(translator.direction, unit="text"))
    document.direction = Direction(*map(language_tag, translator.direction))

    def parts() -> Iterator[bytes]:
        for window in windows(document.texts(), _WINDOW):
            report.add(window, texts.outcomes([text for text in window if not text.reason], tick))
            yield from map(document.write, window)
        yield document.end()

    return parts(), report


@dataclass
class KeptDocument:
    """A document that a client has sent. total: of its texts; done: of these. error: why it could not be translated."""

    path: Path
    output: Path
    begun: float = field(default_factory=monotonic)
    total: int = 0
    done: float = 0.0
    error: str = ""
    report: DocumentReport | None = None
    left: Event = field(default_factory=Event)
    """set when nobody wants it any more"""

    def values(self) -> dict[str, Any]:
        """Return how far it is, and once it is finished what became of its texts."""
        state = "failed" if self.error else "done" if self.report else "translating" if self.total else "waiting"
        share = 1.0 if self.report else min(1.0, self.done / max(1, self.total))
        return {
            "name": self.path.name,
            "state": state,
            "share": round(share, 3),
            **({"error": self.error} if self.error else {}),
            **({"report": self._report_values(self.report)} if self.report else {}),
        }

    def _report_values(self, report: DocumentReport) -> dict[str, Any]:
        """Return a report without the folder of this server, which is nobody's business."""
        folder, values = f"{self.path.parent}/", report.values()
        check = [{**each, "where": each["where"].replace(folder, "")} for each in values["check"]]
        return {**values, "input": self.path.name, "check": check}


class Documents:
    """The documents of a server, in a temporary folder."""

    def __init__(self, say: Say) -> None:
        self._say, self._folder = say, Path(tempfile.mkdtemp(prefix="tolka-"))
        self._documents: dict[str, KeptDocument] = {}
        self._thread = ThreadPoolExecutor(1, "documents")

    def submit(self, name: str, content: BinaryIO, translator: Translator[Any]) -> tuple[str, "Future[None]"]:
        """Begin to translate a document; return its key and what ends with it. RefusedError for an unknown kind."""
        self._remove_old()
        name = Path(name.replace("\\", "/")).name.replace("\0", "")[-100:]
        kind = kind_of_ending(Path(name), has_column=False)
        document_kind = kind.document if kind and issubclass(kind, LineFile) else kind
        if document_kind is None or not issubclass(document_kind, Document):
            known = " ".join(document_endings())
            raise RefusedError(409, f"'{name:.60}' is no kind of document that is translated; these are: {known}")
        if len(self._documents) >= _MOST_KEPT:
            raise RefusedError(503, f"{_MOST_KEPT} documents are kept or wait already", retry_after=60)
        key = secrets.token_urlsafe(16)
        folder = self._folder / key
        folder.mkdir()
        document = self._documents[key] = KeptDocument(folder / name, folder / f"translated-{name}")
        with document.path.open("wb") as stream:
            shutil.copyfileobj(content, stream)
        return key, self._thread.submit(self._translate, document, document_kind(document.path), translator)

    def find(self, key: str) -> KeptDocument:
        """Return a document; RefusedError if there is none, or no more."""
        self._remove_old()
        if key not in self._documents:
            raise RefusedError(404, "there is no such document: translations are kept for an hour")
        return self._documents[key]

    def remove(self, key: str) -> None:
        """Remove a document; if it is being translated, that ends."""
        document = self.find(key)
        document.left.set()
        del self._documents[key]
        shutil.rmtree(document.path.parent, ignore_errors=True)

    def close(self) -> None:
        """Remove all documents."""
        for key in [*self._documents]:
            self.remove(key)
        self._thread.shutdown(cancel_futures=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _remove_old(self) -> None:
        now = monotonic()
        for key in [key for key, each in self._documents.items() if now - each.begun > _KEPT_SECONDS]:
            self.remove(key)

    def _translate(self, kept: KeptDocument, document: Document, translator: Translator[Any]) -> None:
        def tick(share: float) -> None:
            kept.done += share
            if kept.left.is_set():
                raise StoppedError("nobody wants it any more")

        try:
            kept.total = sum(not text.reason for text in document.texts()) or 1
            tick(0)
            parts, report = translated(document, translator, tick)
            with kept.output.open("wb") as stream:
                stream.writelines(parts)
            kept.report = report
        except (TolkaError, OSError) as error:
            kept.error = str(error).replace(f"{kept.path.parent}/", "")
        except Exception as error:  # of a document from anybody: the next one is translated all the same
            self._say(f"warning: {kept.path.name}: {type(error).__name__}: {error}")
            kept.error = "the document cannot be read"


def document_endings() -> list[str]:
    """Return the endings of documents that are translated."""
    from tolka.documents.base import DOCUMENTS

    kinds = [DOCUMENTS.get(name) for name in DOCUMENTS.names()]
    documents = [kind.document if issubclass(kind, LineFile) else kind for kind in kinds if False in kind.with_column]
    return sorted({ending for kind in documents if kind for ending in kind.endings})
