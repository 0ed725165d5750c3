"""Decoding: one trained model in several programs, in turn.

Every program has the same weights, the same lines, and ranks hypotheses by its own usual rule; so lengths differ a
little, which the table shows. "Decoding" is from lines to lines, tokenisation included, after the program has loaded
the model and translated two lines: the file for the first time, and again in the same process; "whole process" is the
command as it would be without the latter, from its start to its end.
"""

import functools
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
BEAMS = (1, 5)


@dataclass(frozen=True)
class Program:
    """script: beside this file. python: whose Python runs it. options: at the end of its command line."""

    python: str
    script: str
    options: tuple[str, ...]
    converts: str = ""
    """name of the folder of the model as this program keeps it; none for tolka"""


SIDE_BY_SIDE = {"": "1", ", two batches at once": "2"}  # tolka chooses by itself
KINDS: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {
    "tolka": ("decode_tolka.py", {"fp32": ("decoding.precision=fp32",), "int8": ("decoding.precision=int8",)}),
    "ctranslate2": (
        "decode_ctranslate2.py",
        {f"{kind}{said}": (kind, count) for kind in ("float32", "int8") for said, count in SIDE_BY_SIDE.items()},
    ),
    "huggingface": ("decode_huggingface.py", {"fp32": ()}),
}


def programs(pythons: Mapping[str, str]) -> dict[str, Program]:
    """By name and number format. pythons: of some of KINDS."""
    found = {}
    for name, (script, formats) in KINDS.items():
        for kind, options in formats.items() if name in pythons else ():
            found[f"{name} {kind}"] = Program(pythons[name], script, options, "" if name == "tolka" else name)
    return found


@dataclass
class Decoded:
    """Of one program and beam, each round's seconds: of decoding for the first time and again, and of the whole
    process; of the last one, counts."""

    decoding: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    sentences: int = 0
    tokens: int = 0


@functools.cache
def digest(model: Path) -> str:
    """Of its weights: a converted model is known by them."""
    return hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest()[:16]


def decode(program: Program, model: Path, work: Path, beam: int, threads: int, into: Decoded | None) -> None:
    """One turn; `into` is None where it does not count."""
    with tempfile.TemporaryDirectory() as folder:
        converted = [str(work / f"{program.converts}-{digest(model)}")] if program.converts else []
        command = [program.python, str(HERE / program.script), str(model), *converted, str(work / "test.en")]
        command += [str(Path(folder) / "out"), str(beam), str(threads), *program.options]
        started_at = time.perf_counter()
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        seconds = time.perf_counter() - started_at
    if done.returncode:
        raise SystemExit(f"{program.script} failed:\n{done.stderr[-3000:]}")
    facts = json.loads(done.stdout.splitlines()[-1])
    if into is not None:
        into.decoding.append(facts["seconds"])
        into.again.append(facts["again"])
        into.whole.append(seconds - facts["later"])
        into.sentences, into.tokens = facts["sentences"], facts["tokens"]


def measure(
    pythons: Mapping[str, str], model: Path, work: Path, rounds: int, threads: int
) -> dict[str, dict[int, Decoded]]:
    """All programs in turn. model: a model directory of tolka's. work: holds test.en."""
    chosen = programs(pythons)
    found = {name: {beam: Decoded() for beam in BEAMS} for name in chosen}
    for program in chosen.values():
        decode(program, model, work, 1, threads, None)  # converts, and warms the disk's cache
    for number in range(rounds):
        for beam in BEAMS:
            for name, program in chosen.items():
                decode(program, model, work, beam, threads, found[name][beam])
                seconds = found[name][beam].decoding[-1]
                print(f"round {number + 1}, beam {beam}, {name}: {seconds:.2f} s", file=sys.stderr, flush=True)
    return found


def table(found: Mapping[str, Mapping[int, Decoded]]) -> str:
    """For people: sentences a second, the ratio to the first program's, tokens a second and a sentence."""
    heads = "| program | beam | decoding, first pass: sentences/s | ratio | tokens/s | again: sentences/s | ratio "
    rows = [heads + "| whole process: sentences/s | tokens |", "|" + "---|" * 9]
    for beam in BEAMS:
        reference = next(iter(found.values()))[beam]
        first, again = median(reference.decoding), median(reference.again)
        for name, of_beam in found.items():
            decoded = of_beam[beam]
            seconds, later = median(decoded.decoding), median(decoded.again)
            rates = f"{decoded.sentences / seconds:.0f} | {first / seconds:.2f} | {decoded.tokens / seconds:.0f}"
            steady = f"{decoded.sentences / later:.0f} | {again / later:.2f}"
            length = f"{decoded.tokens / decoded.sentences:.1f}"
            whole = f"{decoded.sentences / median(decoded.whole):.0f}"
            rows.append(f"| {name} | {beam} | {rates} | {steady} | {whole} | {length} |")
    return "\n".join(rows)
