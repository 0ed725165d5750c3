"""Translations that people have corrected, in a table that corpus.train reads."""

from collections.abc import Sequence
from pathlib import Path

from tolka.errors import ConfigError, DataError
from tolka.text.direction import Direction
from tolka.text.lines import read_lines

_MACHINE = "translation"  # the column of what the model had said


class Suggestions:
    """A TSV file whose columns are the languages of the server, named in its first line; rows are appended."""

    def __init__(self, path: Path, languages: Sequence[str]) -> None:
        """languages: their codes, as the models have them.

        ConfigError for another ending, DataError for a file with other columns or that cannot be written.
        """
        if path.suffix.lower() != ".tsv":
            raise ConfigError(f"--suggestions {path}: name a file that ends in .tsv")
        self.path, self._columns = path, [*languages, _MACHINE]
        header = "\t".join(self._columns)
        try:
            first = next(read_lines(path), header) if path.exists() else header
            with path.open("a", encoding="utf-8") as stream:
                if not stream.tell():
                    stream.write(f"{header}\n")
        except OSError as error:
            raise DataError(f"--suggestions {path}: {error.strerror or error}") from None
        if first != header:
            raise DataError(f"--suggestions {path} has columns for other languages than {', '.join(languages)}")

    def add(self, direction: Direction, source: str, target: str, translation: str = "") -> None:
        """Append a text and the translation that it should have. translation: that the model gave it."""
        values = {direction.source: source, direction.target: target, _MACHINE: translation}
        row = "\t".join(" ".join(values.get(column, "").split()) for column in self._columns)
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(f"{row}\n")
