"""Schedules in short trainings: default lengths that do not fit are shortened, and that is reported."""

from collections.abc import Collection, Mapping
from typing import Any, TypeGuard

# Settings that shrink, and that a resumed run keeps, so that a higher trainer.updates does not bend its curve.
LENGTHS = ("warmup", "horizon", "decay", "lr_init")
_WARMUP_SHARE = 10  # a tenth of the updates


def fit_schedule(
    scheduler: Mapping[str, Any], updates: Any, typed: Collection[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fit a schedule's default lengths into `updates`; return its settings, and those of them that changed.

    scheduler: plain values of the group, not checked yet; invalid ones are left for the checks. typed: keys of the
    group that the user set; they never change.
    """
    fitted = dict(scheduler)
    if not _is_length(updates):
        return fitted, {}
    horizon = fitted.get("horizon", 0)
    if not isinstance(horizon, int):
        return fitted, {}
    # The curve ends with the training, at its lowest rate.
    if "horizon" not in typed and _is_length(horizon) and horizon > updates:
        horizon = fitted["horizon"] = updates
    end = min(updates, horizon) if _is_length(horizon) else updates
    warmup = fitted.get("warmup")
    # A warm-up of up to half of the training is left as it is.
    if "warmup" not in typed and "lr_init" not in typed and _is_length(warmup) and warmup > end / 2:
        fitted["warmup"] = end // _WARMUP_SHARE
        if isinstance(fitted.get("lr_init"), int | float):
            # noam's peak is lr_init / sqrt(warmup): it shall stay.
            fitted["lr_init"] = float(f"{fitted['lr_init'] * (max(fitted['warmup'], 1) / warmup) ** 0.5:.3g}")
    return fitted, {key: value for key, value in fitted.items() if value != scheduler[key]}


def _is_length(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
