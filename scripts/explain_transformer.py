"""Every figure and every measured number of docs/transformer.md.

    python scripts/explain_transformer.py --out docs/figures

Trains small models on the embedded corpus. `--only` chooses experiments, `--redraw` makes figures and tables from
DIR/numbers.json without measuring. Markdown tables go to stdout, figures and numbers.json into DIR. Needs the extra
`plots`.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType

import torch

from tolka.system.memory import keep_freed_memory
from transformer_figures import copying, facts, forcing, norms, positions, scaling
from transformer_figures.common import Numbers, Sample

EXPERIMENTS: dict[str, ModuleType] = {
    "facts": facts,
    "scaling": scaling,
    "norms": norms,
    "positions": positions,
    "copying": copying,
    "forcing": forcing,
}
WITHOUT_SAMPLE = ("facts", "scaling", "copying")


def measure(name: str, cache: Path) -> Numbers:
    """One experiment's numbers."""
    started_at = time.perf_counter()
    arguments = () if name in WITHOUT_SAMPLE else (Sample.open(cache),)
    numbers: Numbers = EXPERIMENTS[name].measure(*arguments)
    print(f"{name}: {time.perf_counter() - started_at:.0f} s", file=sys.stderr)
    return numbers


def read(path: Path) -> Numbers:
    """What earlier calls have measured."""
    found: Numbers = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def rounded(value: object) -> object:
    """Six significant digits: what another machine could agree on, and more than any table shows."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def tables(numbers: Numbers) -> dict[str, str]:
    """Name -> markdown, of all that has been measured."""
    return {
        name: text
        for experiment, module in EXPERIMENTS.items()
        if experiment in numbers
        for name, text in module.tables(numbers[experiment]).items()
    }


def main() -> None:
    """Measure, store, draw, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--only", nargs="+", choices=EXPERIMENTS, default=list(EXPERIMENTS))
    parser.add_argument("--redraw", action="store_true", help="measure nothing")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "numbers.json"
    keep_freed_memory()
    torch.set_num_threads(1)  # sums in the same order, however many cores there are
    with tempfile.TemporaryDirectory() as cache:
        for name in options.only:
            if not options.redraw:
                found = rounded(measure(name, Path(cache)))
                numbers = {**read(path), name: found}
                path.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
            EXPERIMENTS[name].draw(read(path)[name], options.out)
            for title, text in EXPERIMENTS[name].tables(read(path)[name]).items():
                print(f"{title}\n\n{text}")


if __name__ == "__main__":
    main()
