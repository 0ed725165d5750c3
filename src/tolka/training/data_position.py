"""The position of training in its text, and the batches that follow it."""

from collections.abc import Callable

from tolka.data.loader import Batches, Share
from tolka.distributed.ranks import ALONE, Ranks
from tolka.errors import TolkaError
from tolka.training.state import TrainState


class DataPosition:
    """Reads the batches of each update. The position itself is in TrainState, to be saved with everything else."""

    def __init__(self, loader: Batches, accumulate: int, log: Callable[[str], None], ranks: Ranks = ALONE) -> None:
        """accumulate: batches per update, shared out over the ranks."""
        self.loader, self._accumulate, self._log, self._ranks = loader, accumulate, log, ranks

    def shares(self, state: TrainState) -> list[Share]:
        """Return this rank's shares of the batches of one update, and move the position once all of them were read.

        TolkaError when the text cannot be read any further; the position is then unchanged.
        """
        # The position moves only when the whole group was read: what is saved after an error is read again on resume.
        epoch, batch, before = state.epoch, state.batch, self.loader.state()
        shares: list[Share] = []
        try:
            for _ in range(self._accumulate):
                shares.append(self.loader.share(epoch, batch, self._ranks))
                batch += 1
                if batch == len(self.loader.plan(epoch)):
                    epoch, batch = epoch + 1, 0
        except TolkaError:
            self.loader.load_state(before)
            raise
        state.epoch, state.batch = epoch, batch
        return shares

    def rescale(self, state: TrainState, batches: int | None) -> None:
        """Rescale the position if the epoch now has another number of batches than `batches`."""
        if batches is None or not state.batch or batches == (now := len(self.loader.plan(state.epoch))):
            return
        # In proportion: the same share of the epoch is done. Another ceiling has cut other batches, so that none is the
        # one at which training stopped.
        before, state.batch = state.batch, min(now - 1, state.batch * now // batches)
        self._log(
            f"note: {self.loader.round} {state.epoch + 1} has {now} batches now, not {batches}: continuing at batch "
            f"{state.batch} instead of {before}, so that some of its pairs are read twice, or not at all"
        )
