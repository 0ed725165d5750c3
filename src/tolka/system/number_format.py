"""Formatting of very large and non-finite numbers, for people and for JSON."""

import json
import math
from typing import Any


def number_text(value: float | None, digits: int = 2) -> str:
    """Return a perplexity for people: 12.34, from a million on 1.4e13; None means infinite."""
    if value is None or math.isinf(value):
        return "over 1e304"  # exp(700), from which on `evaluation.perplexity` has inf
    return f"{value:.{digits}f}" if value < 1e6 else f"{value:.1e}".replace("e+0", "e").replace("e+", "e")


def count_text(count: int, noun: str) -> str:
    """Return a phrase such as '1 pair' or '2 pairs'."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def json_text(value: Any, ensure_ascii: bool = True, indent: int | None = None) -> str:
    """Return valid JSON as `json.dumps` does, with null for NaN and inf, which JSON does not have."""
    return json.dumps(_null_non_finite(value), ensure_ascii=ensure_ascii, indent=indent, allow_nan=False)


def _null_non_finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _null_non_finite(part) for key, part in value.items()}
    return [_null_non_finite(part) for part in value] if isinstance(value, list | tuple) else value
