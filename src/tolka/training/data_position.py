"""The position of a training in its text, and the batches that it reads there."""

from collections.abc import Callable

from tolka.data.batch import Batch
from tolka.data.loader import Batches
from tolka.errors import TolkaError
from tolka.training.state import TrainState


class DataPosition:
    """Gives each update its batches. The position itself is in TrainState, so that it is saved with everything else."""

    def __init__(self, loader: Batches, accumulate: int, log: Callable[[str], None]) -> None:
        """accumulate: batches per update."""
        self._loader, self._accumulate, self._log = loader, accumulate, log

    def group(self, state: TrainState) -> list[Batch]:
        """Return the batches of one update, and move the position once all of them were read.

        TolkaError when the text cannot be read any further; the place is then where it was.
        """
        group, epoch, batch, place = [], state.epoch, state.batch, self._loader.state()
        try:
            for _ in range(self._accumulate):
                group.append(self._loader.batch(epoch, batch))
                batch += 1
                if batch == len(self._loader.plan(epoch)):
                    epoch, batch = epoch + 1, 0
        except TolkaError:
            self._loader.load_state(place)
            raise
        state.epoch, state.batch = epoch, batch
        return group

    def batches(self, state: TrainState) -> int | None:
        """Return how many batches the current epoch has, to be saved beside the position; None before it begins."""
        return self._loader.batches_at_hand(state.epoch)

    def keep_place(self, state: TrainState, batches: int | None) -> None:
        """Scale the position where other settings divide the epoch into another number of batches than `batches`."""
        if batches is None or not state.batch or batches == (now := len(self._loader.plan(state.epoch))):
            return
        before, state.batch = state.batch, min(now - 1, state.batch * now // batches)
        self._log(
            f"note: {self._loader.round} {state.epoch + 1} has {now} batches now, not {batches}: continuing at batch "
            f"{state.batch} instead of {before}, so that some of its pairs are read twice, or not at all"
        )
