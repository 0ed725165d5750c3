"""The output of a job: standard output, a file that appears once it is complete, or one that can be resumed."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import IO, Any, TextIO

from tolka.errors import DataError
from tolka.jobs.options import TranslateConfig
from tolka.system.atomic import whole_file
from tolka.system.number_format import count_text
from tolka.system.progress import Say
from tolka.system.resumable import ResumableFile, record_path, resumable_file
from tolka.text.lines import digest_of, user_path
from tolka.text.pairs import Pair
from tolka.version import __version__

_ONLY_SPEED = {"decoding.threads", "output.resume"}  # settings that may differ when resuming: no line changes


@contextmanager
def open_output(
    path: Path | None,
    stdout: TextIO | None,
    config: TranslateConfig,
    models: Sequence[Path],
    options: Mapping[str, bool],
    say: Say,
) -> Iterator[IO[bytes] | ResumableFile]:
    """Yield standard output if path is None, or a file that gets its name once it is complete.

    With output.resume it keeps the recorded lines if the job is interrupted, and this is reported.
    stdout: None if it is closed. models, options: a resumed job must have the same; options are those of the command
    line that are not settings. say: receives notes.
    """
    if path and config.output.resume:
        with resumable_file(path, identity_of(config, models, options)) as file:
            before = file.state
            if before:
                say(f"resuming after {count_text(before['lines'], 'line')} in {file.path}")
            try:
                yield file
            except BaseException as error:
                if file.state and (file.state != before or isinstance(error, KeyboardInterrupt)):
                    say(f"note: {file.state['lines']} lines are kept in {file.path}; the same command continues there")
                raise
    else:
        if path and record_path(path.resolve()).exists():
            say(f"note: an interrupted job has left a part of {path}: resume=true continues it, and this begins again")
        with written_whole(path, stdout) as stream:
            yield stream


@contextmanager
def written_whole(path: Path | None, stdout: TextIO | None) -> Iterator[IO[bytes]]:
    """Yield standard output if path is None, or a file that gets its name once it is complete."""
    if path is None:
        if stdout is None:
            raise DataError("standard output is closed; name a file with -o")
        yield stdout.buffer
        stdout.buffer.flush()
    else:
        with whole_file(path) as stream:
            yield stream


def identity_of(config: TranslateConfig, models: Sequence[Path], options: Mapping[str, bool]) -> dict[str, Any]:
    """Return everything besides the input that the output depends on."""
    from tolka.formats.hub import local_folder
    from tolka.model_directory.settings import digest

    settings = {f"{group}.{key}": value for group in vars(config) for key, value in asdict(vars(config)[group]).items()}
    kept = {key: value for key, value in settings.items() if key not in _ONLY_SPEED}
    files = {f"search.{key}": getattr(config.search, key) for key in ("glossary", "banned")}
    files["input.memory"] = config.input.memory
    # By content, since a glossary may be edited between two calls.
    contents = {f"the file {key}": digest_of(user_path(path)) for key, path in files.items() if path}
    # Models by content as well: a copy in another folder is the same one.
    return {
        "the model": [digest(local_folder(model)) for model in models],
        **options,
        **kept,
        **contents,
        "tolka's version": __version__,
    }


class Journal:
    """Records the progress of a job, so that an interrupted one can be resumed.

    done: lines that the interrupted job finished. tally: counts that it recorded.
    """

    def __init__(self, out: IO[bytes] | ResumableFile, window: int) -> None:
        """out: nothing is recorded unless it is a ResumableFile. window: lines of a full window."""
        self._file = out if isinstance(out, ResumableFile) else None
        self._window = window
        self._digest = hashlib.sha256()
        self._recorded = self._file.state if self._file else {}
        self.done = int(self._recorded.get("lines", 0))
        self.tally: dict[str, Any] = self._recorded.get("tally", {})

    def remaining(self, rows: Iterator[Pair]) -> Iterator[Pair]:
        """Return the rows after those that are done; DataError if these have changed since."""
        if self._file and self.done:
            count = self._count(islice(rows, self.done))
            if count != self.done or self._digest.hexdigest() != self._recorded["digest"]:
                raise DataError(
                    f"the first {self.done} lines of the input are not those of the interrupted job: give it what it "
                    f"read, or remove {self._file.path} to begin again"
                )
        return rows

    def _count(self, rows: Iterable[Pair]) -> int:
        """Return the number of rows, and add them to the digest."""
        count = 0
        for row in rows:
            self._digest.update(f"{row.source}\0{row.target}\n".encode())
            count += 1
        return count

    def record(self, window: Sequence[Pair], tally: Mapping[str, Any]) -> None:
        """Record that a window is done, if it is a full one."""
        # A shorter window is the last one, or ends at an error. Without it, a resumed job has the windows, and so the
        # batches and translations, of an uninterrupted one.
        if self._file and len(window) == self._window:
            self.done += self._count(window)
            self._file.record({"lines": self.done, "digest": self._digest.hexdigest(), "tally": dict(tally)})
