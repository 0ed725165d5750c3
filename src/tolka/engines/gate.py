"""The gate: CTranslate2 computes a model only on a processor where it translates a sample as torch does."""

import json
import os
import platform
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from tolka.engines.ctranslate2_engine import CTranslate2Engine
from tolka.engines.engine import Engine, Rows
from tolka.search.options import GreedyConfig
from tolka.system.atomic import replace_text
from tolka.text.direction import Direction
from tolka.tokenizer.language_tags import NO_TAGS
from tolka.tokenizer.special_tokens import UNK
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.version import __version__

IDENTICAL = 0.98
"""Least share of identical translations with weights in fp32, of whose sums only the order differs."""
NLL_GROWTH = 0.005
"""Greatest growth of the nll in nats a token, which is all that counts for rounded weights: with them lines change."""
# int8 cost five models 0.0001 to 0.0008, and 0.009 to 0.03 where sums were cut off at 16 bits.
_LINES, _LONGEST = 64, 8  # 1 of 64 may differ; more tokens take a large model many seconds


def here() -> str:
    """Return what numbers depend on beside the model: the processor with its instructions, CTranslate2's version."""
    import ctranslate2

    core, name = list[str](), platform.machine()
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as stream:
        core = [line for line in islice(stream, 30) if line.startswith(("model name", "flags", "Features"))]
        name = next((line.rpartition(": ")[2].strip() for line in core if line.startswith("model name")), name)
    return f"{name} ({_digest(core)[:8]}), CTranslate2 {ctranslate2.__version__}"


def draw_sample(torch: Engine, scorer: Engine, tokenizer: Tokenizer) -> dict[str, Any]:
    """Return random sources, torch's greedy translations, both as texts of ids, their nll per token, and `here`.

    torch: computes in fp32. scorer: the nll is its own.
    """
    draw, words = random.Random(1), range(UNK + 1, tokenizer.source_size)
    sources = [draw.choices(words, k=draw.randint(2, _LONGEST)) for _ in range(_LINES)]
    targets, nll = _translate_and_score(torch, tokenizer, sources)
    nll = nll if torch is scorer else _translate_and_score(scorer, tokenizer, sources, targets)[1]
    texts = ([" ".join(map(str, row)) for row in rows] for rows in (sources, targets))
    return {**dict(zip(("sources", "targets"), texts, strict=True)), "nll": nll, "where": here()}


def difference(engine: CTranslate2Engine, tokenizer: Tokenizer, sample: Mapping[str, Any], dtype: str) -> str:
    """Return how an engine differs from a sample; "" if it translates alike. dtype: of the weights."""
    sources, targets = ([list(map(int, row.split())) for row in sample[side]] for side in ("sources", "targets"))
    translations, nll = _translate_and_score(engine, tokenizer, sources, targets)
    if not (growth := nll - sample["nll"]) <= NLL_GROWTH:  # NaN, too
        return f"the nll of a sample is {growth:.4f} nats a token higher (at most {NLL_GROWTH:g})"
    same = sum(one == two for one, two in zip(translations, targets, strict=True))
    if engine.translator.compute_type == dtype == "float32" and same < IDENTICAL * len(targets):
        return f"{same} of {len(targets)} lines of a sample are identical (at least {IDENTICAL:.0%} must be)"
    return ""


def kept_difference(model: str, precision: str, compare: Callable[[], str]) -> str:
    """Return how CTranslate2 differs from torch here: what `compare` returned at first, kept in the cache folder.

    model: its digest. precision: of DecodingConfig. Where nothing can be kept, each start compares.
    """
    key = {"where": here(), "model": model, "precision": precision, "tolka": __version__}
    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "tolka" / "ctranslate2"
    path = cache / f"{_digest(key)[:16]}.json"
    with suppress(OSError, ValueError, LookupError, TypeError):
        return str(json.loads(path.read_text(encoding="utf-8"))["difference"])
    found = compare()
    with suppress(OSError):
        if path.is_absolute():  # not where there is no home folder
            cache.mkdir(parents=True, exist_ok=True)
            replace_text(path, json.dumps({**key, "difference": found}, indent=1))
    return found


def _digest(values: object) -> str:
    return sha256(json.dumps(values).encode()).hexdigest()


def _translate_and_score(
    engine: Engine, tokenizer: Tokenizer, sources: Rows, given: Rows | None = None
) -> tuple[Rows, float]:
    """Return greedy translations, and the nll per token, in nats and without `</s>`, of the given ones or of these."""
    codes = tokenizer.languages  # of many, the direction does not matter
    tags = tokenizer.tags(Direction(codes[0], codes[-1])) if codes else NO_TAGS
    search = GreedyConfig(max_length_factor=0.0, max_length_extra=_LONGEST - 1)
    results = engine.translate(search, sources, tags=tags._replace(never=tokenizer.without_text))
    translations = [hypotheses[0].tokens for hypotheses in results]
    scores = [score for row in engine.score(sources, given or translations, tags) for score in row[:-1]]
    return translations, -sum(scores) / max(1, len(scores))
