"""What the commands share: exit codes, one-line errors, help that is read from the YAML files."""

import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tolka.errors import ConfigError, TolkaError
from tolka.resources import config_dir

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


def guarded(command: Callable[[Sequence[str]], int], arguments: Sequence[str]) -> int:
    """Run a command; every error a user can cause becomes one line on stderr and an exit code.

    0 done, 1 failed, 2 wrong usage, 130 interrupted. A reader that closes the pipe ends the command in silence.
    """
    # Read once, when torch loads GNU's OpenMP: by default a thread that waits for another one spins for milliseconds,
    # and a busy neighbour on the machine slows training down 4.5 times; with this, 2 times, and 1 % when alone.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    try:
        return command(arguments)
    except ConfigError as error:
        return _fail(error, USAGE)
    except TolkaError as error:
        return _fail(error, FAILED)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Python would complain once more when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except OSError as error:
        return _fail(f"{error.filename or 'input or output'}: {error.strerror or error}", FAILED)


def _fail(error: object, code: int) -> int:
    print(f"error: {error}", file=sys.stderr)
    return code


def settings_help(name: str) -> str:
    """Every setting of configs/<name>.yaml with its default and help line, read from the files as text."""
    text = (config_dir() / f"{name}.yaml").read_text(encoding="utf-8")
    blocks = []
    for group, default in re.findall(r"^  - (\w+): (\w+)$", text, flags=re.MULTILINE):
        files = sorted(path.stem for path in (config_dir() / group).glob("*.yaml"))
        chosen = "" if default == "null" else f" (default {default})"
        blocks.append(f"{group}={'|'.join(files)}{chosen}" if len(files) > 1 or default == "null" else f"{group}:")
        if default != "null":
            blocks += _keys(config_dir() / group / f"{default}.yaml", group)
        blocks.append("")
    return "\n".join(blocks)


def _keys(path: Path, group: str) -> list[str]:
    """'  group.key=default' and what it is, for each key of a file."""
    found = re.findall(r"^# (.*)\n(\w+): (.*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [f"  {group}.{key}={value}\n        {text}" for text, key, value in found if key != "name" or group == "run"]
