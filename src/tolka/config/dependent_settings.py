"""Settings that follow from other settings: a table of rules, each with the origins that it may replace."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from tolka.config.origins import Composition, Origin, Rank
from tolka.config.schemas import REGISTRIES, RunConfig
from tolka.errors import TolkaError
from tolka.system.progress import Say, silent
from tolka.training.options import TrainerConfig
from tolka.training.saved_settings import begun_settings

LENGTHS = ("warmup", "horizon", "decay", "lr_init")
"""Keys of schedules that shrink, and that a resumed run keeps: a higher trainer.updates does not bend its curve."""
_WARMUP_SHARE = 10  # a tenth of the updates


@dataclass(frozen=True)
class DependentSettings:
    """Values that follow from other settings.

    by, rank: who sets them then. weaker_than: the weakest origin that stays as it is. values: the keys and their values
    in a composition. note: a line for the user, where {settings} stands for those that have changed; "" for none.
    """

    by: str
    rank: Rank
    weaker_than: Rank
    values: Callable[[Composition], Mapping[str, Any]]
    note: str = ""


def follow_rules(composed: Composition, say: Say = silent) -> None:
    """Apply RULES, in their order. say: is given notes."""
    for rule in RULES:
        values, origin = rule.values(composed), Origin(rule.rank, rule.by)
        before = {key: composed.get(key) for key in values}
        changed = [key for key, value in values.items() if composed.replace(key, value, origin, rule.weaker_than)]
        if changed and rule.note:
            settings = ", ".join(f"{key}={values[key]} (not {before[key]})" for key in changed)
            say(f"note: {rule.note.format(settings=settings)}")


def _ends_of_epochs(composed: Composition) -> dict[str, Any]:
    """Return the ends that trainer.epochs, which alone ends a training, lifts unless who set updates is as strong."""
    if not composed.get("trainer.epochs"):
        return {}
    # 0 updates or a horizon of 0 mean "no limit of its own".
    ends = {"trainer.updates": 0} if composed.rank("trainer.updates") < composed.rank("trainer.epochs") else {}
    return ends | ({"scheduler.horizon": 0} if composed.get("scheduler.horizon") is not None else {})


def _begun_lengths(composed: Composition) -> dict[str, Any]:
    """Return the lengths of the schedule that the run began with: the rate must not jump at the resumption."""
    try:
        run = RunConfig(name=str(composed.get("run.name")), dir=str(composed.get("run.dir") or ""))
    except TolkaError:  # reported when the settings are built
        return {}
    begun = begun_settings(run.folder).get("scheduler")
    if not isinstance(begun, Mapping) or begun.get("name") != composed.get("scheduler.name"):
        return {}
    lengths = {f"scheduler.{key}": begun[key] for key in LENGTHS if key in begun}
    if not (composed.get("trainer.max_minutes") or composed.get("trainer.epochs")) and begun.get("horizon") == 0:
        del lengths["scheduler.horizon"]  # what ended with epochs or minutes ends at an update now
    return lengths


def _fitting_lengths(composed: Composition) -> dict[str, Any]:
    """Return the lengths of the schedule that fit into trainer.updates."""
    scheduler, updates = composed.values.get("scheduler"), composed.get("trainer.updates")
    if not isinstance(scheduler, Mapping):  # reported when the settings are built
        return {}
    own = [key for key in LENGTHS if composed.rank(f"scheduler.{key}") >= Rank.BEGUN]
    fitted = fit_schedule(scheduler, TrainerConfig.updates if updates is None else updates, own)
    return {f"scheduler.{key}": value for key, value in fitted.items()}


RULES = (
    DependentSettings("trainer.epochs", Rank.EXPERIMENT, Rank.TYPED, _ends_of_epochs),
    DependentSettings("the run as it began", Rank.BEGUN, Rank.TYPED, _begun_lengths),
    DependentSettings(
        "trainer.updates",
        Rank.EXPERIMENT,
        Rank.BEGUN,
        _fitting_lengths,
        "shortened to fit into the training: {settings}; type a value to choose it yourself",
    ),
)


def leave_out_other_kinds(composed: Composition, say: Say) -> None:
    """Leave out the keys of an experiment that a kind typed instead, as in optimizer=sgd, does not have.

    say: is given notes on these, and on those that stay: a learning rate, for one, seldom suits two optimizers.
    """
    # What files about several groups choose, configs/train.yaml among them, the last one strongest.
    of_files = {group: choice for file in composed.files for group, choice in file.choices()}
    for group in filter(composed.typed().__contains__, REGISTRIES):
        if composed.choices[group] == of_files.get(group):
            continue
        own, kind = composed.preset(group), f"{group}={composed.choices[group]}"
        for key, value in [*composed.values[group].items()]:
            rank, by = composed.origins.get(f"{group}.{key}", (Rank.DEFAULT, ""))
            # An implied experiment is as weak as a preset.
            of_experiment = rank in (Rank.PRESET, Rank.EXPERIMENT) and not by.startswith(f"{group}=")
            if not of_experiment or (key in own and value == own[key]):
                continue
            if key in own:
                say(f"note: {group}.{key} is {value!r}, as {by} sets it; {kind} alone would have {own[key]!r}")
            else:
                composed.values[group] = {name: each for name, each in composed.values[group].items() if name != key}
                say(f"note: {group}.{key} ({value}), which {by} sets, is left out: {kind} has no such key")


def fit_schedule(scheduler: Mapping[str, Any], updates: Any, typed: Collection[str]) -> dict[str, Any]:
    """Return the lengths that a schedule must have to fit into `updates`, where they are others than it has.

    scheduler: plain values of the group, not checked yet; invalid ones are left for the checks. typed: keys of the
    group that the user set; they never change.
    """
    fitted = dict(scheduler)
    if not _is_length(updates):
        return {}
    horizon = fitted.get("horizon", 0)
    if not isinstance(horizon, int):
        return {}
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
    return {key: value for key, value in fitted.items() if value != scheduler[key]}


def _is_length(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
