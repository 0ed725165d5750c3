"""Plain text: every line is a text."""

from collections.abc import Iterator

from tolka.documents.base import DOCUMENTS, LineFile
from tolka.documents.tables import LinesDocument
from tolka.text.lines import count_and_digest, read_lines
from tolka.text.pairs import Pair


@DOCUMENTS.register("text")
class PlainText(LineFile):
    """A file whose every line is a text."""

    endings, document = (".txt",), LinesDocument

    def texts(self) -> Iterator[Pair]:
        return (Pair(line, "") for line in read_lines(self.path, limit=self.limit, stream=self.stream))

    def count(self) -> int:
        return count_and_digest(self.path, self.limit)[0]

    def place(self, number: int) -> str:
        return f"{self.path}:{number}"
