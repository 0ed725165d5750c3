"""The files of a job."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from tolka.errors import ConfigError, DataError
from tolka.jobs.inputs import check_files
from tolka.jobs.options import TranslateConfig
from tolka.model_directory.names import check_outside
from tolka.options.settings import read_files
from tolka.system.atomic import check_output
from tolka.text.lines import user_path


@dataclass(frozen=True)
class Job:
    """The files of a job. inputs: none = stdin. output: None = stdout.

    report: a file for what became of documents, as JSON. attention: a folder for attention maps. are_given: whether the
    second of two files has translations to score. stdin, stdout: of the process; None if they are closed.
    """

    models: Sequence[Path]
    inputs: Sequence[Path]
    output: Path | None = None
    attention: Path | None = None
    report: Path | None = None
    are_given: bool = False
    stdin: TextIO | None = None
    stdout: TextIO | None = None

    @property
    def is_typed(self) -> bool:
        """Whether the texts are typed at a terminal."""
        return not self.inputs and self.stdin is not None and self.stdin.isatty()

    @property
    def is_on_screen(self) -> bool:
        """Whether the translations are printed to the terminal that would show a progress bar."""
        return self.output is None and self.stdout is not None and self.stdout.isatty()

    def check(self, config: TranslateConfig) -> None:
        """Raise ConfigError for settings that do not fit the job, DataError for files that cannot be used."""
        check_files(self.inputs, self.stdin, folders=self.output is not None)
        named = list(map(user_path, read_files(config.search, config.input)))
        if self.output and not self.output.is_dir():  # where documents go
            check_output(self.output, (*self.inputs, *named))
        if self.report:
            check_output(self.report, (*self.inputs, *named))
            if self.output and self.report.resolve() == self.output.resolve():
                raise DataError(f"{self.report} gets the output: name another file for --json")
        for written in filter(None, (self.output, self.attention, self.report)):
            check_outside(written, self.models)
        if self.attention and self.attention.exists() and not self.attention.is_dir():
            raise DataError(f"{self.attention} is a file; --attention takes a folder to write to")
        output = config.output
        is_kept = self.output and (self.output.is_file() or self.output.is_dir() or not self.output.exists())
        if output.resume and not is_kept:
            raise ConfigError(
                f"resume=true needs a file that can be read again, and {self.output or 'standard output'} is none: "
                "name one with -o"
            )
        if output.format in ("nbest", "table", "html") and (self.attention or output.alignments):
            asked = "--attention" if self.attention else "output.alignments=true"
            raise ConfigError(
                f"output.format={output.format} has no place for {asked}: choose text, or jsonl, which has alignments"
            )
