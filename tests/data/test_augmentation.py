"""Augmentation of an epoch's ids: few pairs, another few in each epoch, the same on any number of ranks."""

from dataclasses import replace
from pathlib import Path

import pytest

from tolka.data.rewriting import Augmenter
from tolka.data.store import PartTags, TokenStore
from tolka.formats.any_model import load_any
from tolka.model_directory.read import load_model
from tolka.text.direction import UNKNOWN
from tolka.tokenizer.language_tags import NO_TAGS
from tolka.tokenizer.tokenizer import Tokenizer

LINES = [f"lantern kettle harbour {number} walnut." for number in range(1000)]


@pytest.fixture(scope="module")
def tokenizer(trained: Path) -> Tokenizer:
    return load_any(trained).tokenizer


@pytest.fixture(scope="module")
def store(tokenizer: Tokenizer) -> TokenStore:
    return TokenStore.from_rows(tokenizer.encode_source(LINES), tokenizer.encode_target(LINES))


def texts(tokenizer: Tokenizer, store: TokenStore) -> list[tuple[str, str]]:
    rows = range(len(store))
    sources = tokenizer.decode_source([store.source(row).tolist() for row in rows])
    return [*zip(sources, tokenizer.decode_target([store.target(row).tolist() for row in rows]), strict=True)]


def test_a_share_of_the_pairs_is_changed_and_others_in_each_epoch(tokenizer: Tokenizer, store: TokenStore) -> None:
    augmenter = Augmenter(tokenizer, {"upper": 0.1, "join": 0.05}, seed=1, max_length=200, directions=[UNKNOWN])
    epochs = [texts(tokenizer, augmenter(store, epoch)) for epoch in (0, 1, 0)]
    assert epochs[0] == epochs[2] != epochs[1]
    upper = {row for row, (source, _) in enumerate(epochs[0]) if source.isupper()}
    joined = {row for row, (source, _) in enumerate(epochs[0]) if source.count(".") == 2}
    # Of 1000, within three standard deviations.
    assert 72 <= len(upper) <= 128
    assert 30 <= len(joined) <= 70
    assert all(epochs[0][row][1].isupper() for row in upper)
    for row in joined:
        first, second = (text.split(". ") for text in epochs[0][row])
        assert first == second
        assert LINES[row].startswith(first[0])
    for row in {*range(1000)} - upper - joined:
        assert epochs[0][row] == (LINES[row], LINES[row])
    assert texts(tokenizer, Augmenter(tokenizer, {"upper": 0.1}, 2, 200, [UNKNOWN])(store, 0)) != epochs[0]


def test_a_pair_that_gets_too_long_stays(tokenizer: Tokenizer, store: TokenStore) -> None:
    longest = int(max(store.source_lengths))
    made = Augmenter(tokenizer, {"join": 0.99}, 1, longest, [UNKNOWN])(store, 0)
    assert texts(tokenizer, made) == [(line, line) for line in LINES]


def test_joined_pairs_are_of_one_part_and_a_leading_symbol_stays(tokenizer: Tokenizer) -> None:
    """Parts are of one direction each; a symbol says that a pair is synthetic."""
    lines = [*(f"⟦bt⟧ lantern {number}." for number in range(300)), *(f"kettle {number}." for number in range(300))]
    rows = tokenizer.encode_source(lines), tokenizer.encode_target([line.removeprefix("⟦bt⟧ ") for line in lines])
    store = replace(TokenStore.from_rows(*rows), tags=PartTags((NO_TAGS, NO_TAGS), (300, 300)))
    for kind in ("join", "upper", "words", "tags"):
        made = texts(
            tokenizer, Augmenter(tokenizer, {kind: 0.99}, 1, 200, [UNKNOWN] * 2, symbols=["⟦bt⟧", "<br>"])(store, 0)
        )
        assert all(source.startswith("⟦bt⟧ ") and source.count("⟦bt⟧") == 1 for source, _ in made[:300])
        assert not any("⟦bt⟧" in source.casefold() for source, _ in made[300:])
        if kind == "join":
            assert all(target.count("lantern") in (1, 2) and "kettle" not in target for _, target in made[:300])
            assert all("lantern" not in target for _, target in made[300:])


@pytest.mark.slow
def test_a_training_reads_them_and_goes_on_exactly(tiny: list[str], tmp_path: Path) -> None:
    """Interrupted in the second epoch, it has the same weights in the end."""
    from guarded_command import guarded

    from tolka.cli import train

    settings = [*tiny, "batching.augment=[upper:0.3,typos:0.3]", "batching.sampling=0.1", "trainer.validate_every=3"]
    settings = [each for each in settings if not each.startswith(("trainer.updates", "run.dir"))]
    for name, ends in (("straight", [9]), ("again", [6, 9]), ("plain", [9])):
        for end in ends:
            own = [each for each in settings if name != "plain" or "augment" not in each]
            assert guarded(train.run, [*own, f"trainer.updates={end}", f"run.dir={tmp_path / name}"]) == 0
    weights = [
        {key: tensor.tolist() for key, tensor in load_model(tmp_path / name / "last").model.state_dict().items()}
        for name in ("straight", "again", "plain")
    ]
    assert weights[0] == weights[1] != weights[2]
