"""What each process of a training does with the prepared text: the order of an epoch, and its share of each batch.

    python benchmarks/loading.py [PAIRS ...]        # by default 1000000 4000000

The order is made of lengths alone, so that no text is needed. Shares are cut from 100 000 made-up pairs, in batches of
25 000 tokens, as one of eight processes.
"""

import statistics
import sys
import time

import numpy as np

from tolka.data.buckets import BatchingConfig, make_batches
from tolka.data.loader import Loader
from tolka.data.store import TokenStore
from tolka.distributed.ranks import Ranks

ROUNDS = 5
BATCHES = BatchingConfig(tokens=25_000, max_length=200)
RANKS, PAIRS, SHORTEST, LONGEST, VOCABULARY = 8, 100_000, 5, 55, 30_000


def main() -> None:
    draw = np.random.default_rng(0)
    for pairs in map(int, sys.argv[1:] or ("1000000", "4000000")):
        sources, targets = (draw.integers(SHORTEST, LONGEST, pairs).astype(np.int32) for _ in range(2))
        seconds = []
        for epoch in range(ROUNDS):
            began = time.perf_counter()
            make_batches(sources, targets, BATCHES, seed=1, epoch=epoch)
            seconds.append(time.perf_counter() - began)
        middle = statistics.median(seconds)
        print(f"{pairs:,} pairs: {middle:.2f} s for the order of an epoch, {middle / pairs * 1e9:.0f} ns a pair")
    rows = [draw.integers(4, VOCABULARY, count).tolist() for count in draw.integers(SHORTEST, LONGEST, PAIRS)]
    loader = Loader(TokenStore.from_rows(rows, rows[::-1]), BATCHES, seed=1)
    batches, seconds = len(loader.plan(0)), []
    for rank in range(ROUNDS):
        began = time.perf_counter()
        for number in range(batches):
            loader.share(0, number, Ranks(rank, RANKS))
        seconds.append(time.perf_counter() - began)
    print(f"one of {RANKS} processes: {1e3 * statistics.median(seconds) / batches:.2f} ms for its share of a batch")


if __name__ == "__main__":
    main()
