"""Plain text: every line is a text."""

import re
from collections.abc import Iterator

from tolka.documents.base import DOCUMENTS, LineFile
from tolka.documents.spliced import SplicedDocument
from tolka.documents.strings import string_texts
from tolka.documents.text import Text
from tolka.text.lines import count_and_digest, read_lines
from tolka.text.pairs import Pair


class LinesDocument(SplicedDocument):
    """Lines that are texts."""

    endings = (".txt",)

    def find(self, content: str) -> Iterator[Text]:
        for line in re.finditer(r"[^\n\ufeff]+", content):
            yield from string_texts(line[0], line.start(), line[0])


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
