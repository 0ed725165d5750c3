"""Documents that are written again character by character, except where their texts stand."""

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import ClassVar

from tolka.documents.base import Document
from tolka.documents.text import Text
from tolka.errors import DataError
from tolka.text.encodings import conversion, likely_encoding

_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


class Splice:
    """Content whose texts are replaced in order, and how much of it is written."""

    def __init__(self, content: str) -> None:
        self._content, self._cursor = content, 0

    def up_to(self, text: Text) -> str:
        """Return what stands before a text and has not been returned yet, and the text as it is written."""
        if text.nested:  # written with the text around it
            return ""
        before, self._cursor = self._content[self._cursor : text.start], text.end
        return before + str(text)

    def rest(self) -> str:
        """Return what stands behind the last text."""
        return self._content[self._cursor :]


class SplicedDocument(Document):
    """A document of characters, in which places of texts are found."""

    errors: ClassVar[str] = "strict"
    """what to do with characters that the encoding of the document does not have"""

    @abstractmethod
    def find(self, content: str) -> Iterator[Text]:
        """Yield the texts in the content of the document, as `texts` does."""

    def declared(self, raw: bytes) -> str:
        """Return the encoding that the document says it has."""
        return "utf-8"

    @cached_property
    def _content(self) -> str:
        raw = self.read_bytes()
        self._codec = next((codec for mark, codec in _MARKS.items() if raw.startswith(mark)), "") or self.declared(raw)
        try:
            return raw.decode(self._codec)
        except UnicodeDecodeError as error:
            line = raw[: error.start].count(b"\n") + 1
            advice = conversion(str(self.path), likely_encoding(raw[: error.end + 2**14]))
            raise DataError(f"{self.path}:{line}: not {self._codec.upper()}; convert it first: {advice}") from None

    def texts(self) -> Iterator[Text]:
        content, self._splice = self._content, Splice(self._content)
        line = place = 0
        for text in self.find(content):
            line += content.count("\n", place, text.start) - content.count("\n", text.start, place)
            place = text.start
            text.where = text.where or f"{self.path}:{line + 1}"
            self.limit.check(text.source, text.where)
            yield text

    def write(self, text: Text) -> bytes:
        return self._encoded(self._splice.up_to(text))

    def end(self) -> bytes:
        return self._encoded(self._splice.rest())

    def _encoded(self, written: str) -> bytes:
        return written.encode(self._codec, self.errors)
