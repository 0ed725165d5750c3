"""Export a Transformer as a folder of Marian, for Firefox, translateLocally and slimt, and compare with their engine.

The engine is Bergamot's, compiled for Node and browsers: the package @browsermt/bergamot-translator of npm. The
environment variable TOLKA_BERGAMOT names its folder.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from tolka.errors import CheckpointError, ConfigError
from tolka.formats.any_model import load_any
from tolka.formats.huggingface.family import Foreign
from tolka.formats.marian.folder import MODEL, MODEL_INFO, MarianFiles, MarianFolder, write_files
from tolka.formats.marian.model_file import OPTIONS
from tolka.interchange.parity import FP32, Side, Threshold, TolkaSide, compare, sample_of
from tolka.model_directory.card import facts_of, model_card
from tolka.model_directory.file_names import CARD
from tolka.model_directory.read import SavedModel
from tolka.model_directory.settings import character_form, direction_of
from tolka.models.options import resolved_options
from tolka.models.transformer.options import TransformerOptions
from tolka.system.atomic import whole_folder
from tolka.system.progress import Say
from tolka.tokenizer.character_rules import with_rules
from tolka.tokenizer.coders import as_line

ENGINE = "TOLKA_BERGAMOT"
_PACKAGE = "@browsermt/bergamot-translator"
_FACTOR = 2  # most tokens of a translation, in those of its source
_SEARCH = {
    "beam-size": 1,
    "max-length-factor": float(_FACTOR),
    "max-length-break": 128,
    "mini-batch-words": 1024,
    "workspace": 128,
    "cpu-threads": 0,
    "skip-cost": True,
    "allow-unk": True,  # as in tolka
}
_PRECISIONS = {"float32": "float32", "int8": "int8shiftAll"}
_WIDTH_STEP = 64  # of the matrix multiplications in int8 on all processors
# In int8, and with other positions, lines change: what that costs is reported, and a damaged model refused.
_ROUNDED = Threshold(identical=0.0, bleu=50.0, advice="; compare lines of your own (--sample FILE)")


class BergamotSide(Side):
    """Bergamot's engine with the files of a folder, one line at a time."""

    def __init__(self, folder: Path, vocabularies: Sequence[str], dtype: str, package: Path) -> None:
        """dtype: what the engine computes matrices with. package: of npm."""
        self.name = f"Bergamot's engine {json.loads((package / 'package.json').read_text())['version']} in {dtype}"
        options = {**_SEARCH, "max-length-break": 512, "ssplit-mode": "sentence", "gemm-precision": _PRECISIONS[dtype]}
        files = [folder / name for name in (MODEL, *vocabularies)]
        script = Path(__file__).with_name("bergamot.js")
        self._command = list(map(str, ("node", script, package, yaml.safe_dump(options), *files)))

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Return the greedy translation of each line; CheckpointError if the engine refuses the files."""
        text = "".join(f"{line}\n" for line in lines).encode()
        done = subprocess.run(self._command, input=text, capture_output=True, check=False)
        found = done.stdout.decode(errors="replace").split("\n")[:-1]
        if done.returncode or len(found) != len(lines):
            said = [line for line in done.stderr.decode(errors="replace").splitlines() if "Error" in line]
            raise CheckpointError(f"{self.name} cannot translate with it: {said[0] if said else done.returncode}")
        # As tolka: bytes that make no character are left out, and control characters that end a line are blanks.
        return [as_line(line.replace("\N{REPLACEMENT CHARACTER}", "")) for line in found]


def engine() -> tuple[Path | None, str]:
    """Return the folder of the engine's package, or None and why it is not there; ConfigError if it is another one."""
    if not (named := os.environ.get(ENGINE)):
        return None, f"{ENGINE} names no folder of {_PACKAGE}, the engine of Firefox"
    if not (Path(named) / "worker" / "bergamot-translator-worker.wasm").is_file():
        raise ConfigError(f"{ENGINE}={named} is not the folder of {_PACKAGE}: it has no worker/")
    if not shutil.which("node"):
        return None, "there is no Node (node), which runs Bergamot's engine"
    return Path(named), ""


def export_marian(model: Path, out: Path, dtype: str, lines: list[str], say: Say) -> None:
    """Write a model as a folder of Marian, all or nothing, and compare it with Bergamot's engine if that is there.

    dtype: int8 or float32 (also "" and fp32). lines: the sample to compare; [] = made-up lines. ConfigError, with the
    option that would fit, for what Marian cannot express; CheckpointError if the engine translates otherwise.
    """
    dtype = dtype if dtype not in ("", "fp32") else "float32"
    if dtype not in _PRECISIONS:
        raise ConfigError(f"--dtype ({dtype}) of a Marian folder must be one of {', '.join(_PRECISIONS)}")
    saved, family, package = load_any(model), MarianFiles(), engine()[0]
    options = resolved_options(saved.config["model"], saved.tokenizer.shared)
    files = family.files(saved, options)
    assert isinstance(options, TransformerOptions)
    if dtype == "int8" and (options.d_model % _WIDTH_STEP or options.inner_width % _WIDTH_STEP):
        raise ConfigError(
            f"--dtype int8 needs widths that are multiples of {_WIDTH_STEP}, and model.d_model is {options.d_model}, "
            f"model.d_ff {options.inner_width}: take --dtype float32"
        )
    is_exact = options.positions == "sinusoidal_marian"
    if not is_exact and not package:
        raise ConfigError(
            f"{saved.folder} has model.positions={options.positions}, which Marian computes otherwise: train with "
            f"sinusoidal_marian, or have what it costs measured ({engine()[1]})"
        )
    tensors, form = family.tensors(saved, options), character_form(saved.config)
    first, *second = saved.tokenizer.models
    # The engine gives SentencePiece the text as it comes.
    models = [with_rules(first, form.source, direction_of(saved.config).source), *second]
    with whole_folder(out) as work:
        names = write_files(work, files[OPTIONS], tensors, saved.tokenizer.vocabularies, models, dtype == "int8")
        settings = {"relative-paths": True, "models": [MODEL], "vocabs": [names[0], names[-1]], **_SEARCH}
        settings["gemm-precision"] = _PRECISIONS[dtype]
        # translateLocally looks for the second name.
        for name in ("config.yml", "config.intgemm8bitalpha.yml"):
            (work / name).write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
        (work / MODEL_INFO).write_text(json.dumps(files[MODEL_INFO], indent=2), encoding="utf-8")
        threshold = FP32 if is_exact and dtype == "float32" else _ROUNDED
        section = _compare(saved, work, names, dtype, threshold, lines, say)
        facts = {**facts_of(saved.folder, saved.scores), "exported for": f"Marian, in {dtype}"}
        card = model_card(saved.config, facts, saved.scores, has_config=False, marks_lines=False)
        (work / CARD).write_text(f"{card}\n{section}", encoding="utf-8")


def compare_imported(foreign: Foreign, saved: SavedModel, lines: list[str], say: Say) -> str:
    """Compare a folder's own options and tensors in Bergamot's engine with tolka; return the section of its card."""
    assert isinstance(foreign.folder, MarianFolder)
    tokenizer, tensors = foreign.tokenizer, foreign.folder.tensors()
    with TemporaryDirectory() as temporary:
        # As model.bin in fp32, which the engine reads: whatever the file was.
        work = Path(temporary)
        names = write_files(work, foreign.config, tensors, tokenizer.vocabularies, tokenizer.models, int8=False)
        return _compare(saved, work, names, "float32", FP32, lines, say)


def _compare(
    saved: SavedModel, folder: Path, names: list[str], dtype: str, threshold: Threshold, lines: list[str], say: Say
) -> str:
    """Compare the engine with tolka, if it is there; return the section of a model card."""
    package, reason = engine()
    if not package:
        say(f"note: {reason}, so that its translations were not compared with tolka's")
        return f"## Parity\n\nNot compared: {reason}.\n"
    ours = TolkaSide(saved, has_logits=False, factor=_FACTOR)
    side = BergamotSide(folder, names, dtype, package)
    return compare(ours, side, sample_of(saved, lines, say)).check(threshold, say)
