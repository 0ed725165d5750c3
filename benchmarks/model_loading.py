"""Size and loading time of a model directory, in fp32, in int8 quantised when loaded, and stored in int8.

    python benchmarks/model_loading.py MODEL [transformer_base ...]

A preset's name measures that architecture with random weights and the tokenizer of MODEL. The time is from the folder
to a translator, the median of five processes that have imported everything. Memory is by how much loading raised the
peak (on Linux).
"""

import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import torch

from tolka.model_directory.combine import quantise_model
from tolka.model_directory.read import load_model
from tolka.model_directory.write import snapshot
from tolka.models.base import MODELS

ROUNDS = 5
_LOAD = """
import re, sys, time
import torch
from tolka.search.beam import BeamConfig
from tolka.engines.options import DecodingConfig
from tolka.translation.opening import open_model
from tolka.translation.translator import Translator
import tolka.model_directory.read, tolka.models.transformer, tolka.engines.torch_engine, tolka.models.rnn
torch.set_num_threads(1)
def peak(): return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
before, began = peak(), time.perf_counter()
open_model(sys.argv[1], BeamConfig(), DecodingConfig(device="cpu", precision=sys.argv[2], backend="torch"))
print(time.perf_counter() - began, peak() - before)
"""


def main() -> None:
    model, *presets = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        measured = [(Path(model).name, Path(model))]
        for preset in presets:
            measured.append((preset, Path(name) / preset))
            write_random(Path(model), preset, Path(name) / preset)
        print("| model | weights | MB | s to load | MB of memory |\n|---|---|---|---|---|")
        for label, folder in measured:
            stored = Path(name) / f"{label}-int8"
            quantise_model(folder, stored)
            for weights, where, precision in (
                ("fp32", folder, "fp32"),
                ("int8, quantised when loaded", folder, "int8"),
                ("int8, stored", stored, "fp32"),
            ):
                seconds, memory = loading(where, precision)
                size = load_model(where, or_int8=True).folder.joinpath("model.safetensors").stat().st_size / 1e6
                print(f"| {label} | {weights} | {size:.1f} | {seconds:.2f} | {memory:.0f} |", flush=True)


def write_random(like: Path, preset: str, folder: Path) -> None:
    """Write a model of a preset with random weights and another model's tokenizer."""
    torch.manual_seed(1)
    saved, config = load_model(like), MODELS.presets()[preset]
    tokenizer = saved.tokenizer
    model = config.build(tokenizer.source_size, tokenizer.target_size, tokenizer.shared)
    settings = {**saved.config, "model": asdict(config)}
    snapshot(model, tokenizer, settings, saved.sources, {}, "").write(folder)


def loading(folder: Path, precision: str) -> tuple[float, float]:
    """Return the medians of seconds and of MiB."""
    command = [sys.executable, "-c", _LOAD, str(folder), precision]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True).stdout.split() for _ in range(ROUNDS)]
    seconds, memory = ([float(run[place]) for run in runs] for place in range(2))
    return statistics.median(seconds), statistics.median(memory)


if __name__ == "__main__":
    main()
