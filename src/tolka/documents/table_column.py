"""The texts of one column of a table, in TSV, CSV, JSON lines or Parquet."""

from collections.abc import Iterator

from tolka.documents.base import DOCUMENTS, LineFile
from tolka.documents.tables import CsvDocument, JsonLinesDocument, TsvDocument, column_reader
from tolka.text.pairs import Pair


class TableColumn(LineFile):
    """A column of a table, which a reader of corpora reads; a blank line is a row with a blank text."""

    with_column = (True,)

    def texts(self) -> Iterator[Pair]:
        for pair in column_reader(self).read():
            yield Pair(pair.source, "", pair.flaw)

    def count(self) -> int:
        return column_reader(self).count()


@DOCUMENTS.register("tsv")
class TsvColumn(TableColumn):
    """A column of tab-separated values: its name, or its number, from 1."""

    endings, document = (".tsv",), TsvDocument


@DOCUMENTS.register("csv")
class CsvColumn(TableColumn):
    """A column of comma-separated values: its name, or its number, from 1."""

    endings, document = (".csv",), CsvDocument


@DOCUMENTS.register("jsonl")
class JsonLinesKey(TableColumn):
    """A key of the objects in JSON lines."""

    endings, document = (".jsonl",), JsonLinesDocument


@DOCUMENTS.register("parquet")
class ParquetColumn(TableColumn):
    """A column of a Parquet file."""

    # Parquet has its index at its end, and is read from there.
    endings, is_streamable = (".parquet",), False
