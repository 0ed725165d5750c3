"""The contract of a document: its texts with their places in, their translations out."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, ClassVar

from tolka.options.registry import Registry
from tolka.text.lines import LINE_LIMIT, LineLimit
from tolka.text.pairs import Pair


class Document(ABC):
    """A file of texts to translate, or a stream of one, which `path` then only names.

    A format is one new file, here or in a plugin: a subclass, registered under the name that input.format chooses.
    `write` gets the translations in the order of the texts.
    """

    endings: ClassVar[tuple[str, ...]] = ()
    """file extensions (".srt") by which input.format=auto recognises the format"""
    has_columns: ClassVar[bool] = False
    """whether input.column names what is translated"""
    is_streamable: ClassVar[bool] = True
    """whether it can be read from standard input"""
    has_layout: ClassVar[bool] = False
    """whether more is written than a line for each translation, so that the output cannot be resumed"""

    def __init__(
        self, path: Path, column: str = "", limit: LineLimit = LINE_LIMIT, stream: IO[bytes] | None = None
    ) -> None:
        """column: of the texts, in a table. limit: for a line. stream: read in place of the file, once."""
        self.path, self.column, self.limit, self.stream = path, column, limit, stream

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

    def write(self, translations: Sequence[str]) -> str:
        """Return the text to write for the next translations."""
        return "".join(f"{translation}\n" for translation in translations)

    def end(self) -> str:
        """Return the text to write after the last translation."""
        return ""


DOCUMENTS: Registry[Document] = Registry("document", "tolka.documents")
