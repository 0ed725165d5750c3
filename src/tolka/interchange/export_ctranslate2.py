"""Export a model directory for CTranslate2, and compare what both translate before the folder appears."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tolka.engines.gate import NLL_GROWTH, draw_sample
from tolka.engines.options import DecodingConfig
from tolka.errors import ConfigError
from tolka.formats.ctranslate2.exported import Exported, read_exported
from tolka.formats.ctranslate2.folder import write_folder
from tolka.formats.ctranslate2.plain_model import read_plain_model
from tolka.interchange.parity import FP32, LIMIT, Logits, Pairs, Parity, Threshold, TolkaSide, compare, sample_of
from tolka.model_directory.card import facts_of, model_card
from tolka.model_directory.file_names import CARD
from tolka.model_directory.read import load_model
from tolka.model_directory.verify import checked_manifest, write_manifest
from tolka.search.options import GreedyConfig
from tolka.system.atomic import whole_folder
from tolka.system.progress import Say, silent
from tolka.text.direction import Direction
from tolka.tokenizer.special_tokens import EOS
from tolka.translation.opening import translator_of
from tolka.translation.request import Request

# With rounded weights lines change, the more the less sure the model is: only nll measures the loss.
_ROUNDED = Threshold(
    *(0.0, 0.0, math.inf),
    nll=NLL_GROWTH,
    advice="; compare lines of your own (--sample FILE), or take --dtype bfloat16 or float32",
)
THRESHOLDS = {"float32": FP32, "bfloat16": _ROUNDED, "float16": _ROUNDED, "int8": _ROUNDED}


class CTranslate2Side:
    """A folder of CTranslate2 on the CPU, in the dtype that it has."""

    def __init__(self, folder: Path, direction: Direction, limit: int = LIMIT) -> None:
        """limit: tokens of a translation."""
        import ctranslate2

        self._direction = direction
        self.name = f"CTranslate2 {ctranslate2.__version__}"
        search = GreedyConfig(max_length_factor=0.0, max_length_extra=limit - 1)
        decoding = DecodingConfig(device="cpu", split="never")
        self._translator = translator_of(read_exported(folder), search, decoding)
        self.engine = self._translator.engine

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Return the greedy translation of each line, as a whole."""
        return self._translator(lines, Request(direction=self._direction))

    def logits(self, pairs: Pairs) -> list[Logits] | None:
        """Return the logits of forced decoding; see `Side`."""
        tokenizer, logits_of_pairs = self._translator.tokenizer, list[Logits]()
        tags = tokenizer.tags(self._direction)
        for source, target in pairs:
            (source_ids,), (target_ids,) = tokenizer.encode_source([source]), tokenizer.encode_target([target])
            logits = self.engine.forced_logits([*tags.source, *source_ids], [*tags.target, *target_ids])
            logits_of_pairs.append(np.asarray(logits, dtype=np.float32)[:, EOS:])
        return logits_of_pairs


def export_checked(model: Path, out: Path, dtype: str = "", lines: Sequence[str] = (), say: Say = silent) -> Parity:
    """Export a model directory as a folder for CTranslate2 and mt-translate, all or nothing; return the comparison.

    dtype: of `ctranslate2.DTYPES`; "" is float32. lines: the sample to compare on; [] = made-up lines. ConfigError for
    what CTranslate2 cannot express; CheckpointError, with the first line that differs, if it translates otherwise.
    """
    dtype = dtype or "float32"
    if dtype not in THRESHOLDS:
        raise ConfigError(f"--dtype ({dtype}) is unknown to CTranslate2's format. Known: {', '.join(THRESHOLDS)}")
    saved, plain = load_model(model), read_plain_model(model)
    facts = {**facts_of(saved.folder, saved.scores), "exported for": f"CTranslate2, in {dtype}"}
    card = model_card(saved.config, facts, saved.scores, has_config=False, marks_lines=False)
    with whole_folder(out) as work:
        write_folder(plain, work, dtype)
        plain.tokenizer.save(work)
        exported = Exported.of(plain, dtype)
        exported.write(work)
        write_manifest(work, plain.sources)  # for the comparison, which reads the folder as mt-translate does
        ours = TolkaSide(saved)
        theirs = CTranslate2Side(work, ours.direction)
        parity = compare(ours, theirs, sample_of(saved, lines, say))
        section = parity.check(THRESHOLDS[dtype], say)
        # For other processors, where rounded weights are compared with what they give on this one.
        sample = draw_sample(ours.engine, theirs.engine, plain.tokenizer)
        replace(exported, sample=sample).write(work)
        (work / CARD).write_text(f"{card}\n{section}", encoding="utf-8")
        write_manifest(work, plain.sources)
        checked_manifest(work)
    return parity
