"""The texts of one column of a table, in TSV, CSV, JSON lines or Parquet; the other columns are not copied."""

from collections.abc import Iterator

from tolka.documents.base import DOCUMENTS, LineFile
from tolka.text.direction import UNKNOWN
from tolka.text.pairs import Pair
from tolka.text.readers import FORMATS
from tolka.text.readers.base import BothSides, ColumnSetting

_SETTING = ColumnSetting(
    "input.column", "Name one of them with input.column", "or, where the first line is a text already, its number"
)


class TableColumn(LineFile):
    """A column of a table, which a reader of corpora reads; a blank line is a row with a blank text."""

    with_column = (True,)

    def texts(self) -> Iterator[Pair]:
        for pair in self._reader().read():
            yield Pair(pair.source, "", pair.flaw)

    def count(self) -> int:
        return self._reader().count()

    def _reader(self) -> BothSides:
        # A reader of pairs has two columns; `texts` drops the second.
        reader = FORMATS[self.endings[0]](
            self.path, str(self.path), UNKNOWN, [self.layout.column, self.layout.column], self.limit
        )
        assert isinstance(reader, BothSides)
        # Blank lines stay, as the output has a line for each of the input.
        reader.stream, reader.keeps_blank_lines, reader.setting = self.stream, True, _SETTING
        return reader


@DOCUMENTS.register("tsv")
class TsvColumn(TableColumn):
    """A column of tab-separated values: its name, or its number, from 1."""

    endings = (".tsv",)


@DOCUMENTS.register("csv")
class CsvColumn(TableColumn):
    """A column of comma-separated values: its name, or its number, from 1."""

    endings = (".csv",)


@DOCUMENTS.register("jsonl")
class JsonLinesKey(TableColumn):
    """A key of the objects in JSON lines."""

    endings = (".jsonl",)


@DOCUMENTS.register("parquet")
class ParquetColumn(TableColumn):
    """A column of a Parquet file."""

    # Parquet has its index at its end, and is read from there.
    endings, is_streamable = (".parquet",), False
