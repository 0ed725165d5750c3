"""Where in the text a training is, and what it reads there next."""

from collections.abc import Callable

from tolka.data.batch import Batch
from tolka.data.loader import Batches
from tolka.errors import TolkaError
from tolka.training.state import TrainState


class Reading:
    """Gives an update's batches; the place itself is the state's, so that it is saved with all else."""

    def __init__(self, loader: Batches, accumulate: int, log: Callable[[str], None]) -> None:
        """accumulate: batches of an update."""
        self._loader, self._accumulate, self._log = loader, accumulate, log

    def group(self, state: TrainState) -> list[Batch]:
        """The batches of one update; moves the place, of state and loader, once all of them were read.

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
        """How many the round at hand has, to be saved beside the place; None where it has not begun."""
        return self._loader.batches_at_hand(state.epoch)

    def keep_place(self, state: TrainState, batches: int | None) -> None:
        """In proportion, where other settings cut the round into another number of batches than `batches` gave."""
        if batches is None or not state.batch or batches == (now := len(self._loader.plan(state.epoch))):
            return
        before, state.batch = state.batch, min(now - 1, state.batch * now // batches)
        self._log(
            f"note: {self._loader.round} {state.epoch + 1} has {now} batches now, not {batches}: going on at batch "
            f"{state.batch} instead of {before}, so that some of its pairs are read twice, or not at all"
        )
