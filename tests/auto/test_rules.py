"""Settings are chosen by the size of a text."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from tolka.auto.rules import (
    FRESH,
    MARGIN,
    OF_TRANSFORMERS,
    SIZES,
    TUNED,
    choices_table,
    choose,
    choose_tuning,
    usual_share,
)
from tolka.auto.text_facts import TextFacts
from tolka.formats.any_model import tokenizer_of
from tolka.models.options import MODELS
from tolka.text.characters import CharacterForm
from tolka.text.corpora.base import Corpus
from tolka.text.direction import Direction
from tolka.text.pairs import ParallelFiles


def text(pairs: int, words: float = 7.0, repetition: float = 1.0) -> TextFacts:
    return TextFacts(pairs, words, repetition, 60, 0.0, 500, False)


def chosen_for(facts: TextFacts, family: str = "any", leaves_to: str = "html") -> dict[str, Any]:
    return {choice.key: choice.value for choice in choose(facts, family, leaves_to=leaves_to)}


@pytest.mark.parametrize("family", ["any", "transformer", "rnn"])
@pytest.mark.parametrize("pairs", [1, 8, 1000, 10_000, 100_000, 10_000_000])
def test_every_size_has_settings_of_the_family_that_is_wanted(pairs: int, family: str) -> None:
    chosen = chosen_for(text(pairs), family)
    name = MODELS.presets()[chosen["model"]].name  # type: ignore[attr-defined]
    assert {*FRESH} - chosen.keys() == ({*OF_TRANSFORMERS} if name == "rnn" else set())
    assert family in ("any", name)


def test_sizes_are_in_order_and_the_last_has_no_end() -> None:
    for sizes in SIZES.values():
        words = [size.words for size in sizes]
        assert words == sorted(set(words))
        assert words[-1] == float("inf")


def test_one_text_by_hand() -> None:
    """10 000 pairs of 7 words: 1.88 (2.15 - 0.27) subwords a word, 141 600 tokens with </s>, 138 batches of 1024."""
    expected = {
        "model": "transformer_tiny",
        "model.dropout": 0.2,
        "tokenizer.vocab_size": 2000,
        "batching.tokens": 1024,
        "optimizer.lr": 0.003,
        "scheduler": "wsd",
        "scheduler.warmup": 200,
        # Three times the usual 40 passes at most; a validation after each; four that bring nothing.
        "trainer.epochs": 120,
        "trainer.validate_every": 138,
        "trainer.patience": 4,
        "trainer.metric": "bleu",
    }
    chosen = chosen_for(text(10_000))
    assert {key: chosen[key] for key in expected} == expected
    [recurrent] = [each.value for each in choose(text(10_000, repetition=7.0)) if each.key == "trainer.epochs"]
    assert recurrent == 120


def test_words_count_and_not_lines() -> None:
    assert chosen_for(text(2000, words=7)) != chosen_for(text(2000, words=20))


@pytest.mark.parametrize(("repetition", "model"), [(3.0, "tr"), (6.7, "bi"), (10.3, "bi"), (19.9, "bi")])
def test_the_family_is_that_which_was_better_where_words_come_as_often(repetition: float, model: str) -> None:
    assert chosen_for(text(10_000, repetition=repetition))["model"].startswith(model)


@pytest.mark.parametrize(
    ("leaves_to", "model"),
    [
        ("html", "bilstm_attention"),
        ("ctranslate2", "transformer_tiny"),
        ("huggingface", "transformer_marian"),
        ("marian", "transformer_student"),
    ],
)
def test_where_a_model_goes_decides_what_it_is(leaves_to: str, model: str) -> None:
    facts = text(10_000, repetition=7.0)
    chosen = chosen_for(facts, leaves_to=leaves_to)
    assert chosen["model"] == model
    # Beside the form, all is as of any Transformer for such a text.
    if model != "bilstm_attention":
        others = chosen_for(facts, "transformer")
        changed = {"model", "optimizer.lr"} if model != "transformer_tiny" else set()
        assert {key for key in others if chosen[key] != others[key]} == changed
        assert chosen["optimizer.lr"] in (0.003, 0.0015)


def test_of_much_text_a_cpu_trains_a_recurrent_model_and_a_gpu_a_transformer() -> None:
    names = [choose(text(1_000_000, repetition=20.0), gpu=gpu)[0].value for gpu in (False, True)]
    assert names == ["bilstm_attention", "transformer_small"]


def test_only_a_gpu_trains_wide_models() -> None:
    widths = [choose(text(10_000_000), gpu=gpu)[1].value for gpu in (False, True)]
    assert widths == [256, 512]


def test_bleu_of_a_few_lines_chooses_no_model() -> None:
    assert chosen_for(replace(text(1000), validation=3))["trainer.metric"] == "nll"
    assert chosen_for(text(1000))["trainer.metric"] == "bleu"


def test_a_stream_has_no_passes() -> None:
    chosen = chosen_for(replace(text(1000), streamed=True))
    assert not chosen["trainer.epochs"]
    assert chosen["trainer.updates"]
    assert chosen["model.d_model"] == 256


def test_every_character_has_a_subword() -> None:
    assert chosen_for(replace(text(1000), characters=2200))["tokenizer.vocab_size"] > 256 + 2200


def test_typed_tokens_decide_how_often_to_validate() -> None:
    often, seldom = ({c.key: c.value for c in choose(text(50_000), tokens=tokens)} for tokens in (1024, 8192))
    assert often["trainer.validate_every"] > seldom["trainer.validate_every"]


XA_XB = Direction("xa", "xb")


def write(folder: Path, sources: list[str], targets: list[str], direction: Direction = XA_XB) -> Corpus:
    for side, lines in (("xa", sources), ("xb", targets)):
        (folder / f"train.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    text = ParallelFiles(folder / "train.xa", folder / "train.xb", "train")
    text.direction = direction
    return Corpus([[text]], [text], [])


def test_facts_of_a_text(tmp_path: Path) -> None:
    facts = TextFacts.of(write(tmp_path, ["a b c", "a b", "a b"], ["x", "y z u v", "y z u v"]))
    assert facts == TextFacts(
        pairs=2,
        words=11 / 3,
        repetition=16 / 8,
        characters=9,
        unspelt=0.0,
        validation=3,
        streamed=False,
        new_pairs=0,
    )


def test_a_text_without_spaces_counts_its_characters(tmp_path: Path) -> None:
    # What has a blank side, as verses that a translation lacks, is no text to choose by.
    blank = TextFacts.of(write(tmp_path, ["a b c", "", "d e f", "g"], ["x y", "", "z", ""]))
    assert (blank.pairs, blank.words) == (2, 3.0)
    facts = TextFacts.of(write(tmp_path, ["one two"], ["私は" * 20]))
    assert (facts.words, facts.repetition) == (20, 22 / 3)


def test_a_language_without_spaces_counts_the_characters_of_short_lines_too(tmp_path: Path) -> None:
    facts = TextFacts.of(write(tmp_path, ["one two"], ["一二三四"], Direction("en", "zh")))
    assert (facts.words, facts.repetition) == (2, 1)


def test_only_the_beginning_of_a_large_text_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tolka.auto.text_facts._MOST_READ", 10)
    facts = TextFacts.of(write(tmp_path, ["a"] * 50 + ["b"] * 50, ["x"] * 100))
    assert facts.repetition == 10


def test_a_new_language_gets_subwords_where_its_words_fall_into_many(tmp_path: Path) -> None:
    """Also where each letter is known; and old text beside it does not slow its training down."""

    def chosen(**facts: Any) -> dict[str, Any]:
        language = replace(text(200_000), new_languages=("ind_Latn",), new_pairs=3000, **facts)
        return {choice.key: choice.value for choice in choose_tuning(language)}

    many, few = chosen(subwords=3.6), chosen(subwords=1.9)
    assert (many["tokenizer.extend"], few["tokenizer.extend"], few["optimizer.lr"]) == (2000, 0, 0.001)
    known = {choice.key: choice.value for choice in choose_tuning(text(200_000))}
    assert known["optimizer.lr"] < 0.001


def test_what_a_model_spells_as_bytes(tmp_path: Path, trained: Path) -> None:
    tokenizer = tokenizer_of(trained)
    known = TextFacts.of(write(tmp_path, ["na ro"], ["na ro"]), tokenizer)
    foreign = TextFacts.of(write(tmp_path, ["na ro"], ["다람쥐 강"]), tokenizer)
    assert known.unspelt < 0.1 < 0.5 < foreign.unspelt
    # Blanks that cleaning makes plain ones are no new language.
    form, blanks = CharacterForm("nfc", "strip", "space"), "na\u00a0ro"
    assert TextFacts.of(write(tmp_path, [blanks], [blanks]), tokenizer).unspelt > known.unspelt
    text = write(tmp_path, [blanks], [blanks])
    assert TextFacts.of(text, tokenizer, form).unspelt == known.unspelt


def test_subwords_are_added_where_a_model_lacks_them() -> None:
    def added(unspelt: float, pairs: int, characters: int = 60) -> Any:
        facts = replace(text(pairs), unspelt=unspelt, characters=characters)
        chosen = {choice.key: choice.value for choice in choose_tuning(facts)}
        assert chosen.keys() == {*TUNED} - {"corpus.both_directions"}  # of new languages
        return chosen["tokenizer.extend"]

    assert (added(0.05, 3000), added(0.5, 300), added(0.5, 3000)) == (0, 525, 2000)
    assert added(0.5, 300, characters=1000) == 1200
    rates = [
        {choice.key: choice.value for choice in choose_tuning(replace(text(300), unspelt=unspelt))}["optimizer.lr"]
        for unspelt in (0.05, 0.5)
    ]
    assert rates == [0.0001, 0.001]


def test_a_wider_model_is_tuned_more_slowly() -> None:
    def rate(pairs: int, width: int) -> Any:
        return {each.key: each.value for each in choose_tuning(text(pairs), width=width)}["optimizer.lr"]

    assert [rate(3000, width) for width in (64, 128, 256, 1024)] == [0.001, 0.001, 0.0005, 0.00013]
    assert [rate(300, width) for width in (128, 1024)] == [0.0001, 0.00005]


def test_a_training_usually_ends_before_its_most_updates() -> None:
    def share(facts: TextFacts) -> float:
        return usual_share([asdict(choice) for choice in choose(facts)])

    assert round(900 * share(text(1000))) == 900 // MARGIN
    assert round(900 * share(replace(text(1000), streamed=True))) == 0
    assert round(900 * usual_share([])) == 0


def test_the_table_has_what_was_decided() -> None:
    shown = choices_table([asdict(choice) for choice in choose(text(1000))])
    assert "trainer.epochs" in shown
    assert "scheduler.horizon" not in shown  # it only says that there is no end beforehand
