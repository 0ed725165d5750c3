"""Noise: both sides stay translations of each other, and each kind does what it says."""

import random
import re

import pytest

from tolka.text.direction import Direction
from tolka.text.noise import KINDS, NOISES, UNTRAINED, joined, noises
from tolka.text.pairs import Pair

PAIR = Pair("The 12 dogs are sleeping quietly in 3 houses.", "Die 12 Hunde schlafen ruhig in 3 Häusern.")


def noisy(kind: str, pair: Pair = PAIR, seeds: int = 40) -> list[Pair]:
    return [NOISES[kind](pair, random.Random(seed)) for seed in range(seeds)]


def test_what_does_not_depend_on_chance() -> None:
    assert {*noisy("upper")} == {
        Pair("THE 12 DOGS ARE SLEEPING QUIETLY IN 3 HOUSES.", "DIE 12 HUNDE SCHLAFEN RUHIG IN 3 HÄUSERN.")
    }
    tagged = Pair("<b>see {name}</b> at %s &amp; $home", "<b>siehe {name}</b> bei %s &amp; $home")
    assert {*noisy("upper", tagged)} == {
        Pair("<b>SEE {name}</b> AT %s &amp; $home", "<b>SIEHE {name}</b> BEI %s &amp; $home")
    }
    assert {*noisy("title")} == {Pair("The 12 Dogs Are Sleeping Quietly In 3 Houses.", PAIR.target)}
    assert {*noisy("no_end")} == {Pair(PAIR.source[:-1], PAIR.target[:-1])}
    assert {*noisy("no_end", Pair("저는 갑니다.", "行きます。"))} == {Pair("저는 갑니다", "行きます")}
    assert {*noisy("no_end", Pair("...", "…"))} == {Pair("...", "…")}  # nothing would be left


def test_typing_errors_are_in_one_or_two_words_of_the_source() -> None:
    for pair in noisy("typos"):
        words = [*zip(pair.source.split(), PAIR.source.split(), strict=True)]
        wrong = [(found, word) for found, word in words if found != word]
        assert len(wrong) <= 1  # two letters that are exchanged may be alike
        assert all(abs(len(found) - len(word)) <= 1 and found[0] == word[0] for found, word in wrong)
        assert pair.target == PAIR.target
    assert len({*noisy("typos")}) > 20
    assert NOISES["typos"](Pair("a b 12.", "x"), random.Random(1)) == Pair("a b 12.", "x")
    assert NOISES["typos"](Pair("저는아침에", "x"), random.Random(3)) != Pair("저는아침에", "x")


def test_a_word_is_lacking_or_twice() -> None:
    lengths = {len(pair.source.split()) for pair in noisy("words")}
    assert lengths == {8, 10}
    assert {len(pair.source.split()) for pair in noisy("words", Pair("Come here.", "Komm."))} == {3}


def test_tags_stand_on_both_sides() -> None:
    for pair in noisy("tags"):
        source, target = pair.source.partition(PAIR.source), pair.target.partition(PAIR.target)
        assert source[0] + source[2] != ""
        assert (source[0], source[2]) == (target[0], target[2])


def test_numbers_are_exchanged_on_both_sides() -> None:
    for pair in noisy("numbers"):
        digits = [[word for word in text.split() if word.isdigit()] for text in (pair.source, pair.target)]
        assert digits[0] == digits[1]
        assert sum(one != other for one, other in zip(digits[0], ["12", "3"], strict=True)) <= 1
    assert len({*noisy("numbers")}) > 5
    for pair in (Pair("3 and 3", "3 und 3"), Pair("1 day", "1 Tag"), Pair("in 3.5 s", "in 3,5 s"), Pair("two", "zwei")):
        assert {*noisy("numbers", pair)} == {pair}


@pytest.mark.parametrize("kind", NOISES)
def test_any_text_comes_through(kind: str) -> None:
    draw = random.Random(5)
    for text in ("a", "나", "  ", "!?", "\u0301", "İstanbul", "😀😀", "x" * 300, "مرحبا بالعالم", "<b>"):
        changed = NOISES[kind](Pair(text, text), draw)
        assert "\n" not in changed.source + changed.target


def test_all_kinds_have_names() -> None:
    assert {*KINDS} - {*NOISES} == {"join"}


def test_noises_that_models_are_tested_by_alone() -> None:
    def made(kind: str, pair: Pair = PAIR) -> set[Pair]:
        return {UNTRAINED[kind](pair, random.Random(seed)) for seed in range(60)}

    for pair in made("blanks"):
        assert pair.target == PAIR.target
        assert len(pair.source) == len(PAIR.source) + 1
        assert re.sub(r"[ \u200b\u00a0\u00ad]+", "", pair.source) == PAIR.source.replace(" ", "")
    assert len(made("blanks")) > 20
    for kind in ("urls", "emoji"):
        for pair in made(kind):
            assert pair.source.removeprefix(PAIR.source) == pair.target.removeprefix(PAIR.target) != ""
    named = Pair("Tom saw Anna in Boston. Tom fled.", "Tom sah Anna in Boston. Tom floh.")
    assert made("names") == {PAIR}  # "The" is not on the other side
    for pair in made("names", named):
        [new] = {*pair.source.replace(".", "").split()} - {*named.source.replace(".", "").split()}
        [old] = {"Tom", "Anna", "Boston"} - {*re.findall(r"\w+", pair.source)}
        assert pair == Pair(named.source.replace(old, new), named.target.replace(old, new))


def test_capitals_are_those_of_the_languages() -> None:
    pair, draw = Pair("ijzer in istanbul", "istanbul'da demir"), random.Random(1)
    found = noises(Direction("nl", "tr"))
    assert found["upper"](pair, draw) == Pair("IJZER IN ISTANBUL", "İSTANBUL'DA DEMİR")
    assert found["title"](pair, draw) == Pair("IJzer In Istanbul", pair.target)
    assert {*found} == {*NOISES, *UNTRAINED}


@pytest.mark.parametrize(
    "text",
    [
        "今天天气很好我们去公园",
        "今日はとても天気がいい",
        "ไปโรงเรียนวันนี้",
        "ខ្ញុំទៅសាលារៀន",
        "ຂ້ອຍໄປໂຮງຮຽນ",
        "ကျွန်တော်ကျောင်းသွားတယ်",
    ],
)
def test_text_without_blanks_has_no_noise_in_its_words(text: str) -> None:
    """Nobody sees where a word begins, and a letter less is another word."""
    pair = Pair(text, "I go there")
    for kind in ("typos", "words"):
        assert {*noisy(kind, pair)} == {pair}, kind
    assert {*noisy("no_end", Pair(f"{text}。", "I go."))} == {Pair(text, "I go")}


def test_numbers_beside_letters_without_blanks() -> None:
    pairs = {*noisy("numbers", Pair("我有3个苹果和12本书", "I have 3 apples and 12 books"))}
    assert len(pairs) > 10
    for pair in pairs:
        assert re.findall(r"\d+", pair.source) == re.findall(r"\d+", pair.target)
    for pair in (Pair("第3.5", "3.5 3"), Pair("٣ كتب", "٣ کتاب"), Pair("제3장", "3")):
        assert {*noisy("numbers", pair)} == {pair}


def test_a_mark_stays_on_its_letter() -> None:
    for pair in noisy("typos", Pair("किताबें", "x"), 80):
        assert not re.search("(?:^|[^क-ह])[\u093e-\u094d]", pair.source), pair.source


def test_two_sentences_on_a_line_have_the_blank_of_their_language() -> None:
    pairs = [Pair("你好。", "Hello."), Pair("再见。", "Bye.")]
    assert joined(pairs, Direction("zh", "en")) == Pair("你好。再见。", "Hello. Bye.")
    assert joined(pairs, Direction()) == Pair("你好。 再见。", "Hello. Bye.")
