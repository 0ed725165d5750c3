"""How fast tolka trains and translates, beside others and beside the machine's own limit.

    python benchmarks CORPUS WORK                                  # tolka and the frozen plain loop
    python benchmarks CORPUS WORK --python opennmt-py=ONMT/bin/python --python marian=HF/bin/python ...
    python benchmarks CORPUS WORK --rounds 3 --model runs/multi30k --python ctranslate2=CT2/bin/python ...

CORPUS holds train and test_2016_flickr, as .en and .de (Multi30k); the word made-up stands for a text of made-up words.
WORK keeps what is prepared. Each system is a process of its own in the Python that is named for it; tolka and plain run
in this one. They take turns, round after round.

Training (tolka, plain, marian, opennmt-py, eole, joeynmt): printed as a table, and kept in WORK/training.json: median,
least and most target tokens a second over all windows, the ratio of the medians, the share of the machine's limit in
matrix products, peak memory, seconds from the command to the first update and to the last. The first windows of a round
warm up and do not count.

Decoding, with --model (tolka, ctranslate2, huggingface): all have the weights of that run of tolka's; sentences a
second, greedy and with a beam of 5, kept in WORK/decoding.json. With --model nothing is trained.
"""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import decoding_speed
import made_up
import training_speed
from work import FAMILIES, flop_per_target_token, prepare

HERE = Path(__file__).parent
SYSTEMS = [*training_speed.SYSTEMS, *(name for name in decoding_speed.KINDS if name not in training_speed.SYSTEMS)]


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--python", action="append", default=[], metavar="SYSTEM=PYTHON", help="also measure this one")
    parser.add_argument("--model", type=Path, metavar="RUN", help="measure decoding with this model instead")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=60, help="of each round")
    parser.add_argument("--window", type=int, default=10, help="updates of which a speed is the mean")
    parser.add_argument("--warm-up", type=int, default=2, help="windows of a round that do not count")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--precision", action="append", choices=["fp32", "bf16"], help="of training; fp32 unless named")
    parser.add_argument(
        "--family", choices=FAMILIES, default="transformer", help="for all but this one: tolka and plain"
    )
    parser.add_argument("--set", action="append", default=[], metavar="key=value", help="of tolka's mt-train")
    parser.add_argument("--test", default="test_2016_flickr")
    options = parser.parse_args()
    options.pythons = {"tolka": sys.executable, "plain": sys.executable}
    for text in options.python:
        name, _, python = text.partition("=")
        if name not in SYSTEMS:
            parser.error(f"--python {text}: {name} is none of {', '.join(SYSTEMS)}")
        options.pythons[name] = os.path.abspath(python)
    return options


def machine(threads: int) -> dict[str, float]:
    """Its limits, now: others may take a part of it, so that it is looked at before and after, and the most counts."""
    found: dict[str, float] = json.loads(
        subprocess.check_output([sys.executable, str(HERE / "limits.py"), str(threads)])
    )
    print("the machine: " + ", ".join(f"{name} {value:.0f}" for name, value in found.items()), flush=True)
    return found


def main() -> None:
    """Rounds of all systems in turn, then the table."""
    options = parsed()
    folder = options.work.resolve()
    if str(options.corpus) == "made-up":
        options.corpus, options.test = folder / "made-up", "test"
        made_up.write(options.corpus)
    work = prepare(options.corpus, folder, options.test)
    if options.model is not None:
        model = options.model / "best" if (options.model / "best").is_dir() else options.model
        found = decoding_speed.measure(options.pythons, model.resolve(), folder, options.rounds, options.threads)
        print(f"{options.rounds} rounds, {options.threads} threads\n\n{decoding_speed.table(found)}")
        facts = {name: {beam: asdict(one) for beam, one in beams.items()} for name, beams in found.items()}
        (folder / "decoding.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
        return
    kept: dict[str, Any] = {"limits": [machine(options.threads)]}
    pythons = {name: python for name, python in options.pythons.items() if name in training_speed.SYSTEMS}
    plan = training_speed.Plan(
        rounds=options.rounds,
        updates=options.updates,
        window=options.window,
        warm_up=options.warm_up,
        threads=options.threads,
        family=options.family,
        settings=options.set,
    )
    for precision in options.precision or ["fp32"]:
        measured = training_speed.measure(pythons, work, plan, precision)
        kept[precision] = {name: asdict(one) for name, one in measured.items()}
        flop = flop_per_target_token(work, options.family)
        kept["limits"].append(machine(options.threads))
        limit = max(found[f"{precision} square GFLOP/s"] for found in kept["limits"])
        table = training_speed.table(measured, precision, limit, flop, options.updates)
        print(f"\n{table}", flush=True)
        (folder / "training.json").write_text(json.dumps(kept, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
