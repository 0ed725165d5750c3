"""The settings of mt-translate, except its files. Needs no torch."""

from dataclasses import dataclass

from tolka.documents.base import DOCUMENTS
from tolka.engines.options import DecodingConfig
from tolka.errors import ConfigError
from tolka.options.checks import one_of
from tolka.options.settings import setting
from tolka.search.options import SearchConfig


@dataclass(frozen=True)
class InputConfig:
    """Options of the texts to translate."""

    format: str = "auto"
    """text, tsv, csv, jsonl or parquet; auto = text, or where input.column is set, what the file's name ends in"""
    column: str = setting("", literal=True)
    """column to translate: its name, or in tsv and csv its number, from 1; the other columns are not copied"""
    prefix: str = setting("", literal=True, any_bytes=True)
    """file with the beginning of each translation, line by line; a blank line leaves the translation free"""

    def __post_init__(self) -> None:
        one_of(self, "input", "format", ["auto", *DOCUMENTS.names()])
        has_columns = self.format != "auto" and DOCUMENTS.get(self.format).has_columns
        if self.format != "auto" and self.column and not has_columns:
            raise ConfigError(f"input.column ({self.column}) names a column, and input.format={self.format} has none")
        if has_columns and not self.column:
            raise ConfigError(f"input.format={self.format} has columns: name the one to translate with input.column")
        if self.column.isdecimal() and int(self.column) == 0:
            raise ConfigError(f"input.column ({self.column}): columns are counted from 1")


@dataclass(frozen=True)
class OutputConfig:
    """Options of what is written."""

    format: str = "text"
    """text (a translation a line), table or html (with what to check), nbest (Moses' list), or jsonl (with scores)"""
    alignments: bool = False
    """whether a tab and the word alignment follow each translation, in Pharaoh's format: source-target, from 0"""
    resume: bool = False
    """with -o: continue where the same command was interrupted, after the last full window (decoding.window)"""

    def __post_init__(self) -> None:
        one_of(self, "output", "format", ("text", "table", "html", "nbest", "jsonl"))


@dataclass(frozen=True)
class TranslateConfig:
    """The settings of mt-translate, except its files."""

    search: SearchConfig
    decoding: DecodingConfig
    input: InputConfig
    output: OutputConfig
