"""Measure mt-serve under load: throughput beside mt-translate's, latencies, memory, wrong answers, stops and reloads.

    python benchmarks/serve.py MODEL TEXT [--seconds 60] [--clients 32] [--stops 0]

TEXT: source lines. The clients send 1 to 40 of them at once, in all ways that the addresses take; some leave before the
answer, and some send what is damaged or too large. --stops N: in place of the load, start a server under load N times,
open its models again, and stop it. The machine computes for the clients too.
"""

import argparse
import asyncio
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx

import tolka
from tolka.config.translate_command import translate_config

_START = "import sys; from tolka.cli import mt_serve; mt_serve()"
_ROUNDS = 3
_SHORT = 1.0  # seconds after which a client that leaves has gone, at most


class Server:
    """A server in a process of its own, on a port that is free."""

    def __init__(self, model: Path, *options: str) -> None:
        command = [sys.executable, "-c", _START, str(model), "--port", "0", *options]
        begun = time.perf_counter()
        self.log = tempfile.NamedTemporaryFile("r", suffix=".log")  # noqa: SIM115  (until the process ends)
        self.process = subprocess.Popen(command, stderr=open(self.log.name, "w"))  # noqa: SIM115
        while not (found := re.search(r"^(\S+) answers;", Path(self.log.name).read_text(), re.MULTILINE)):
            if self.process.poll() is not None:
                raise SystemExit(f"the server ended with {self.process.wait()}: {self.log.read()}")
            time.sleep(0.02)
        self.address = found[1]
        self.start_seconds = time.perf_counter() - begun

    @property
    def memory(self) -> float:
        """Resident memory in MiB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
        """Return the exit code, and the seconds that stopping took."""
        begun = time.perf_counter()
        self.process.send_signal(number)
        return self.process.wait(60), time.perf_counter() - begun


@dataclass
class Tally:
    """What came of requests. unlike: answers that differ from those of mt-translate; foreign: those of other lines."""

    sentences: int = 0
    seconds: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    unlike: int = 0
    foreign: int = 0
    wrong_errors: list[str] = field(default_factory=list)


async def client(address: str, known: dict[str, str], until: float, seed: int, tally: Tally, wild: bool) -> None:
    """Send requests until a time. known: lines and their translations. wild: whether some are no good ones."""
    draw, lines, all_texts = random.Random(seed), list(known), set(known.values())
    async with httpx.AsyncClient(base_url=address, timeout=120) as http:
        languages = (await http.get("/languages")).json()
        source = next(each["code"] for each in languages if each["targets"])
        target = next(each["targets"][0] for each in languages if each["targets"])
        while time.perf_counter() < until:
            texts = draw.choices(lines, k=round(40 ** draw.random()))
            way, begun = draw.random(), time.perf_counter()
            if wild and way < 0.03:  # damaged
                response = await http.post(
                    "/translate", content=b'{"q": "', headers={"content-type": "application/json"}
                )
                expected = 400
            elif wild and way < 0.05:  # too large
                response = await http.post("/translate", json={"q": "a " * 10**6, "source": source, "target": target})
                expected = 413
            elif wild and way < 0.1:  # somebody who leaves
                try:
                    body = {"q": texts, "source": source, "target": target}
                    await asyncio.wait_for(http.post("/translate", json=body), draw.random() * _SHORT)
                except TimeoutError:
                    tally.statuses["left"] += 1
                continue
            else:
                expected = 200
                if way < 0.4:
                    body = {"q": texts, "source": source, "target": target}
                    response = await http.post("/translate", json=body)
                elif way < 0.7:
                    texts = texts[:1]
                    response = await http.post("/translate", data={"q": texts[0], "source": source, "target": target})
                else:
                    body = {"texts": texts, "src_lang": source, "tgt_lang": target}
                    response = await http.post("/translate", json=body)
            tally.statuses[str(response.status_code)] += 1
            if response.status_code != expected:
                tally.wrong_errors.append(f"{response.status_code} for {expected}: {response.text[:200]}")
            if response.status_code == 200:
                tally.seconds.append(time.perf_counter() - begun)
                found = response.json().get("translatedText") or response.json()["translations"]
                found = [found] if isinstance(found, str) else found
                tally.sentences += len(texts)
                if len(found) != len(texts):
                    tally.wrong_errors.append(f"{len(found)} translations for {len(texts)} texts")
                for text, translation in zip(texts, found, strict=False):
                    tally.unlike += translation != known[text]
                    tally.foreign += translation != known[text] and translation in all_texts


async def load(
    server: Server, known: dict[str, str], seconds: float, clients: int, wild: bool
) -> tuple[Tally, list[float]]:
    """Return what came of requests of several clients at once, and the memory of the server at each second."""
    tally, memory = Tally(), list[float]()
    until = time.perf_counter() + seconds
    work = [asyncio.create_task(client(server.address, known, until, seed, tally, wild)) for seed in range(clients)]
    while not all(task.done() for task in work):
        memory.append(server.memory)
        await asyncio.sleep(1)
    for result in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(result, httpx.TransportError):
            tally.statuses["no connection"] += 1  # as the server was stopped
        elif isinstance(result, BaseException):
            raise result
    return tally, memory


def measure(options: argparse.Namespace, known: dict[str, str], translate: Callable[[], float]) -> None:
    """Print what a server does under load. translate: has mt-translate translate; returns sentences a second."""
    server = Server(options.model, *options.settings)
    first = server.memory
    asyncio.run(load(server, known, 10, options.clients, wild=False))  # buffers and caches are there
    warm, offline, rates = server.memory, [translate()], list[float]()
    parts, memory = list[Tally](), list[float]()
    for _ in range(_ROUNDS):  # in turn, as the machine's other work changes
        begun = time.perf_counter()
        tally, used = asyncio.run(load(server, known, options.seconds / _ROUNDS, options.clients, not options.tame))
        rates.append(tally.sentences / (time.perf_counter() - begun))
        offline.append(translate())
        parts.append(tally)
        memory += used
    time.sleep(15)
    after = server.memory
    code, stopping = server.stop()
    statuses = sum((part.statuses for part in parts), Counter[str]())
    errors = [error for part in parts for error in part.wrong_errors]
    quantiles = statistics.quantiles([each for part in parts for each in part.seconds], n=100)
    ratios = [2 * rate / sum(offline[n : n + 2]) for n, rate in enumerate(rates)]
    print(f"started in {server.start_seconds:.2f} s; stopped with {code} in {stopping:.2f} s")
    print(f"requests: {dict(statuses)}; errors that are not the client's: {len(errors)} {errors[:3]}")
    print(
        f"{statistics.median(rates):.0f} sentences a second, {statistics.median(ratios):.2f} of mt-translate's "
        f"({', '.join(f'{each:.2f}' for each in ratios)}); p50 {quantiles[49]:.3f} s, p95 {quantiles[94]:.3f} s"
    )
    unlike, foreign = sum(part.unlike for part in parts), sum(part.foreign for part in parts)
    print(f"answers that differ from mt-translate's: {unlike}; of another line: {foreign}")
    thirds = [statistics.mean(part) for part in (memory[: len(memory) // 3], memory[-len(memory) // 3 :])]
    print(
        f"memory in MiB: {first:.0f} at the start, {warm:.0f} after 10 s, {thirds[0]:.0f} in the first and "
        f"{thirds[1]:.0f} in the last third, {max(memory):.0f} at most, {after:.0f} 15 s after the load"
    )
    print(f"log: {' | '.join(server.log.read().splitlines()[-5:])[:1000]}")


def stop_often(options: argparse.Namespace, known: dict[str, str]) -> None:
    """Print how starting, opening the models again under load and stopping went, many times."""
    codes, seconds, errors = Counter[int](), list[float](), 0
    for number in range(options.stops):
        server = Server(options.model, *options.settings)

        async def under_load(server: Server = server, number: int = number) -> tuple[Tally, int, float]:
            work = asyncio.create_task(load(server, known, 2.5, 8, wild=False))
            await asyncio.sleep(0.5)
            server.process.send_signal(signal.SIGHUP)
            await asyncio.sleep(1.2)
            if number % 2:  # stopped while it answers; the others when the load has ended
                code, took = await asyncio.to_thread(server.stop, (signal.SIGTERM, signal.SIGINT)[number // 2 % 2])
                tally, _ = await work
                return tally, code, took
            tally, _ = await work
            return tally, *(await asyncio.to_thread(server.stop))

        tally, code, took = asyncio.run(under_load())
        codes[code] += 1
        seconds.append(took)
        errors += len(tally.wrong_errors)
    print(f"{options.stops} stops and reloads: exit codes {dict(codes)}; at most {max(seconds):.2f} s; errors {errors}")


def main() -> None:
    """Parse the arguments, translate the text with mt-translate's code, and measure the server."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("settings", nargs="*", help="key=value, for both")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--stops", type=int, default=0)
    parser.add_argument("--tame", action="store_true", help="send good requests alone")
    options = parser.parse_intermixed_args()
    lines = list(dict.fromkeys(filter(None, options.text.read_text(encoding="utf-8").splitlines())))
    translator = tolka.load(options.model, translate_config(options.settings))
    known = dict(zip(lines, translator(lines), strict=True))

    def translate() -> float:
        begun = time.perf_counter()
        translator(lines)
        return len(lines) / (time.perf_counter() - begun)

    if options.stops:
        stop_often(options, known)
    else:
        measure(options, known, translate)


if __name__ == "__main__":
    main()
