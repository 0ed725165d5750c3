"""Shared parts of the commands: exit codes, one-line errors, and help read from the YAML files."""

import argparse
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from errno import EACCES, EROFS
from pathlib import Path
from typing import Any, NoReturn

from tolka.errors import ConfigError, StoppedError, TolkaError
from tolka.system import interrupts
from tolka.system.package_data import config_dir
from tolka.system.surrogates import printable
from tolka.version import __version__

DONE, FAILED = 0, 1
# A file or folder while it is written, and its name in the end.
_TEMPORARY = re.compile(r"(^|/)\.([^/]+?)(?:\.[0-9a-f]{8}(?:\.partial)?|\.partial(?:\.json)?)(?=/|$)")
MODEL_HELP = "a model directory, or a run's folder (its best/); several, joined by commas, translate together"

# Command -> the YAML files with its settings; the first has the name of its module.
_SETTINGS_OF = {
    "mt-train": ("train", "recipe"),
    "mt-translate": ("translate",),
    "mt-eval": ("evaluate",),
    "mt-serve": ("serve",),
}


def own_process(command: Callable[[Sequence[str]], int]) -> NoReturn:
    """Run a command in a process that does nothing else: a signal at its very end changes nothing."""
    interrupts.handle_signals_until_exit()
    while (unused := os.open(os.devnull, os.O_RDWR)) < 3:  # closed, as by 2>&-: what C++ prints is for no file
        pass
    os.close(unused)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # until the process ends
    interrupts.exit_process(exit_code(command, sys.argv[1:]))


def exit_code(command: Callable[[Sequence[str]], int], arguments: Sequence[str]) -> int:
    """Run a command; every error that a user can cause becomes one line on stderr and an exit code.

    0 done, 1 failed, 2 wrong usage, 130 interrupted, 143 and 129 after SIGTERM and SIGHUP. A reader that closes the
    pipe ends the command in silence.
    """
    # Read once, when torch loads GNU's OpenMP: by default a thread that waits for another one spins for milliseconds,
    # and a busy neighbour on the machine slows training down 4.5 times; with this, 2 times, and 1 % when alone.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    # torch reports a lost connection by an exception, and by dozens of lines with addresses in its C++ code.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")
    # Python's, of the semaphores of processes that were killed.
    os.environ.setdefault("PYTHONWARNINGS", "ignore::UserWarning:multiprocessing.resource_tracker")
    # For plugins: a console script's path lacks the current folder. Last, so that it hides no installed module.
    with suppress(FileNotFoundError):  # somebody has removed it
        sys.path.append(os.getcwd())
    code, words, stop = FAILED, "", 0
    try:
        interrupts.check()
        code, words = _outcome(command, arguments)
    except BaseException as error:
        # A module written in C turns an interrupted import into an ImportError, with the interrupt as its cause.
        causes = error, error.__cause__ or error.__context__
        if not interrupts.received() and not any(isinstance(each, KeyboardInterrupt) for each in causes):
            raise
        stop = signal.SIGINT
    # Also if its exception was swallowed or replaced by another one: the caller asked for an end, and shall know of it.
    if stop := interrupts.received() or stop:
        code, words = 128 + stop, interrupts.last_line(stop)
    if words:
        interrupts.print_last_line(words)
    return code


def _outcome(command: Callable[[Sequence[str]], int], arguments: Sequence[str]) -> tuple[int, str]:
    """Return the exit code, and the line that explains it if it is not 0."""
    try:
        try:
            code = command(arguments)
        except SystemExit as done:  # argparse's, after --help and --version
            code = int(done.code or 0)
        if sys.stdout is not None:
            sys.stdout.flush()  # a closed pipe or a full disk shows now, not after the exit code is settled
        return code, ""
    except TolkaError as error:
        # Of several processes that train together, one prints the error for all.
        if error.reported:
            return error.exit_code, ""
        if isinstance(error, StoppedError):  # what somebody has asked for is no error
            return error.exit_code, _in_one_line(error)
        return _failure(error, error.exit_code)
    except (MemoryError, RuntimeError) as error:
        # "allocate" is of the CPU's allocator ("can't allocate memory") and of NumPy's ("Unable to allocate").
        # torch reports a full memory by its own kind of RuntimeError, which cannot be named without importing torch.
        if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or "allocate" in str(error):
            advice = "lower batching.tokens (training) or decoding.tokens (translating), or take a smaller model"
            return _failure(f"out of memory; {advice}")
        raise
    except BrokenPipeError:
        _discard_stdout()
        return DONE, ""
    except OSError as error:
        if not error.filename:  # of a stream, likely stdout on a full disk
            _discard_stdout()
        name = _TEMPORARY.sub(r"\1\2", str(error.filename or "input or output"))
        if os.path.isfile(name) and not os.access(name, os.R_OK):
            return _failure(f"{name}: cannot be read ({error.strerror or error})")
        # As in a container whose current folder is read-only: runs/ is below that folder by default.
        where = "; write elsewhere: run.dir and run.prepared, or -o" if error.errno in (EROFS, EACCES) else ""
        return _failure(f"{name}: {error.strerror or error}{where}")


def _failure(error: object, code: int = FAILED) -> tuple[int, str]:
    return code, f"error: {_in_one_line(error)}"


def _in_one_line(error: object) -> str:
    # A file's name may have escape characters, which would change what the terminal shows.
    return printable(str(error), kept="\n").replace("\n", " ")


def _discard_stdout() -> None:
    """Redirect stdout to nowhere: otherwise Python would complain again when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors look like all others, and whose help ends with examples and settings."""

    def __init__(self, prog: str, description: str, usage: str | None = None) -> None:
        super().__init__(prog, usage, description, formatter_class=argparse.RawDescriptionHelpFormatter)
        if prog in _SETTINGS_OF:
            self.add_argument("--version", action="version", version=__version__)

    def format_help(self) -> str:
        """Return the help, with the text of the command's .txt file and with its settings."""
        names = _SETTINGS_OF.get(self.prog, ())
        examples = ["\n" + Path(__file__).with_name(f"{name}.txt").read_text(encoding="utf-8") for name in names[:1]]
        return "".join([super().format_help(), *examples, *map(settings_help, names)])

    def parse_intermixed_args(self, args: Sequence[str]) -> argparse.Namespace:  # type: ignore[override]
        """Parse options and settings in any order; ConfigError for another program's option names the setting."""
        options, unknown = self.parse_known_intermixed_args(args)
        if unknown:
            from tolka.config.foreign_names import meaning

            flag, _, value = unknown[0].partition("=")
            after = args[args.index(unknown[0]) + 1 :]
            # --src-lang=en, or --src-lang en where the next argument is neither a setting nor an option.
            value = value or (after[0] if after and "=" not in after[0] and after[0][:1] != "-" else "")
            if known := meaning(flag, value, _SETTINGS_OF.get(self.prog, ("",))[0]):
                raise ConfigError(f"{flag} is not an option; settings are key=value.{known}")
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return options

    def error(self, message: str) -> NoReturn:
        """Raise ConfigError instead of printing a usage text of several lines."""
        raise ConfigError(f"{message}; {self.prog} --help shows what is allowed")


def separate_files(inputs: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Separate files from settings. What exists is a file, whatever its name; otherwise key=value is a setting."""
    files, settings = [], []
    for text in inputs:
        # lexists: a link to nothing is a file, too, and its error says so.
        if re.match(r"[a-z][\w.]*=", text) and not os.path.lexists(text):
            settings.append(text)
        else:
            files.append(Path(text))
    return files, settings


def settings_help(name: str) -> str:
    """Return every setting of configs/<name>.yaml with its default and help line, read from the files as text."""
    # As text, since a YAML parser drops the comments, which are the help; and without imports, to answer in 0.3 s.
    text = (config_dir() / f"{name}.yaml").read_text(encoding="utf-8")
    blocks = []
    for group, default in re.findall(r"^  - (\w+): (\w+)$", text, flags=re.MULTILINE):
        files = sorted(path.stem for path in (config_dir() / group).glob("*.yaml"))
        chosen = "" if default == "null" else f" (default {default})"
        blocks.append(f"{group}={'|'.join(files)}{chosen}" if len(files) > 1 or default == "null" else f"{group}:")
        if group != "experiment":
            listed: set[str] = set()
            for name_of_file in sorted(files, key=lambda name: name != default):
                keys = _keys(config_dir() / group / f"{name_of_file}.yaml", group, listed)
                blocks += [f"  with {group}={name_of_file}:"] if keys and name_of_file != default else []
                blocks += keys
        blocks.append("")
    return "\n".join(blocks)


def _keys(path: Path, group: str, listed: set[str]) -> list[str]:
    """Return '  group.key=default' and its help for each key of a file that is not in `listed` yet; add it there."""
    entries = re.findall(r"^# (.*)\n(\w+): (.*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    # `name` is the choice in a group itself, except that a run has one.
    new = [entry for entry in entries if entry[1] not in listed and (entry[1] != "name" or group == "run")]
    listed |= {key for _, key, _ in new}
    return [f"  {group}.{key}={value}\n        {text}" for text, key, value in new]


def print_json(value: Any) -> None:
    """Print a result for programs."""
    from tolka.system.number_format import json_text

    print(json_text(value, ensure_ascii=False, indent=1))
