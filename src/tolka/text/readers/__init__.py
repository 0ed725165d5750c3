"""Files that hold both sides of a corpus, each read as a stream; chosen by how their name ends."""

from collections.abc import Callable, Sequence
from pathlib import Path

from tolka.text.lines import LineLimit, without_compression
from tolka.text.pairs import PairSource
from tolka.text.readers.columns import CsvFile, TsvFile
from tolka.text.readers.gettext import GettextFile
from tolka.text.readers.jsonl import JsonLinesFile
from tolka.text.readers.parquet import ParquetFile
from tolka.text.readers.tmx import TmxFile

_Reader = Callable[[Path, str, tuple[str, str], Sequence[str], LineLimit], PairSource]
FORMATS: dict[str, _Reader] = {
    ".tsv": TsvFile,
    ".jsonl": JsonLinesFile,
    ".tmx": TmxFile,
    ".po": GettextFile,
    ".csv": CsvFile,
    ".parquet": ParquetFile,
}


def reader_of(path: Path) -> _Reader | None:
    """What reads such a file, whether it is there or not; None for a file that holds one side, or none."""
    return FORMATS.get(without_compression(path).suffix.lower())
