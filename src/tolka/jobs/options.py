"""The settings of mt-translate, except its files. Needs no torch."""

from dataclasses import dataclass

from tolka.documents.base import DOCUMENTS, Layout
from tolka.engines.options import DecodingConfig
from tolka.errors import ConfigError
from tolka.options.checks import at_least, one_of
from tolka.options.settings import setting
from tolka.search.options import SearchConfig


@dataclass(frozen=True)
class InputConfig:
    """Options of the texts to translate."""

    format: str = "auto"
    """text (lines); html, docx, po, srt and other documents; tsv, csv, jsonl, parquet; auto = what the name ends in"""
    column: str = setting("", literal=True)
    """column to translate: its name, or in tsv and csv its number, from 1; others only go into a table (-o X.csv)"""
    prefix: str = setting("", literal=True, any_bytes=True)
    """file with the beginning of each translation, line by line; a blank line leaves the translation free"""

    memory: str = setting("", literal=True, any_bytes=True)
    """file of translations (.tmx, .tsv, .po and others) that stand in for the model's where the source is the same"""

    def __post_init__(self) -> None:
        one_of(self, "input", "format", ["auto", *DOCUMENTS.names()])
        with_column = (True, False) if self.format == "auto" else DOCUMENTS.get(self.format).with_column
        if self.column and True not in with_column:
            raise ConfigError(f"input.column ({self.column}) names a column, and input.format={self.format} has none")
        if not self.column and False not in with_column:
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

    line_length: int = 42
    """of subtitles, in characters; wide ones (Chinese, Japanese, Korean) count as two"""
    reading_speed: float = 17.0
    """of subtitles, in such characters a second; faster ones are listed for a person to check"""

    def __post_init__(self) -> None:
        at_least(self, "output", 1, "line_length", "reading_speed")
        one_of(self, "output", "format", ("text", "table", "html", "nbest", "jsonl"))


@dataclass(frozen=True)
class TranslateConfig:
    """The settings of mt-translate, except its files."""

    search: SearchConfig
    decoding: DecodingConfig
    input: InputConfig
    output: OutputConfig

    @property
    def layout(self) -> Layout:
        """How translations fit into a document."""
        return Layout(self.input.column, self.output.line_length, self.output.reading_speed)
