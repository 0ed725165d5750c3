"""The texts of one column of a table, in TSV, CSV, JSON lines or Parquet."""

from pathlib import Path
from typing import IO

from tolka.text.direction import Direction
from tolka.text.lines import LINE_LIMIT, LineLimit
from tolka.text.pairs import PairSource
from tolka.text.readers import FORMATS
from tolka.text.readers.base import BothSides, ColumnSetting

_SETTING = ColumnSetting(
    "input.column", "Name one of them with input.column", "or, where the first line is a text already, its number"
)


def column_of(
    path: Path,
    kind: str,
    column: str,
    second: str = "",
    limit: LineLimit = LINE_LIMIT,
    stream: IO[bytes] | None = None,
) -> PairSource:
    """Return the texts of a column, as the sources of pairs; the targets are those of `second`, else the same.

    kind: tsv, csv, jsonl or parquet. column, second: names, or in tsv and csv numbers, from 1. stream: read in place of
    the file, once, which `path` then only names; not for parquet. A blank line is a row with a blank text.
    """
    reader = FORMATS[f".{kind}"](path, str(path), Direction("", ""), [column, second or column], limit)
    assert isinstance(reader, BothSides)
    reader.stream, reader.keeps_blank_lines, reader.setting = stream, True, _SETTING
    return reader
