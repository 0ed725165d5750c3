"""The contracts of what is translated: files of lines, and documents, whose form stays."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, ClassVar

from tolka.documents.text import Text
from tolka.errors import DataError
from tolka.options.registry import Registry
from tolka.text.direction import UNKNOWN, Direction
from tolka.text.lines import BROKEN, LINE_LIMIT, LineLimit, open_unpacked
from tolka.text.pairs import Pair


@dataclass(frozen=True)
class Layout:
    """How translations fit into a document.

    column: of the texts, in a table. line_length: of subtitles, in characters, of which wide ones count twice.
    reading_speed: of subtitles, in such characters a second.
    """

    column: str = ""
    line_length: int = 42
    reading_speed: float = 17.0


class InputFile:
    """A file of texts to translate, or a stream of one, which `path` then only names.

    A format is one new file, here or in a plugin: a subclass of `LineFile` or `Document`, registered under the name
    that input.format chooses.
    """

    endings: ClassVar[tuple[str, ...]] = ()
    """file extensions (".srt") by which input.format=auto recognises the format"""
    with_column: ClassVar[tuple[bool, ...]] = (False,)
    """whether input.column, which names what is translated, may be set, and may be left out: (True, False)"""
    is_streamable: ClassVar[bool] = True
    """whether it can be read from standard input"""

    def __init__(
        self, path: Path, layout: Layout = Layout(), limit: LineLimit = LINE_LIMIT, stream: IO[bytes] | None = None
    ) -> None:
        """limit: for a line or a text. stream: read in place of the file, once."""
        self.path, self.layout, self.limit, self.stream = path, layout, limit, stream

    def read_bytes(self) -> bytes:
        """Return the content of the file, or of the stream; DataError if it cannot be read."""
        if self.stream is not None:
            return self.stream.read()
        try:
            with open_unpacked(self.path) as stream:
                return stream.read()
        except BROKEN as error:
            raise DataError(f"{self.path}: cannot be read to its end ({error}); is the file complete?") from None


class LineFile(InputFile, ABC):
    """A file whose texts are translated into as many lines."""

    document: "ClassVar[type[Document] | None]" = None
    """the format in which it stays as it is around its texts"""

    @abstractmethod
    def texts(self) -> Iterator[Pair]:
        """Yield each text as the source of a pair.

        A text with a flaw is translated all the same, and noted. DataError for what cannot be read.
        """

    def count(self) -> int:
        """Return how many texts the file has, for progress; DataError as `texts`."""
        return sum(1 for _ in self.texts())

    def place(self, number: int) -> str:
        """Return where a text stands, for messages. number: from 1."""
        return f"{self.path}, row {number}"


class Document(InputFile, ABC):
    """A file that is written again with its texts translated: what is around and inside of them stays."""

    is_binary: ClassVar[bool] = False
    """whether it is no text"""
    direction: Direction = UNKNOWN
    """of the translation, for what a document says of its language; set before `texts`"""

    @abstractmethod
    def texts(self) -> Iterator[Text]:
        """Yield the texts in the order in which `write` takes them, those inside of another one before it.

        It may be called again, and then begins the output again as well. DataError, with the line, for a file that is
        broken, and for one that should not be opened.
        """

    @abstractmethod
    def write(self, text: Text) -> bytes:
        """Return what is written until the end of a text, whose translation is in it."""

    @abstractmethod
    def end(self) -> bytes:
        """Return what is written after the last text."""

    def notes(self) -> Iterator[str]:
        """Yield what a user should know of the document as a whole."""
        return iter(())


def document_of(kind: type[InputFile]) -> type[Document] | None:
    """Return the kind of document that a file of a kind is by itself; None if it is none."""
    if issubclass(kind, Document):
        return kind
    return kind.document if issubclass(kind, LineFile) else None


DOCUMENTS: Registry[InputFile] = Registry("document", "tolka.documents", without=["markdown_inline"])
