"""A token store gives back the rows that were written, and notices when its files do not fit together."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tolka.data.batch import collate
from tolka.data.buckets import BatchingConfig
from tolka.data.loader import Loader
from tolka.data.store import PartTags, TokenStore, write_store
from tolka.distributed.ranks import Ranks
from tolka.errors import DataError
from tolka.text.windows import full_windows
from tolka.tokenizer.language_tags import Tags

ROWS: list[tuple[list[int], list[int]]] = [([5, 6, 7], [8]), ([], [9, 9]), ([70_000], [])]


def write(folder: Path, rows: list[tuple[list[int], list[int]]], vocabularies: tuple[int, int]) -> int:
    """Two rows at a time."""
    stores = (TokenStore.from_rows([s for s, _ in some], [t for _, t in some]) for some in full_windows(rows, 2))
    return write_store(folder, stores, vocabularies)


def read(store: TokenStore) -> list[tuple[list[int], list[int]]]:
    return [(store.source(i).tolist(), store.target(i).tolist()) for i in range(len(store))]


@pytest.mark.parametrize("vocabularies", [(2**16 + 5000, 10), (2**17, 2**17)])
def test_rows_come_back(tmp_path: Path, vocabularies: tuple[int, int]) -> None:
    assert write(tmp_path, ROWS, vocabularies) == 3
    store = TokenStore.open(tmp_path)
    assert read(store) == ROWS
    assert store.source_lengths.tolist() == [3, 0, 1]
    assert store.target_lengths.tolist() == [1, 2, 0]


def test_a_batch_of_some_rows_in_any_order(tmp_path: Path) -> None:
    write(tmp_path, ROWS, (2**17, 2**17))
    for store in (TokenStore.open(tmp_path), TokenStore.from_rows([s for s, _ in ROWS], [t for _, t in ROWS])):
        batch, expected = store.batch(np.array([2, 0])), collate([[70_000], [5, 6, 7]], [[], [8]])
        for name, value in vars(expected).items():
            assert torch.equal(torch.as_tensor(getattr(batch, name)), torch.as_tensor(value)), name
        assert store.batch(np.array([1])).source.tolist() == [[2]]


@given(st.lists(st.tuples(*[st.lists(st.integers(0, 2**31 - 1), max_size=4)] * 2), max_size=5))
def test_rows_in_memory(rows: list[tuple[list[int], list[int]]]) -> None:
    assert read(TokenStore.from_rows([s for s, _ in rows], [t for _, t in rows])) == rows


def test_the_largest_id_of_two_bytes_survives(tmp_path: Path) -> None:
    write(tmp_path, [([65_535], [0])], (2**16, 2**16))
    assert read(TokenStore.open(tmp_path)) == [([65_535], [0])]
    assert (tmp_path / "source.ids").stat().st_size == 2


def test_an_empty_store(tmp_path: Path) -> None:
    assert write(tmp_path, [], (10, 10)) == 0
    assert len(TokenStore.open(tmp_path)) == 0


@pytest.mark.parametrize("name", ["store.json", "source.ids", "source.offsets", "target.ids", "target.offsets"])
def test_a_missing_or_cut_file(tmp_path: Path, name: str) -> None:
    write(tmp_path, ROWS, (2**17, 10))
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[:-1])
    with pytest.raises(DataError, match=r"the token store is damaged .*; delete the folder"):
        TokenStore.open(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match="the token store is damaged"):
        TokenStore.open(tmp_path)


@pytest.mark.parametrize("facts", [[], {"pairs": "3"}, {"dtypes": None}, {"dtypes": {"source": "no such"}}])
def test_spoilt_facts(tmp_path: Path, facts: object) -> None:
    write(tmp_path, ROWS, (2**17, 10))
    if isinstance(facts, dict):
        facts = {**json.loads((tmp_path / "store.json").read_text()), **facts}
    (tmp_path / "store.json").write_text(json.dumps(facts))
    with pytest.raises(DataError, match="the token store is damaged"):
        TokenStore.open(tmp_path)


class Watched(np.ndarray[Any, np.dtype[np.int32]]):
    """Ids that count how many of them are copied."""

    copied: ClassVar[list[int]] = []

    def __getitem__(self, which: Any) -> Any:
        found = super().__getitem__(which)
        self.copied.append(found.size)
        return found


def test_a_rank_copies_only_the_ids_of_its_share() -> None:
    store = TokenStore.from_rows([[5, 6, 7], [8], [9, 10]] * 40, [[11, 12], [13], [14, 15, 16]] * 40)
    watched = replace(store, source_ids=store.source_ids.view(Watched), target_ids=store.target_ids.view(Watched))
    loader = Loader(watched, BatchingConfig(tokens=128, max_length=16), seed=1)
    loader.plan(0)
    assert Watched.copied == []
    for rank in range(3):
        own = loader.share(0, 0, Ranks(rank, 3)).batch
        assert own is not None
        ends = 2 * len(own.source)  # </s> is not in the store
        assert sum(Watched.copied) == int(own.source_lengths.sum() + own.target_lengths.sum()) - ends
        Watched.copied.clear()


def test_a_store_knows_which_pairs_it_has() -> None:
    store = TokenStore.from_rows([[1, 2, 3], [4], [], [1, 9, 3]], [[7], [8, 8], [5], [7]])
    pairs = [([1, 9, 3], [7]), ([1, 2, 3], [6]), ([4], [8, 8]), ([1, 5, 3], [7]), ([], [5])]
    assert store.has(pairs) == [True, False, True, False, False]
    assert store.has([]) == TokenStore.from_rows([], []).has([]) == []
    assert TokenStore.from_rows([], []).has(pairs) == [False] * 5


def test_tags_are_in_a_batch_and_count_as_no_tokens() -> None:
    """What ranks divide a gradient by is what their batches predict."""
    store = TokenStore.from_rows([source for source, _ in ROWS], [target for _, target in ROWS])
    tagged = replace(store, tags=PartTags((Tags((4,), (5,)),)))
    rows = np.array([0, 1, 2])
    batch = tagged.batch(rows)
    assert batch.target_in[:, 1].tolist() == [5, 5, 5]
    assert batch.tokens == len(batch.targets) == tagged.target_tokens(rows) == store.target_tokens(rows) == 6
