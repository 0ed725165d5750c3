"""Files damaged in every way, and what a reader makes of them in a process of its own with little time and memory."""

import json
import math
import os
import random
import resource
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

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


class Outcome(NamedTuple):
    """What became of a reader. said: the message of its TolkaError. fault: any other end. bytes: more than before."""

    said: str
    fault: str
    seconds: float
    bytes: int


def complaint(read: Callable[[], object]) -> str:
    """Return the message of the TolkaError that a reader raises, "" without one; AssertionError for any other end."""
    (outcome,) = outcomes(lambda case: read(), [0])
    assert not outcome.fault, outcome.fault
    return outcome.said


def outcomes(read: Callable[[int], object], cases: Sequence[int]) -> Iterator[Outcome]:
    """Yield what became of each case, with CPU_SECONDS and with BYTES more than there are.

    The cases run in a fork, as damaged files may also crash libraries, and those after a crash in another one.
    """
    while cases:
        receiving, sending = os.pipe()
        if not (child := os.fork()):
            os.close(receiving)
            with open(sending, "w", encoding="utf-8", errors="backslashreplace") as stream:
                _run(read, cases, stream)
            os._exit(0)
        os.close(sending)
        with open(receiving, encoding="utf-8") as stream:
            found = [Outcome(*json.loads(line)) for line in stream]
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status:
            found.append(Outcome("", f"case {cases[len(found)]}: ended by signal {-status}", 0.0, 0))
        yield from found
        cases = cases[len(found) :]


def _run(read: Callable[[int], object], cases: Sequence[int], stream: Any) -> None:
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    os.dup2(sys.stderr.fileno(), 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for case in cases:
        said, fault, started_at, before = "", "", time.process_time(), _memory("VmRSS")
        with open("/proc/self/clear_refs", "w") as peak:
            peak.write("5")
        _limit(resource.RLIMIT_CPU, int(started_at) + CPU_SECONDS + 1)
        _limit(resource.RLIMIT_AS, _memory("VmSize") + BYTES)
        signal.alarm(WAITING_SECONDS)  # for what reads a pipe that nobody writes
        try:
            read(case)
        except TolkaError as error:
            said = str(error)
            fault = said if len(said.splitlines()) > 1 else ""
        except BaseException:
            fault = traceback.format_exc()
        _limit(resource.RLIMIT_AS, resource.RLIM_INFINITY)
        used = time.process_time() - started_at, _memory("VmHWM") - before
        print(json.dumps([said, fault and f"case {case}: {fault}"[-3000:], *used]), file=stream, flush=True)


def _limit(kind: int, value: int) -> None:
    resource.setrlimit(kind, (value, resource.getrlimit(kind)[1]))


def _memory(name: str) -> int:
    """Return a size of this process in bytes: VmSize, VmRSS, or VmHWM, the largest of the latter."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
