"""Files damaged in every way, and what a reader makes of them in a process of its own with little time and memory."""

import json
import math
import os
import random
import resource
import signal
import struct
import sys
import traceback
from collections.abc import Callable
from typing import Any

import yaml

from tolka.errors import TolkaError

CPU_SECONDS, WAITING_SECONDS, BYTES = 5, 60, 500 * 2**20
ODD: list[Any] = [None, True, 0, -1, 3, 2**31, 10**30, 0.5, math.nan, math.inf, [], {}, [1], ["x"], [[]], {"x": 1}]
ODD += ["", "x", "7", "a\x1b[31m\u202eb", "\ud800", "/etc/passwd", "../x", "\0", [math.nan] * 2, "x" * 5000]


def damaged(content: bytes, name: str, draw: random.Random) -> bytes:
    """Return content with other bytes, cut off, or with a value of its structure removed or replaced."""
    kind = name.rpartition(".")[2]
    if draw.randrange(3):
        if kind == "json":
            return json.dumps(_edited(json.loads(content), draw)).encode()
        if kind == "jsonl":
            lines = [json.dumps(_edited(json.loads(line), draw)) for line in content.splitlines()]
            return "".join(f"{line}\n" for line in lines).encode()
        if kind == "yaml":
            return yaml.safe_dump(_edited(yaml.safe_load(content), draw)).encode("utf-8", "surrogatepass")
        if kind == "safetensors":
            (size,) = struct.unpack("<Q", content[:8])
            header = json.dumps(_edited(json.loads(content[8 : 8 + size]), draw)).encode()
            return struct.pack("<Q", len(header)) + header + content[8 + size :]
    changed = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        place = draw.randrange(min(len(changed), draw.choice([16, 400, 10**9])))  # headers are at the beginning
        changed[place] = draw.choice([draw.randrange(256), changed[place] ^ 1 << draw.randrange(8), 0, 255])
    if draw.randrange(3) == 0:
        place = draw.randrange(len(changed))
        changed[place:] = draw.choice([b"", bytes(len(changed) - place), changed[:place]])
    return bytes(changed)


def _edited(values: Any, draw: random.Random) -> Any:
    """Return a JSON value with one to three of its parts removed, replaced or doubled."""
    top = {"top": values}
    for _ in range(draw.randint(1, 3)):
        place: Any = top
        while True:
            if not (keys := list(place) if isinstance(place, dict) else list(range(len(place)))):
                break
            key = draw.choice(keys)
            if isinstance(place[key], dict | list) and place[key] and (place is top or draw.randrange(4)):
                place = place[key]
                continue
            action = draw.randrange(4)
            if action == 0 and place is not top:
                del place[key]
            elif action == 1 and isinstance(place, list):
                place.insert(key, place[key])
            elif action == 2 and isinstance(place[key], int | float) and not isinstance(place[key], bool):
                number = place[key]
                place[key] = draw.choice([-number, number + 1, number * 10**6, 0, float(number), str(number)])
            else:
                place[key] = draw.choice(ODD)
            break
    return top.get("top")


def complaint(read: Callable[[], object]) -> str:
    """Return the message of the TolkaError that a reader raises, "" without one; AssertionError for any other end.

    It runs in a fork, as damaged files may also crash libraries, with CPU_SECONDS and with BYTES more than there are.
    """
    receiving, sending = os.pipe()
    if not (child := os.fork()):
        os.close(receiving)
        code, said = _result(read)
        os.write(sending, said.encode("utf-8", "backslashreplace")[-4000:])
        os._exit(code)
    os.close(sending)
    with os.fdopen(receiving, "rb") as stream:
        said = stream.read().decode()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == 0, said or f"ended by signal {-status}"
    assert len(said.splitlines()) <= 1, said
    return said


def _result(read: Callable[[], object]) -> tuple[int, str]:
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    os.dup2(sys.stderr.fileno(), 2)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(WAITING_SECONDS)  # for what reads a pipe that nobody writes
    with open("/proc/self/statm") as pages:
        size = int(pages.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + BYTES, size + BYTES))
    try:
        read()
    except TolkaError as error:
        return 0, str(error)
    except BaseException:
        return 1, traceback.format_exc()
    return 0, ""
