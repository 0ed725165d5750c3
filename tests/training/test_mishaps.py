"""Losses and gradients that are no numbers: skipped, counted, told of; going back; a validation that is cut short."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from trainer_bench import Bench, assert_same, goes_on_to_the_same_weights

from tolka.data.batch import Batch
from tolka.errors import DataError, TolkaError
from tolka.losses.cross_entropy import LossSum

Spoilt = Callable[[int, int], bool]


class Fragile(torch.nn.Module):
    """The bench's objective, whose loss or gradient is NaN or inf where `spoilt(update, returns)` says so."""

    def __init__(self, bench: Bench, spoilt: Spoilt, gradient: bool = False) -> None:
        super().__init__()
        self._bench, self._spoilt, self._gradient = [bench], spoilt, gradient
        self.real = bench.trainer.step.objective
        self.model = self.real.model

    def forward(self, batch: Batch) -> LossSum:
        state = self._bench[0].trainer.state
        sums: LossSum = self.real(batch)
        if self._spoilt(state.update, state.returns):
            if self._gradient:
                sums.loss.register_hook(lambda gradient: gradient * float("inf"))
            else:
                sums = dataclasses.replace(sums, loss=sums.loss * float("nan"), nll=sums.nll * float("nan"))
        return sums


def fragile(folder: Path, spoilt: Spoilt, gradient: bool = False, **options: Any) -> Bench:
    bench = Bench(folder, **options)
    objective = Fragile(bench, spoilt, gradient)
    bench.trainer.step.parallel.objective = objective  # type: ignore[assignment]
    return bench


def weights(bench: Bench) -> dict[str, torch.Tensor]:
    return dict(bench.model.state_dict())


def log(folder: Path) -> str:
    return (folder / "train.log").read_text("utf-8")


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("options", [{}, {"ema": 0.9}, {"clip_norm": 0.0}], ids=str)
def test_a_bad_update_is_skipped_counted_and_told_of(tmp_path: Path, gradient: bool, options: dict[str, Any]) -> None:
    before: dict[str, torch.Tensor] = {}

    def spoilt(update: int, returns: int) -> bool:
        before.update({name: value.clone() for name, value in weights(bench).items()} if update == 7 else {})
        after = {name: value.clone() for name, value in weights(bench).items()} if update == 8 else before
        assert_same(before, after)
        return update == 7

    bench = fragile(tmp_path, spoilt, gradient, updates=20, **options)
    state = bench.trainer.fit()
    assert (state.skipped, state.skipped_in_row, state.returns, state.update) == (1, 0, 0, 20)
    assert all(bool(value.isfinite().all()) for value in weights(bench).values())
    assert [line for line in bench.trainer.run.history() if "skipped" in line] == [{"update": 7, "skipped": 1}]
    assert "update 7 was skipped (1 so far), because its loss or gradient is NaN or inf" in log(tmp_path)
    losses = [line["train_loss"] for line in bench.trainer.run.history() if "train_loss" in line]
    assert losses == [pytest.approx(loss, abs=3.0) for loss in losses]


@pytest.mark.parametrize("gradient", [False, True])
def test_without_waiting_for_the_device_the_same_weights_come_out(tmp_path: Path, gradient: bool) -> None:
    """As on a GPU: the fused optimiser is told on the device, and who was skipped is read later."""
    waiting = fragile(tmp_path / "a", lambda update, _: update in (3, 4, 15), gradient, updates=20)
    waiting.trainer.fit()
    running = fragile(tmp_path / "b", lambda update, _: update in (3, 4, 15), gradient, updates=20)
    running.trainer.step.waits = False
    state = running.trainer.fit()
    assert state.skipped == 3
    assert "update 15 was skipped" in log(tmp_path / "b")
    assert_same(weights(waiting), weights(running))
    losses = [
        [line["train_loss"] for line in bench.trainer.run.history() if "train_loss" in line]
        for bench in (waiting, running)
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


@pytest.mark.parametrize("without_waiting", [False, True])
def test_an_overflow_in_fp16_is_not_counted_as_applied(tmp_path: Path, without_waiting: bool) -> None:
    """A few of them are usual: nothing goes back, and the weights are those of training without these updates' text."""
    bench = fragile(tmp_path, lambda update, _: update in (7, 10), gradient=True, updates=20, precision="fp16")
    bench.trainer.step.waits = not without_waiting
    state = bench.trainer.fit()
    assert (state.skipped, state.skipped_in_row, state.returns, state.update) == (2, 0, 0, 20)
    assert "update 7 was skipped (1 so far), because its gradient is too large for fp16; the scale of the " in log(
        tmp_path
    )
    assert bench.trainer.step.scaler.get_scale() == 2.0**14
    assert ("last", 10) in bench.saved  # the weights are as they were before the overflow


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("first", [1, 8])
def test_fp16_ends_at_a_least_scale_with_advice(tmp_path: Path, first: int, gradient: bool) -> None:
    bench = fragile(tmp_path, lambda update, _: update >= first, gradient, updates=100, precision="fp16")
    expected = r"NaN or inf in 30 updates in a row, .* scaled to 6e-05: .*trainer\.precision=bf16 or fp32, or a lower"
    with pytest.raises(TolkaError, match=expected):
        bench.trainer.fit()
    assert bench.trainer.state.update == first + 29
    assert ("last", 20) not in bench.saved  # after more than ten in a row
    assert all(bool(value.isfinite().all()) for value in weights(bench).values())


@pytest.mark.slow
@pytest.mark.parametrize("saved_before", [True, False])
def test_too_many_in_a_row_and_it_goes_back_to_half_the_rate(tmp_path: Path, saved_before: bool) -> None:
    """With half the rate all is well here; what was saved last, or the beginning, is where it goes on."""
    bad = range(23, 60) if saved_before else range(3, 60)
    bench = fragile(tmp_path, lambda update, returns: update in bad and not returns, updates=40)
    state = bench.trainer.fit()
    assert (state.returns, state.skipped, state.update) == (1, 11, 40)
    back = 20 if saved_before else 0
    assert f"going back from update {bad[0] + 10} to {back}, to 1/2 of the learning rate" in log(tmp_path)
    rates = {line["update"]: line["lr"] for line in bench.trainer.run.history() if "lr" in line}
    straight = Bench(tmp_path / "b", updates=40)
    straight.trainer.fit()
    for line in straight.trainer.run.history():
        if "lr" in line:
            assert rates[line["update"]] == pytest.approx(line["lr"] / (2 if line["update"] > back else 1))


@pytest.mark.parametrize("options", [{}, {"lora_rank": 2}, {"lora_rank": 2, "ema": 0.9}, {"ema": 0.9}], ids=str)
def test_the_beginning_comes_back_as_it_was(tmp_path: Path, options: dict[str, Any]) -> None:
    """Adapters, too, whose resume state has the whole weights."""
    bench = fragile(tmp_path, lambda update, returns: update in range(3, 60) and not returns, updates=40, **options)
    first = {name: weight.clone() for name, weight in weights(bench).items()}
    real, seen = bench.trainer.resume, list[bool]()

    def resume(*given: Any) -> None:
        changed = any(not torch.equal(weight, first[name]) for name, weight in weights(bench).items())
        real(*given)
        assert_same(first, weights(bench))
        seen.append(changed)

    bench.trainer.resume = resume  # type: ignore[assignment, method-assign]
    bench.trainer.fit()
    assert seen == [True]


@pytest.mark.slow
def test_what_never_gets_better_ends_with_advice(tmp_path: Path) -> None:
    bench = fragile(tmp_path, lambda update, returns: update > 12, updates=1000)
    expected = r"in 11 updates in a row, up to update 23, also after 3 attempts .*: try a lower optimizer\.lr"
    with pytest.raises(TolkaError, match=expected):
        bench.trainer.fit()
    assert ("last", 10) in bench.saved
    assert bench.trainer.state.returns == 3


@pytest.mark.slow
def test_a_run_with_mishaps_goes_on_exactly(tmp_path: Path) -> None:
    """Interrupted in the middle of a row of skipped updates, and between going back and the next save."""

    def spoilt(update: int, returns: int) -> bool:
        return update in (5, 6) or (update in range(13, 30) and not returns)

    def run(folder: str, updates: int) -> Bench:
        return fragile(tmp_path / folder, spoilt, updates=updates)

    straight = run("a", 24)
    straight.trainer.fit()
    for stop, saved_at in ((6, None), (8, 8), (15, 10), (18, 18), (22, 22)):
        first = run(f"b{stop}", 24)
        real = first.trainer._train_step

        def stopping(window: Any, real: Any = real, first: Bench = first, stop: int = stop) -> Any:
            made = real(window)
            if first.trainer.state.update == stop and (stop < 18 or first.trainer.state.returns):
                first.trainer.stop("asked")
            return made

        first.trainer._train_step = stopping  # type: ignore[method-assign]
        assert first.trainer.fit().update == stop
        assert (first.last and first.last.facts["train"]["update"]) == saved_at
        second = run(f"b{stop}", 24)
        if first.last is not None:
            second.last, second.weights = first.last, first.weights
            second.trainer.resume(second.last_state())
        second.trainer.fit()
        assert_same(weights(straight), weights(second))
        assert second.trainer.state.skipped == straight.trainer.state.skipped
        assert second.trainer.state.returns == straight.trainer.state.returns == 1


def test_a_stop_cuts_a_validation_short_and_the_run_goes_on_with_it(tmp_path: Path) -> None:
    straight = Bench(tmp_path / "a", updates=25, validate_every=10)
    straight.trainer.fit()
    first = Bench(tmp_path / "b", updates=25, validate_every=10)
    real = first.validate

    def interrupted(update: int, what: str, tick: Callable[[], object]) -> Any:
        if update == 20:
            first.trainer.stop("asked")
        return real(update, what, tick)

    first.validate_with(interrupted)
    state = first.trainer.fit()
    assert (state.update, state.validated_at) == (20, 10)
    assert first.saved[-1] == ("last", 10)
    goes_on_to_the_same_weights(first, straight, tmp_path / "b", updates=25, validate_every=10)
    lines = [line["update"] for line in straight.trainer.run.history() if "bleu" in line]
    assert lines == [line["update"] for line in first.trainer.run.history() if "bleu" in line] == [10, 20, 25]


def test_a_stop_that_puts_a_validation_off_changes_no_line(tmp_path: Path) -> None:
    """What is averaged over updates begins anew with each validation, also where another process makes it."""
    options: dict[str, Any] = {"updates": 20, "validate_every": 10, "log_every": 7}
    straight = Bench(tmp_path / "a", **options)
    straight.trainer.fit()
    first = Bench(tmp_path / "b", **options)
    first.stop_after(10)
    assert (first.trainer.fit().update, first.trainer.state.validated_at) == (10, 0)
    goes_on_to_the_same_weights(first, straight, tmp_path / "b", **options)
    losses = [
        [line["train_loss"] for line in bench.trainer.run.history() if "train_loss" in line]
        for bench in (straight, first)
    ]
    assert losses[0] == losses[1]
    assert len(losses[0]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("accumulate", [1, 3])
def test_text_that_cannot_be_read_on_costs_no_update(tmp_path: Path, accumulate: int) -> None:
    """A stream whose server went away: last/ has all that was learnt, and the run goes on from there."""
    options: dict[str, Any] = {"updates": 20, "validate_every": 10, "accumulate": accumulate}
    straight = Bench(tmp_path / "a", **options)
    straight.trainer.fit()
    first = Bench(tmp_path / "b", **options)
    real, read = first.trainer.loader.batch, iter(range(10**6))

    def failing(epoch: int, number: int) -> Batch:
        if next(read) == 13 * accumulate + accumulate - 1:
            raise DataError("the stream broke off")
        return real(epoch, number)

    first.trainer.loader.batch = failing  # type: ignore[method-assign]
    with pytest.raises(DataError, match="broke off"):
        first.trainer.fit()
    assert first.saved[-1] == ("last", 10)  # with the scores of update 10
    assert first.last is not None
    assert first.last.facts["train"]["update"] == 13
    goes_on_to_the_same_weights(first, straight, tmp_path / "b", **options)


def test_the_first_error_is_told_of_where_the_disk_is_full_too(tmp_path: Path) -> None:
    bench = Bench(tmp_path, updates=20, validate_every=10)

    def failing(epoch: int, number: int) -> Batch:
        bench.full = True
        raise DataError("the stream broke off")

    bench.trainer.loader.batch = failing  # type: ignore[method-assign]
    bench.trainer.state.update = 5
    with pytest.raises(TolkaError):
        bench.trainer.fit()
    assert "the stream broke off" in log(tmp_path)


def test_the_loader_goes_back_to_where_an_update_began(tmp_path: Path) -> None:
    """A stream remembers where two buffers begin: those of the place that is saved must be among them."""
    bench = Bench(tmp_path, updates=20, accumulate=3)
    loader, read, back = bench.trainer.loader, list[int](), list[Any]()
    real = loader.batch

    def failing(epoch: int, number: int) -> Batch:
        read.append(number)
        if len(read) == 6:
            raise DataError("the stream broke off")
        return real(epoch, number)

    loader.batch = failing  # type: ignore[method-assign]
    loader.state = lambda: {"read": len(read)}  # type: ignore[method-assign]
    loader.load_state = back.append  # type: ignore[method-assign, assignment]
    with pytest.raises(DataError):
        bench.trainer.fit()
    assert back == [{"read": 3}]


def test_a_first_save_is_known_at_once(tmp_path: Path) -> None:
    """Killed after it, a run with a damaged last/ is not taken for one that had saved nothing."""
    bench = Bench(tmp_path, updates=30, validate_every=10)
    real = bench.trainer._train_step

    def stopping(window: Any) -> Any:
        assert (tmp_path / ".unsaved").exists() or bench.trainer.state.update >= 10
        return killed() if bench.trainer.state.update == 15 else real(window)

    bench.trainer._train_step = stopping  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        bench.trainer.fit()
    assert bench.saved[-1] == ("last", 10)
    assert not (tmp_path / ".unsaved").exists()


def test_a_run_that_is_made_longer_has_the_lines_of_a_long_one(tmp_path: Path) -> None:
    options: dict[str, Any] = {"validate_every": 10, "log_every": 7}
    straight = Bench(tmp_path / "a", updates=20, **options)
    straight.trainer.fit()
    first = Bench(tmp_path / "b", updates=12, **options)
    first.trainer.fit()
    goes_on_to_the_same_weights(first, straight, tmp_path / "b", updates=20, **options)
    losses = [
        [line["train_loss"] for line in bench.trainer.run.history() if "train_loss" in line]
        for bench in (straight, first)
    ]
    assert losses[0] == losses[1]


def test_a_validation_that_is_made_again_has_one_line(tmp_path: Path) -> None:
    """Stopped before it, then killed after it was written down and before last/ was saved."""
    straight = Bench(tmp_path / "a", updates=10)
    straight.trainer.fit()
    first = Bench(tmp_path / "b", updates=10)
    first.stop_after(10)
    first.trainer.fit()
    second = Bench(tmp_path / "b", updates=10)
    second.last, second.weights = first.last, first.weights
    second.trainer.resume(second.last_state())
    second.trainer._save_last = killed  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        second.trainer.fit()
    assert sum("bleu" in line for line in second.trainer.run.history()) == 1
    goes_on_to_the_same_weights(first, straight, tmp_path / "b", updates=10)
    assert [line["update"] for line in first.trainer.run.history()] == [5, 10, 10]


def killed() -> None:
    raise KeyboardInterrupt


def test_a_place_is_kept_in_proportion_where_batches_have_another_size(tmp_path: Path) -> None:
    """As run.override with other batching.tokens makes them."""
    first = Bench(tmp_path / "a", updates=6)
    first.trainer.fit()
    assert first.last is not None
    batches = len(first.trainer.loader.plan(0))
    second = Bench(tmp_path / "b", updates=20)
    second.trainer.loader.resize(64)
    now = len(second.trainer.loader.plan(0))
    assert batches > first.trainer.state.batch == 6 > now
    second.last, second.weights = first.last, first.weights
    second.trainer.resume(second.last_state())
    assert second.trainer.state.batch == 6 * now // batches
    assert f"epoch 1 has {now} batches now, not {batches}: continuing at batch" in log(tmp_path / "b")
    assert second.trainer.fit().update == 20


def test_saving_on_demand_goes_on(tmp_path: Path) -> None:
    bench = Bench(tmp_path, updates=20, validate_every=10)
    real = bench.trainer._train_step

    def asking(window: Any) -> Any:
        made = real(window)
        if bench.trainer.state.update == 13:
            bench.trainer.save_soon()
        return made

    bench.trainer._train_step = asking  # type: ignore[method-assign]
    assert bench.trainer.fit().update == 20
    assert bench.saved == [("best", 10), ("last", 10), ("last", 10), ("best", 20), ("last", 20)]


def test_a_save_that_was_asked_for_before_the_first_update_is_made(tmp_path: Path) -> None:
    """As when the signal comes while the model is still being built."""
    bench = Bench(tmp_path, updates=20)
    bench.trainer.save_soon()
    bench.trainer.fit()
    assert bench.saved[0] == ("last", 0)
