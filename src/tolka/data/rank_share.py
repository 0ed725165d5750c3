"""A rank's share of a batch, where several processes train one model together."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tolka.data.batch import Batch
from tolka.data.store import TokenStore
from tolka.distributed.ranks import Ranks


@dataclass(frozen=True)
class Share:
    """One rank's part of a batch. tokens: of the whole batch.

    counts: False for a rank that is left without a pair; its part is then the first pair, to be computed in vain, as
    all ranks have to compute together.
    """

    batch: Batch
    tokens: int
    counts: bool = True


def rank_share(store: TokenStore, rows: npt.NDArray[np.int64], number: int, ranks: Ranks) -> Share:
    """Return this rank's pairs of a batch, of several ranks. rows: of the batch's pairs. number: of the batch."""
    # A batch's pairs are in the order of their lengths: dealt out like cards, they give every rank about as many
    # positions to compute. A pair that is left over goes to another rank in each batch.
    own = rows[(ranks.rank + number) % ranks.size :: ranks.size]
    # The tokens of all ranks, from the lengths alone: the other ranks' pairs are not read.
    return Share(store.batch(own if len(own) else rows[:1]), store.target_tokens(rows), len(own) > 0)
