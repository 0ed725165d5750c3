"""Which files of a job are documents, and where their translations go."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tolka.documents.base import Document, LineFile, document_of
from tolka.errors import ConfigError, DataError
from tolka.jobs.inputs import kind_of, kind_of_ending
from tolka.jobs.job import Job
from tolka.jobs.options import InputConfig, OutputConfig, TranslateConfig
from tolka.system.atomic import check_output


class Planned(NamedTuple):
    """A file, and where it goes: None = standard output. open: reads it; None for a file that is copied as it is."""

    path: Path
    output: Path | None
    open: Callable[[], Document] | None


def planned_documents(job: Job, config: TranslateConfig) -> list[Planned]:
    """Return what a job translates as documents; [] if it is one of lines.

    ConfigError for both kinds in one job, and for settings that only lines have. DataError for an output that cannot be
    written, or is read.
    """
    inputs = job.inputs or ([] if job.is_typed else [Path("stdin")])
    folders = {path for path in job.inputs if path.is_dir()}
    kinds = [None if path in folders else _kind(path, job, config.input) for path in inputs]
    first = next((path for path, kind in zip(inputs, kinds, strict=True) if kind or path in folders), None)
    if job.are_given or first is None:
        return []
    _check_settings(job, config, first)
    if folders and config.input != InputConfig(memory=config.input.memory):
        raise ConfigError("input.format and input.column are for one file: leave them out with a folder")
    goes_into_folder = len(inputs) > 1 or bool(folders) or (job.output is not None and job.output.is_dir())
    if goes_into_folder and job.output is None:
        raise ConfigError(f"{first}: several documents go to a folder: name it with -o")
    planned: list[Planned] = []
    for path, kind in zip(inputs, kinds, strict=True):
        if path in folders:
            assert job.output is not None
            for each in _files_in(path, job.output):
                its_kind = kind_among_others(each)
                opener = _opener(its_kind, each, job, config) if its_kind else None
                planned.append(Planned(each, job.output / each.relative_to(path), opener))
        elif kind is None:
            raise ConfigError(f"{path} has lines, and {first} is a document: translate them apart")
        else:
            output = job.output / path.name if job.output and goes_into_folder else job.output
            if output and output.suffix.lower() not in (path.suffix.lower(), *kind.endings):
                raise DataError(
                    f"{output}: a document keeps its form; let its name end in {path.suffix or kind.endings[0]}"
                )
            planned.append(Planned(path, output, _opener(kind, path, job, config)))
    _check_outputs(planned)
    return planned


def _kind(path: Path, job: Job, config: InputConfig) -> type[Document] | None:
    """Return the format of a file that is translated as a document; None if it is one of lines."""
    kind = kind_of(path if job.inputs else None, config)
    if issubclass(kind, Document):
        return kind
    assert issubclass(kind, LineFile)
    # A table stays one in a file of its kind; elsewhere it becomes a line for each row.
    stays = config.column and job.output and job.output.suffix.lower() in kind.endings
    if stays and kind.document is None:
        raise ConfigError(
            f"{job.output}: {path.suffix} is read and not written; a name in .txt gets a line for each row"
        )
    return kind.document if stays else None


def kind_among_others(path: Path) -> type[Document] | None:
    """Return the format of a file among others; None if it is copied."""
    kind = kind_of_ending(path, has_column=False)
    return document_of(kind) if kind else None


def _opener(kind: type[Document], path: Path, job: Job, config: TranslateConfig) -> Callable[[], Document]:
    """Return what opens a document each time that it is called: a folder of them may be larger than the memory."""
    if kind.is_binary and job.is_on_screen:
        raise ConfigError(f"{path} is no text to be shown on a terminal: name a file to write with -o")
    if job.inputs or job.stdin is None:
        return partial(kind, path, config.layout, config.decoding.line_limit)
    document = kind(path, config.layout, config.decoding.line_limit, job.stdin.buffer)
    return lambda: document


def _files_in(folder: Path, output: Path) -> list[Path]:
    """Return the files of a folder, without those of the output, which may be inside of it."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_relative_to(output))
    if not found:
        raise DataError(f"{folder} is a folder without files")
    return found


def _check_settings(job: Job, config: TranslateConfig, path: Path) -> None:
    """Raise ConfigError for what only files of lines have."""
    named = {
        "--attention": job.attention,
        "output.format": config.output.format != OutputConfig().format,
        "output.alignments": config.output.alignments,
        "input.prefix": config.input.prefix,
    }
    if chosen := [name for name, value in named.items() if value]:
        raise ConfigError(f"{path} is a document, and {chosen[0]} is for lines: leave it out, or set input.format=text")


def _check_outputs(planned: list[Planned]) -> None:
    """Raise DataError for an output that is an input, by whatever name, or that two files would have."""
    of_output: dict[Path, Path] = {}
    inputs = {_identity(path): path for path, output, _ in planned if output and path.exists()}
    for path, output, _ in planned:
        if output is None:
            continue
        if other := of_output.get(output):
            raise DataError(f"{other} and {path} would both become {output}: translate them apart")
        of_output[output] = path
        if output.parent.is_dir():
            same = inputs.get(_identity(output)) if output.exists() else None
            check_output(output, [same] if same else [])


def _identity(path: Path) -> tuple[int, int]:
    """Return what all names of a file have in common."""
    status = path.stat()
    return status.st_dev, status.st_ino
