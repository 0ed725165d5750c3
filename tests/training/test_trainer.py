"""The loop: sums divided once, resuming exactly, stopping when told."""

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from rows import each_row
from safetensors.torch import load_file
from trainer_bench import (
    CPU,
    ROWS,
    Bench,
    Shot,
    assert_same,
    goes_on_to_the_same_weights,
    through_a_file,
    with_weights,
)

from tolka.data.batch import Batch, collate
from tolka.errors import ConfigError
from tolka.losses.cross_entropy import LossSum, Objective
from tolka.metrics.validation import Validation
from tolka.model_directory.read import ResumeState
from tolka.model_directory.verify import TrainingSources
from tolka.model_directory.write import Snapshot, snapshot
from tolka.models.transformer import TransformerConfig
from tolka.optim.optimizers.base import OPTIMIZERS, OptimizerConfig
from tolka.optim.optimizers.of_torch import AdamWConfig, SGDConfig
from tolka.optim.schedules.base import LearningRate
from tolka.optim.schedules.formulas import ConstantConfig, LinearConfig
from tolka.optim.schedules.wsd import WarmupStableDecayConfig
from tolka.system.device import Precision
from tolka.training import precision as precision_module
from tolka.training.averaging import Ema
from tolka.training.options import TrainerConfig
from tolka.training.precision import check_kernels, check_precision, choose_precision


def test_accumulated_gradients_equal_one_large_batch() -> None:
    """Divided once by all tokens: the same numbers, however uneven the pieces."""
    torch.manual_seed(0)
    model = TransformerConfig(d_model=16, heads=2, layers=1, dropout=0.0).build(11, 11, True).double()
    objective = Objective(model, 0.1)
    sources, targets = ROWS[:9], ROWS[9:18]
    whole = collate(sources, targets)
    (objective(whole).loss / whole.tokens).backward()
    expected = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    for part in (slice(0, 1), slice(1, 3), slice(3, 9)):
        (objective(collate(sources[part], targets[part])).loss / whole.tokens).backward()
    for one, p in zip(expected, model.parameters(), strict=True):
        torch.testing.assert_close(one, p.grad, rtol=1e-6, atol=1e-9)


def test_accumulate_reads_that_many_batches(tmp_path: Path) -> None:
    one, three = Bench(tmp_path / "a", updates=6), Bench(tmp_path / "b", updates=2, accumulate=3)
    assert one.trainer.fit().tokens == three.trainer.fit().tokens
    assert (one.trainer.state.epoch, one.trainer.state.batch) == (three.trainer.state.epoch, three.trainer.state.batch)


def test_loss_falls_and_every_line_is_there(tmp_path: Path) -> None:
    bench = Bench(tmp_path, updates=30)
    bench.trainer.fit()
    lines = bench.trainer.run.history()
    training = [line for line in lines if "train_loss" in line]
    assert [line["update"] for line in training] == list(range(5, 31, 5))
    assert training[-1]["train_loss"] < training[0]["train_loss"]
    assert all(line.keys() >= {"update", "train_loss", "lr", "tokens_per_second"} for line in training)
    validations = [line for line in lines if "valid_loss" in line]
    assert [line["update"] for line in validations] == [10, 20, 30]
    assert all(line.keys() >= {"update", "valid_loss", "ppl", "bleu", "chrf"} for line in validations)


def test_the_first_line_of_the_log_comes_by_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line long before trainer.log_every updates are done; metrics.jsonl does not depend on the time."""
    monkeypatch.setattr("tolka.training.training_log._FIRST_LINE_SECONDS", 0.0)
    bench = Bench(tmp_path, updates=8, log_every=5)
    bench.trainer.fit()
    log = (tmp_path / "train.log").read_text("utf-8")
    assert re.findall(r"update (\d+) of 8: nll \d", log) == ["1", "5"]
    assert [line["update"] for line in bench.trainer.run.history() if "train_loss" in line] == [5]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ema": 0.9, "accumulate": 3},
    ],
    ids=str,
)
def test_a_resumed_run_is_the_same_run(tmp_path: Path, options: dict[str, Any]) -> None:
    """Stopped in the middle of an epoch, with dropout on: the same weights, bit for bit."""
    straight = Bench(tmp_path / "a", updates=19, **options)
    straight.trainer.fit()
    first = Bench(tmp_path / "b", updates=9, **options)
    first.trainer.fit()
    assert first.trainer.state.batch != 0
    goes_on_to_the_same_weights(first, straight, tmp_path / "b", updates=19, **options)
    if "ema" in options:
        assert first.trainer.step.ema is not None
        assert_same(first.trainer.step.ema.average, first.weights)


@pytest.mark.parametrize(
    "optimizer",
    [*(OPTIMIZERS.get(name)() for name in OPTIMIZERS.names()), SGDConfig(momentum=0.0)],
    ids=str,
)
def test_every_optimizer_goes_on_exactly(tmp_path: Path, optimizer: OptimizerConfig) -> None:
    straight = Bench(tmp_path / "a", optimizer=optimizer, updates=18)
    straight.trainer.fit()
    first = Bench(tmp_path / "b", optimizer=optimizer, updates=9)
    first.trainer.fit()
    goes_on_to_the_same_weights(first, straight, tmp_path / "b", updates=18, optimizer=optimizer)


@pytest.mark.parametrize("name", OPTIMIZERS.names())
def test_the_state_comes_back_where_and_as_it_was(tmp_path: Path, name: str) -> None:
    """Each optimiser's own way: its keys, types and devices, also of the counters."""
    first = Bench(tmp_path / "a", optimizer=OPTIMIZERS.get(name)(), updates=3)
    first.trainer.fit()
    second = Bench(tmp_path / "b", seed=99, optimizer=OPTIMIZERS.get(name)(), updates=3)
    assert first.last is not None
    second.trainer.resume(with_weights(through_a_file(first.last, tmp_path / "state.safetensors"), first.weights))
    pairs = zip(first.model.parameters(), second.model.parameters(), strict=True)
    states = [(first.trainer.step.optimizer.state[a], second.trainer.step.optimizer.state[b]) for a, b in pairs]
    assert all(before for before, _ in states)
    for before, after in states:
        assert before.keys() == after.keys()
        for key, value in before.items():
            assert (value.dtype, value.device, value.shape) == (after[key].dtype, after[key].device, after[key].shape)
            assert torch.equal(value, after[key]), key


def test_a_stop_that_was_asked_for_saves_last_and_goes_on_exactly(tmp_path: Path) -> None:
    straight = Bench(tmp_path / "a", updates=23)
    straight.trainer.fit()
    first = Bench(tmp_path / "b", updates=23)
    first.stop_after(17)
    assert first.trainer.fit().update == 17
    goes_on_to_the_same_weights(first, straight, tmp_path / "b", updates=23)


# A validation every 10 updates, of which the first is the best.
WORSE = [9.0, *range(8, 0, -1)]
UNTIL_A_PLATEAU: dict[str, Any] = {
    "schedule": WarmupStableDecayConfig(warmup=5, horizon=0, floor=0.0),
    "patience": 3,
    "updates": 1000,
}


@pytest.mark.slow
@pytest.mark.parametrize("stop_at", [35, 40, 45])
def test_a_run_resumed_around_a_plateau_is_the_same_run(tmp_path: Path, stop_at: int) -> None:
    """Before the validation that shows it, in its update, and when the rate has begun to fall."""
    options = UNTIL_A_PLATEAU
    straight = Bench(tmp_path / "a", scores=WORSE, **options)
    straight.trainer.fit()
    first = Bench(tmp_path / "b", scores=WORSE, **options)
    first.stop_after(stop_at)
    assert first.trainer.fit().update == stop_at
    # In the update of a validation, a stop comes before it.
    goes_on_to_the_same_weights(first, straight, tmp_path / "b", scores=WORSE[(stop_at - 1) // 10 :], **options)


def test_the_rate_falls_at_a_plateau_and_training_ends(tmp_path: Path) -> None:
    bench = Bench(tmp_path, scores=WORSE, log_every=10, **UNTIL_A_PLATEAU)
    bench.trainer.fit()
    lines = [line for line in bench.trainer.run.history() if "train_loss" in line]
    assert [1000 * line["lr"] for line in lines] == pytest.approx([10, 10, 10, 10, 10 * (1 - 0.5**0.5), 0])
    log = (tmp_path / "train.log").read_text("utf-8")
    assert "training ends at update 60: the rate has decayed since the plateau at update 40" in log
    assert "no better bleu in" in log


def test_patience_stops_and_the_best_is_saved_when_it_comes(tmp_path: Path) -> None:
    bench = Bench(tmp_path, scores=[1.0, 5.0, 4.0, 5.0, 3.0], updates=1000, patience=3)
    state = bench.trainer.fit()
    assert (state.update, state.best, state.best_update) == (50, 5.0, 20)
    assert [update for folder, update in bench.saved if folder == "best"] == [10, 20]
    assert [update for folder, update in bench.saved if folder == "last"] == [10, 20, 30, 40, 50]


@pytest.mark.parametrize(("bleu", "best"), [(7.0, 20), (6.0, 10)])
def test_a_state_that_knows_no_loss_of_its_best_goes_on(tmp_path: Path, bleu: float, best: int) -> None:
    """One of before ties were broken: an equal score that has a loss is the better one."""
    first = Bench(tmp_path, scores=[7.0], updates=10)
    first.trainer.fit()
    assert first.last is not None
    assert first.last.facts["train"]["best_nll"] == 1.0
    for key in ("best_nll", "kept_nll"):
        del first.last.facts["train"][key]
    again = Bench(tmp_path, scores=[bleu], updates=20)
    again.trainer.resume(with_weights(first.last, first.weights))
    assert again.trainer.fit().best_update == best


def test_minutes_stop_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path, updates=10_000, max_minutes=1e-6)
    state = bench.trainer.fit()
    assert state.update <= 1
    assert "trainer.max_minutes" in (tmp_path / "train.log").read_text()


def test_clipping_changes_the_step(tmp_path: Path) -> None:
    """Adam forgives a constant factor, so the clipped run differs by its changing one."""
    free, clipped = Bench(tmp_path / "a", updates=5, clip_norm=0.0), Bench(tmp_path / "b", updates=5, clip_norm=0.01)
    free.trainer.fit()
    clipped.trainer.fit()
    assert any(not torch.equal(a, b) for a, b in zip(free.model.parameters(), clipped.model.parameters(), strict=True))


class Slope(torch.nn.Module):
    """An objective whose gradient is the same everywhere: (8, 4, -8, 5), of norm 13."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(4))

    def forward(self, batch: Batch) -> LossSum:
        value = (self.weight * torch.tensor([8.0, 4.0, -8.0, 5.0])).sum()
        return LossSum(value * batch.tokens, value.detach(), batch.tokens)


@pytest.mark.parametrize(
    ("norm", "expected"),
    [(0.0, [8.0, 4.0, -8.0, 5.0]), (6.5, [4.0, 2.0, -4.0, 2.5]), (14.0, [8.0, 4.0, -8.0, 5.0])],
)
def test_clipping_by_hand(tmp_path: Path, norm: float, expected: list[float]) -> None:
    trainer = Bench(tmp_path, clip_norm=norm).trainer
    slope = Slope()
    trainer.step.parallel.objective = slope  # type: ignore[assignment]
    trainer.rate = LearningRate(ConstantConfig(warmup=0), 0.01, 1)
    trainer.step.optimizer = torch.optim.SGD(slope.parameters())
    trainer.probe()
    assert (slope.weight / -trainer.rate.peak).tolist() == pytest.approx(expected, rel=1e-5)


@each_row(
    ("options", "complaint"),
    [
        ({"updates": 0}, r"trainer.updates \(0\) must be at least 1"),
        (
            {"metric": "comet"},
            r"trainer.metric \('comet'\) is unknown. Known: bleu, bleu-lc, chrf, chrf\+\+, command",
        ),
        ({"precision": "int8"}, r"trainer.precision \('int8'\) is unknown. Known: auto, bf16, fp16, fp32"),
        ({"label_smoothing": 1.0}, "label_smoothing"),
        ({"patience": -1}, r"trainer.patience \(-1\) must be 0 \(off\) or more"),
    ],
)
def test_complaints(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        TrainerConfig(**options)


@each_row(
    ("options", "by_hand"),
    [
        ({"label_smoothing": 0.3}, 0.3),
        ({}, 0.1),
    ],
    ids=str,
)
def test_the_options_of_the_loss_reach_it(options: dict[str, Any], by_hand: float) -> None:
    """Each as if the objective had been made by hand, and none like another."""
    batch = collate(ROWS[:9], ROWS[9:18])

    def loss(made: Objective) -> float:
        torch.manual_seed(3)
        return float(made.train()(batch).loss.item())

    model = objective().model
    found = loss(TrainerConfig(**options).objective(model))
    assert found == loss(Objective(model, by_hand))
    if options:
        assert found != loss(TrainerConfig().objective(model))


def objective() -> Objective:
    torch.manual_seed(0)
    return Objective(TransformerConfig(d_model=16, heads=2, layers=1).build(11, 11, True), 0.1)


def failing(complaint: str) -> Objective:
    """An objective whose passes fail in bf16."""
    made = objective()

    def one_pass(_batch: Batch) -> LossSum:
        if torch.is_autocast_enabled("cpu"):
            raise RuntimeError(complaint)
        return LossSum(torch.zeros(()), torch.zeros(()), 1)

    made.forward = one_pass  # type: ignore[method-assign, assignment]
    return made


def test_a_precision_that_the_processor_lacks_is_named_before_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision_module, "has_fast_bf16", lambda device: True)
    lacking = failing("could not create a primitive descriptor for the LSTM. Run workload with ONEDNN_VERBOSE=all")
    with pytest.raises(ConfigError, match=r"=bf16 does not work .* for the LSTM\): set trainer.precision=fp32"):
        check_kernels(Precision(CPU, "bf16"), lacking)
    check_kernels(Precision(CPU, "fp32"), lacking)
    chosen, reason = choose_precision("auto", CPU, lacking, lambda: pytest.fail("no trial is needed"))
    assert (chosen.name, "no bf16: could not create a primitive" in reason) == ("fp32", True)


@pytest.mark.parametrize("complaint", ["DefaultCPUAllocator: can't allocate memory", "mat1 and mat2 shapes"])
def test_another_error_is_not_put_down_to_the_precision(complaint: str) -> None:
    check_kernels(Precision(CPU, "bf16"), failing(complaint))


def test_auto_precision_on_a_cpu_without_bf16_is_fp32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision_module, "has_fast_bf16", lambda device: False)
    chosen, reason = choose_precision("auto", CPU, objective(), lambda: pytest.fail("no trial is needed"))
    assert (chosen.name, "neither AMX" in reason) == ("fp32", True)


@pytest.mark.parametrize(("fp32", "bf16", "winner"), [(1.0, 2.0, "fp32"), (2.0, 1.0, "bf16")])
def test_auto_precision_takes_the_faster_of_a_trial(
    monkeypatch: pytest.MonkeyPatch, fp32: float, bf16: float, winner: str
) -> None:
    monkeypatch.setattr(precision_module, "has_fast_bf16", lambda device: True)
    seconds = {"fp32": fp32, "bf16": bf16}
    monkeypatch.setattr(precision_module, "_trial", lambda precision, *_others, **_rounds: seconds[precision.name])
    chosen, reason = choose_precision("auto", CPU, objective(), lambda: collate(ROWS[:3], ROWS[:3]))
    assert (chosen.name, "trial" in reason) == (winner, True)


def test_a_trial_leaves_no_trace() -> None:
    torch.manual_seed(4)
    before = torch.get_rng_state()
    tried = objective()
    torch.set_rng_state(before)
    assert precision_module._trial(Precision(CPU, "bf16"), tried, collate(ROWS[:3], ROWS[:3])) > 0
    assert torch.equal(torch.get_rng_state(), before)
    assert all(p.grad is None for p in tried.parameters())


def test_bf16_trains_like_fp32() -> None:
    losses = []
    for name in ("fp32", "bf16"):
        tried = objective()
        batch = collate(ROWS[:8], ROWS[:8])
        optimizer = dataclasses.replace(AdamWConfig(), lr=0.01).build(tried.model)
        torch.manual_seed(1)
        for _ in range(30):
            optimizer.zero_grad()
            with Precision(CPU, name).autocast():
                sums = tried(batch)
            (sums.loss / sums.tokens).backward()
            optimizer.step()
        losses.append(sums.nll.item() / sums.tokens)
    assert losses[1] == pytest.approx(losses[0], rel=0.1)


def test_fp16_is_refused_on_a_cpu() -> None:
    with pytest.raises(ConfigError, match="fp16 needs a CUDA device"):
        check_precision("fp16", CPU)


class Disk(Bench):
    """A bench whose checkpoints are real."""

    class NoTokenizer:
        def save(self, folder: Path) -> list[Path]:
            return []

    def take(self, scores: dict[str, Any], state: ResumeState | None = None) -> "OnDisk":
        taken = snapshot(self.model, self.NoTokenizer(), {}, TrainingSources(1), scores, "", state)  # type: ignore[arg-type]
        return OnDisk(**vars(super().take(scores, state)), taken=taken)


@dataclasses.dataclass
class OnDisk(Shot):
    """Written for real as well."""

    taken: Snapshot

    def write(self, folder: Path) -> None:
        super().write(folder)
        self.taken.write(folder)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def test_the_mean_of_checkpoints_is_the_best_model_when_it_is_better(tmp_path: Path) -> None:
    kept = [30, 40]
    bench = Disk(tmp_path, scores=[1.0, 7.0, 3.0, 5.0, 9.0], updates=40, average=2)  # the fifth is the mean's
    state = bench.trainer.fit()
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == [f"{n:07d}" for n in kept]
    first, second = (weights(tmp_path / "checkpoints" / f"{n:07d}") for n in kept)
    assert_same(weights(tmp_path / "best"), {name: (first[name] + second[name]) / 2 for name in first})
    assert (state.best, state.best_update) == (9.0, 40)
    assert json.loads((tmp_path / "best" / "scores.json").read_text())["mean_of_updates"] == kept
    assert_same(weights(tmp_path / "last"), bench.model.state_dict())  # training continues from its own weights
    assert not torch.equal(weights(tmp_path / "best")["target_embedding.weight"], bench.model.target_embedding.weight)


def test_a_mean_does_not_lengthen_a_finished_run(tmp_path: Path) -> None:
    """Patience is used up; then the mean is the best. The same command again finds nothing to do."""
    options: dict[str, Any] = {"updates": 1000, "patience": 2, "average": 2}
    bench = Disk(tmp_path, scores=[7.0, 3.0, 2.0, 9.0], **options)
    assert bench.trainer.fit().update == 30
    again = Disk(tmp_path, **options)
    assert bench.last is not None
    again.trainer.resume(with_weights(bench.last, bench.weights))
    assert again.trainer.fit().update == 30
    assert [line for line in again.trainer.run.history() if "mean_of_updates" in line][1:] == []


def test_last_has_its_own_scores_not_the_mean_s(tmp_path: Path) -> None:
    bench = Disk(tmp_path, scores=[1.0, 3.0, 9.0], updates=20, average=2)
    bench.trainer.fit()
    assert json.loads((tmp_path / "last" / "scores.json").read_text())["validation"]["bleu"] == 3.0
    assert json.loads((tmp_path / "best" / "scores.json").read_text())["validation"]["bleu"] == 9.0


@pytest.mark.slow
def test_a_resumed_run_averages_what_both_parts_kept(tmp_path: Path) -> None:
    options: dict[str, Any] = {"average": 3, "ema": 0.8, "metric": "nll"}
    straight = Disk(tmp_path / "a", updates=40, **options)
    straight.trainer.fit()
    first = Disk(tmp_path / "b", updates=20, **options)
    first.trainer.fit()
    (tmp_path / "b" / "checkpoints" / ".0000030.x.partial").mkdir()  # as a crash leaves it
    second = Disk(tmp_path / "b", updates=40, **options)
    assert first.last is not None
    second.trainer.resume(through_a_file(first.last, tmp_path / "state"))
    second.trainer.fit()
    kept = sorted(path.name for path in (tmp_path / "b" / "checkpoints").iterdir())
    assert kept == sorted(path.name for path in (tmp_path / "a" / "checkpoints").iterdir())
    for name in kept:
        assert_same(weights(tmp_path / "b" / "checkpoints" / name), weights(tmp_path / "a" / "checkpoints" / name))


def test_the_moving_average_is_what_is_validated_and_saved(tmp_path: Path) -> None:
    bench = Disk(tmp_path, updates=20, ema=0.9)
    seen: list[torch.Tensor] = []
    real = bench.validate

    def look(update: int, what: str, tick: Callable[[], object]) -> Validation:
        seen.append(bench.model.target_embedding.weight.detach().clone())
        return real(update, what, tick)

    bench.validate_with(look)
    bench.trainer.fit()
    assert bench.trainer.step.ema is not None
    saved = weights(tmp_path / "last")["target_embedding.weight"]
    assert torch.equal(saved, bench.trainer.step.ema.average["target_embedding.weight"])
    assert torch.equal(saved, seen[-1])
    assert not torch.equal(saved, bench.model.target_embedding.weight)


def test_the_moving_average_by_hand() -> None:
    """decay min(0.5, n / (n + 10)): 1/11, then 2/12, ... and from update 10 on 0.5."""
    model = torch.nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(0.0)
    ema = Ema(model, decay=0.5)
    model.weight.data.fill_(11.0)
    ema.update(1)
    assert ema.average["weight"].item() == pytest.approx(10.0)
    model.weight.data.fill_(16.0)
    ema.update(2)
    assert ema.average["weight"].item() == pytest.approx(15.0)
    model.weight.data.fill_(17.0)
    ema.update(100)
    assert ema.average["weight"].item() == pytest.approx(16.0)


class Ticking:
    """A clock that only batches and validations move. seconds: of an update; those of the first five are `first`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float, first: float = 0.0) -> None:
        self.now, self._seconds, self._first, self._patch = 1000.0, seconds, first or seconds, monkeypatch
        monkeypatch.setattr("time.perf_counter", lambda: self.now)

    def drives(self, bench: Bench, stop_at: int = 0, validation: float = 0.0) -> Bench:
        batch, validate = bench.trainer.loader.batch, bench.validate

        def slow(epoch: int, number: int) -> Batch:
            update = bench.trainer.state.update + 1
            self.now += self._first if update <= 5 else self._seconds
            if update == stop_at:
                bench.trainer.stop("enough")
            return batch(epoch, number)

        def validating(*facts: Any) -> Validation:
            self.now += validation
            return validate(*facts)

        validating.seconds = lambda: validation  # type: ignore[attr-defined]
        self._patch.setattr(bench.trainer.loader, "batch", slow)
        bench.validate_with(validating)
        bench.trainer.validator = validating  # type: ignore[assignment]
        return bench


def rates(bench: Bench) -> list[float]:
    return [line["lr"] for line in bench.trainer.run.history() if "train_loss" in line]


def test_a_schedule_by_the_clock_ends_with_the_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six seconds an update, two minutes: twenty updates; stopped after eight, the time so far still counts."""
    clock = Ticking(monkeypatch, 6.0)
    schedule = LinearConfig(warmup=5, horizon=0, floor=0.0)
    options: dict[str, Any] = {"updates": 1000, "max_minutes": 2.0, "log_every": 1, "validate_every": 4}
    straight = clock.drives(Bench(tmp_path / "a", schedule=schedule, **options))
    assert straight.trainer.fit().update == 20
    expected = [0.01 * min(n / 5, (20 - n) / 15) for n in range(1, 21)]
    assert rates(straight) == pytest.approx(expected, abs=1e-12)

    first = clock.drives(Bench(tmp_path / "b", schedule=schedule, **options), stop_at=8)
    assert first.trainer.fit().update == 8
    assert first.last is not None
    clock.now += 500.0
    second = clock.drives(Bench(tmp_path / "b", schedule=schedule, **options))
    weights = first.weights
    second.trainer.resume(with_weights(first.last, weights))
    assert second.trainer.fit().update == 20
    assert rates(second)[8:] == pytest.approx(expected[8:], abs=1e-12)


def test_a_chosen_warm_up_is_a_tenth_of_the_updates_that_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five updates of 12 seconds, and then 2 seconds each: 10 + (240 - 70) / 2 = 95 fit into four minutes.

    Known after update 10; until then the warm-up is that which was chosen. A run that is stopped before or after that
    has the same rates.
    """
    clock = Ticking(monkeypatch, 2.0, first=12.0)
    chosen, schedule = ["scheduler.warmup"], WarmupStableDecayConfig(warmup=50, horizon=0)
    options: dict[str, Any] = {"updates": 1000, "max_minutes": 4.0, "log_every": 1, "patience": 0, "schedule": schedule}
    straight = clock.drives(Bench(tmp_path / "a", **options))
    straight.trainer.stopping.chosen = chosen
    assert straight.trainer.fit().update == 95
    expected = [0.01 * n / 50 for n in range(1, 11)] + [0.01] * 60  # the tenth update was beyond a warm-up of 9
    assert rates(straight)[:70] == pytest.approx(expected, abs=1e-12)
    assert rates(straight)[-1] == pytest.approx(1e-4, abs=1e-12)
    assert "scheduler.warmup=9, not 50: about 95 updates fit into 4 minutes" in (tmp_path / "a/train.log").read_text()
    for stop_at in (4, 7, 20):
        folder = tmp_path / str(stop_at)
        first = clock.drives(Bench(folder, **options), stop_at)
        first.trainer.stopping.chosen = chosen
        first.trainer.fit()
        assert first.last is not None
        second = clock.drives(Bench(folder, **options))
        second.trainer.resume(with_weights(first.last, first.weights))
        second.trainer.stopping.chosen = chosen
        second.trainer.fit()
        assert rates(second) == pytest.approx(rates(straight), abs=1e-12)
        assert_same(second.model.state_dict(), straight.model.state_dict())
    typed = clock.drives(Bench(tmp_path / "typed", **options))
    typed.trainer.fit()
    assert rates(typed)[:50] == pytest.approx([0.01 * n / 50 for n in range(1, 51)], abs=1e-12)


def test_validations_get_a_tenth_of_the_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 3 seconds, one due with every update of 6: the next and the last one fit into a tenth of the time so far."""
    clock = Ticking(monkeypatch, 6.0)
    options: dict[str, Any] = {"updates": 1000, "max_minutes": 5.0, "patience": 0, "validate_every": 1}

    def validated(folder: Path, *chosen: str) -> list[int]:
        bench = clock.drives(Bench(folder, **options), validation=3.0)
        bench.trainer.stopping.chosen = chosen
        bench.trainer.fit()
        return [line["update"] for line in bench.trainer.run.history() if "valid_loss" in line]

    # After n updates and k validations: 10 * (3 k + 3 + 3) <= 6 n + 3 k, which is n >= 10 + 4.5 k.
    assert validated(tmp_path / "a", "trainer.validate_every") == [10, 15, 19, 24, 28, 33, 37, 42, 46]
    assert validated(tmp_path / "b") == [*range(1, 35)]  # typed: 9 seconds each


def test_the_log_says_how_long_a_training_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At least and at most, and after a plateau until when; 2000 minutes an update, and more of the first."""
    schedule = WarmupStableDecayConfig(warmup=1, horizon=0)
    bench = Bench(tmp_path, [9.0, 8.0, 7.0], schedule=schedule, updates=100, patience=2)
    Ticking(monkeypatch, 120_000.0, first=900_000.0).drives(bench).trainer.fit()
    log = (tmp_path / "train.log").read_text()
    assert re.search(r"update 10 of 100: .*, 70000\.0 to 180000\.0 left\n", log)
    assert "update 25 of 100: " in log
    assert "update 35 of 45: " in log  # the plateau was at 30
