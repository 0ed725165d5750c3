"""Model directories of each format that tolka has written, kept so that every later version reads them.

    python tests/kept/model_formats/samples.py    # writes those of the present format; only for a new one

The runs in `../interrupted` have models of the same format with weights in fp32 and with an adapter. Here is what else
a model directory may be: `int8` has quantised weights and a calibration, `ctranslate2` was exported.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

KEPT = Path(__file__).parent
TEXT = KEPT.parent / "text"
TRAINED = KEPT.parent / "interrupted" / "post_norm_adamw"
NAMES = ("int8", "ctranslate2")


def _command(name: str, *given: str) -> str:
    return subprocess.run(
        [Path(sys.executable).with_name(name), *given], capture_output=True, text=True, check=True
    ).stdout


def _make(folder: Path) -> None:
    run = shutil.copytree(TRAINED, folder / "run")
    _command("mt-train", "quantise", str(run), "-o", str(folder / "int8"))
    _command(
        "mt-eval", "calibrate", str(folder / "int8"),
        f"source={TEXT / 'train.xa'}", f"reference={TEXT / 'train.xb'}",
    )  # fmt: skip
    _command("mt-train", "export", str(run), "--to", "ctranslate2", "-o", str(folder / "ctranslate2"))
    for name in NAMES:
        made = f"{name}-{format_of(folder / name)}"
        shutil.rmtree(KEPT / made, ignore_errors=True)
        shutil.copytree(folder / name, KEPT / made)
        (KEPT / f"{made}.xb").write_text(_command("mt-translate", str(folder / name), str(TEXT / "test.xa")))


def format_of(model: Path) -> int:
    return int(json.loads((model / "manifest.json").read_text(encoding="utf-8"))["format"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        _make(Path(place))
