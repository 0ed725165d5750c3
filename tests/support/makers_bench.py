"""Prepares a corpus as one of several makers, in small shards; see test_makers.py.

    python makers_bench.py CORPUS CACHE [STAGE ...]

STAGE: a key of STAGES; the maker says when it is in the middle of it, and waits there for a line of input.
"""

import sys
from pathlib import Path
from typing import Any

from tolka.data import preparation, shards
from tolka.data.buckets import BatchingConfig
from tolka.data.preparation import Order, Prepared, prepare
from tolka.data.shards import Shard
from tolka.system.progress import Say, say, silent
from tolka.text.cleaning.steps import CleaningConfig
from tolka.text.corpora.files import FilesConfig
from tolka.tokenizer.tokenizer import TokenizerConfig

SHARD_PAIRS = 7
STAGES: dict[str, tuple[Any, str, int]] = {  # a function that is called in the middle of it, and which call
    "read": (Shard, "write", 3),
    "clean": (shards, "marks_of", 1),  # the cleaned text is written, but not yet in its place
    "train": (preparation, "train_tokenizer", 1),
    "encode": (shards, "write_store", 1),
    "deliver": (preparation, "write_store", 1),
}


def prepared(corpus: Path, cache: Path, notes: Say = silent) -> Prepared:
    config = FilesConfig(source="xa", target="xb", root=str(corpus), train=["train"], valid=["valid"])
    cleaning = CleaningConfig(duplicates="exact", control="strip")
    order = Order(config.open(), cleaning, TokenizerConfig(vocab_size=320), BatchingConfig(512, max_length=64))
    return prepare(order, cache, 1, notes)


def stay_in(stage: str) -> None:
    """Say so when this stage is reached, and go on after a line of input."""
    owner, name, call = STAGES[stage]
    real, calls = getattr(owner, name), list[str]()

    def staying(*given: Any, **options: Any) -> Any:
        calls.append(stage)
        if len(calls) == call:
            print(stage, flush=True)
            sys.stdin.readline()
        return real(*given, **options)

    setattr(owner, name, staying)


def main() -> None:
    vars(preparation).update(SHARD_PAIRS=SHARD_PAIRS)
    corpus, cache, *stages = sys.argv[1:]
    for stage in stages:
        stay_in(stage)
    prepared(Path(corpus), Path(cache), say)


if __name__ == "__main__":
    main()
