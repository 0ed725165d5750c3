"""The committed sample corpus keeps the promises of its card, and its Korean forms are right."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import unicodedata
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from rows import each_row

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data" / "sample"

from sample_corpus import korean as ko  # noqa: E402
from sample_corpus import lexicon  # noqa: E402
from sample_corpus.korean import Irregular, Kind, Predicate  # noqa: E402
from sample_corpus.split import DEFAULT_SEED, KINDS, SPLIT_SIZES, choose_held_out, pair_kind  # noqa: E402

HELD_BACK = ("valid", "test_fresh", "test_unseen")


@cache
def lines(split: str, side: str) -> tuple[str, ...]:
    """Return the lines of one file."""
    return tuple((DATA / f"{split}.{side}").read_text(encoding="utf-8").splitlines())


@cache
def lexemes_by_line(split: str) -> tuple[frozenset[str], ...]:
    """Return the content words of every English line, read from the text alone."""
    lexeme_of = {form: lexeme for lexeme, forms in lexicon.surface_forms().items() for form in forms}
    found = []
    for line in lines(split, "en"):
        words = re.findall(r"[A-Za-z]+", line)
        words.append(words[0].lower())
        found.append(frozenset(lexeme_of[word] for word in words if word in lexeme_of))
    return tuple(found)


@cache
def held_out() -> frozenset[tuple[str, str]]:
    """Return the held-out pairs of the committed corpus."""
    return choose_held_out(DEFAULT_SEED)


@pytest.mark.slow
@pytest.mark.parametrize("hash_seed", ["1"])
def test_regeneration_is_byte_identical(tmp_path: Path, hash_seed: str) -> None:
    command = [sys.executable, str(ROOT / "data" / "sample" / "generator"), "--out", str(tmp_path)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": hash_seed}, capture_output=True)
    for split in SPLIT_SIZES:
        for side in ("en", "ko"):
            name = f"{split}.{side}"
            assert (tmp_path / name).read_bytes() == (DATA / name).read_bytes(), name


@pytest.mark.parametrize("split", SPLIT_SIZES)
def test_files_are_parallel_nfc_lines(split: str) -> None:
    for side in ("en", "ko"):
        raw = (DATA / f"{split}.{side}").read_bytes()
        text = raw.decode("utf-8")
        assert raw.endswith(b"\n")
        assert b"\r" not in raw
        assert unicodedata.is_normalized("NFC", text)
        assert len(lines(split, side)) == SPLIT_SIZES[split]
        assert all(line == " ".join(line.split()) and line[-1] in ".?" for line in lines(split, side))


@pytest.mark.parametrize("side", ["en", "ko"])
def test_no_sentence_occurs_twice_anywhere(side: str) -> None:
    # Stronger than "no duplicate pair", and it makes the English decide the Korean.
    counts = Counter(line for split in SPLIT_SIZES for line in lines(split, side))
    assert [line for line, count in counts.items() if count > 1] == []


@each_row("side", ["en", "ko"])
@each_row("split", HELD_BACK)
def test_every_word_of_a_held_back_split_occurs_in_train(split: str, side: str) -> None:
    known = {word for line in lines("train", side) for word in line.split()}
    assert {word for line in lines(split, side) for word in line.split()} <= known


def test_every_english_form_belongs_to_one_lexeme() -> None:
    counts = Counter(form for forms in lexicon.surface_forms().values() for form in set(forms))
    assert [form for form, count in counts.items() if count > 1] == []


def test_every_content_word_is_frequent_in_train() -> None:
    counts = Counter(lexeme for found in lexemes_by_line("train") for lexeme in found)
    assert {lexeme: counts[lexeme] for lexeme in lexicon.surface_forms() if counts[lexeme] < 40} == {}


@pytest.mark.slow
@pytest.mark.parametrize("split", ["train", "valid", "test_fresh"])
def test_held_out_words_never_share_a_sentence_outside_the_unseen_half(split: str) -> None:
    for line, found in zip(lines(split, "en"), lexemes_by_line(split), strict=True):
        assert not [pair for pair in held_out() if found.issuperset(pair)], line


@pytest.mark.slow
def test_each_part_of_a_held_out_pair_is_common_in_train() -> None:
    counts = Counter(lexeme for found in lexemes_by_line("train") for lexeme in found)
    assert all(counts[lexeme] >= 20 for pair in held_out() for lexeme in pair)


def test_every_unseen_sentence_holds_a_held_out_pair_of_each_kind_in_turn() -> None:
    kinds: Counter[str] = Counter()
    for line, found in zip(lines("test_unseen", "en"), lexemes_by_line("test_unseen"), strict=True):
        combined = {pair_kind(pair) for pair in held_out() if found.issuperset(pair)}
        assert combined, line
        kinds.update(combined)
    assert all(kinds[kind] >= 70 for kind in KINDS), kinds


def test_the_promised_sentence_is_in_train() -> None:
    pairs = dict(zip(lines("train", "en"), lines("train", "ko"), strict=True))
    assert pairs["I love you."] == "나는 당신을 사랑합니다."
    assert pairs["I love you, my friend."] == "친구야, 나는 너를 사랑한다."


def test_the_vocative_marks_the_plain_style_and_only_it() -> None:
    for split in SPLIT_SIZES:
        for english, korean in zip(lines(split, "en"), lines(split, "ko"), strict=True):
            plain = english.endswith((", my friend.", ", my friend?"))
            assert plain == korean.startswith("친구야, "), english
            polite = korean.endswith(("니다.", "니까?", "십시오."))
            assert plain != polite, korean


def test_it_is_resolved_by_what_is_said_of_it() -> None:
    pairs = [pair for split in SPLIT_SIZES for pair in zip(lines(split, "en"), lines(split, "ko"), strict=True)]
    drinks = [pair for pair in pairs if re.match(r"The dog did not drink the \w+ because it was too", pair[0])]
    animal = [korean for english, korean in drinks if english.endswith(("tired.", "sick.", "full."))]
    drink = [korean for english, korean in drinks if english.endswith(("cold.", "hot.", "bitter.", "sweet."))]
    assert animal
    assert all(korean.startswith("개가 너무 ") and "그것" not in korean for korean in animal)
    assert drink
    assert all(not korean.startswith("개가 ") and "개는 그것을 마시지" in korean for korean in drink)


@each_row(
    ("word", "topic", "nominative", "accusative", "together", "directional"),
    [
        ("미나", "미나는", "미나가", "미나를", "미나와", "미나로"),
        ("톰", "톰은", "톰이", "톰을", "톰과", "톰으로"),
        ("책", "책은", "책이", "책을", "책과", "책으로"),
        ("서울", "서울은", "서울이", "서울을", "서울과", "서울로"),
        ("지하철", "지하철은", "지하철이", "지하철을", "지하철과", "지하철로"),
        ("학교", "학교는", "학교가", "학교를", "학교와", "학교로"),
        ("부산", "부산은", "부산이", "부산을", "부산과", "부산으로"),
    ],
)
def test_particles(word: str, topic: str, nominative: str, accusative: str, together: str, directional: str) -> None:
    made = (ko.topic(word), ko.nominative(word), ko.accusative(word), ko.together(word), ko.directional(word))
    assert made == (topic, nominative, accusative, together, directional)


# stem, kind, irregularity, then: polite present, plain present, polite past, polite future, polite negation,
# plain question, form before a noun (past for verbs, present otherwise), conditional
CONJUGATIONS: list[tuple[str, Kind, Irregular, str]] = [
    ("먹", "verb", "", "먹습니다 먹는다 먹었습니다 먹을_것입니다 먹지_않습니다 먹니 먹은 먹으면"),
    ("가", "verb", "", "갑니다 간다 갔습니다 갈_것입니다 가지_않습니다 가니 간 가면"),
    ("오", "verb", "", "옵니다 온다 왔습니다 올_것입니다 오지_않습니다 오니 온 오면"),
    ("마시", "verb", "", "마십니다 마신다 마셨습니다 마실_것입니다 마시지_않습니다 마시니 마신 마시면"),
    ("배우", "verb", "", "배웁니다 배운다 배웠습니다 배울_것입니다 배우지_않습니다 배우니 배운 배우면"),
    ("보내", "verb", "", "보냅니다 보낸다 보냈습니다 보낼_것입니다 보내지_않습니다 보내니 보낸 보내면"),
    ("쉬", "verb", "", "쉽니다 쉰다 쉬었습니다 쉴_것입니다 쉬지_않습니다 쉬니 쉰 쉬면"),
    ("일하", "verb", "", "일합니다 일한다 일했습니다 일할_것입니다 일하지_않습니다 일하니 일한 일하면"),
    ("듣", "verb", "ㄷ", "듣습니다 듣는다 들었습니다 들을_것입니다 듣지_않습니다 듣니 들은 들으면"),
    ("걷", "verb", "ㄷ", "걷습니다 걷는다 걸었습니다 걸을_것입니다 걷지_않습니다 걷니 걸은 걸으면"),
    ("닫", "verb", "", "닫습니다 닫는다 닫았습니다 닫을_것입니다 닫지_않습니다 닫니 닫은 닫으면"),
    ("돕", "verb", "ㅂ", "돕습니다 돕는다 도왔습니다 도울_것입니다 돕지_않습니다 돕니 도운 도우면"),
    ("줍", "verb", "ㅂ", "줍습니다 줍는다 주웠습니다 주울_것입니다 줍지_않습니다 줍니 주운 주우면"),
    ("입", "verb", "", "입습니다 입는다 입었습니다 입을_것입니다 입지_않습니다 입니 입은 입으면"),
    ("짓", "verb", "ㅅ", "짓습니다 짓는다 지었습니다 지을_것입니다 짓지_않습니다 짓니 지은 지으면"),
    ("씻", "verb", "", "씻습니다 씻는다 씻었습니다 씻을_것입니다 씻지_않습니다 씻니 씻은 씻으면"),
    ("쓰", "verb", "", "씁니다 쓴다 썼습니다 쓸_것입니다 쓰지_않습니다 쓰니 쓴 쓰면"),
    ("모으", "verb", "", "모읍니다 모은다 모았습니다 모을_것입니다 모으지_않습니다 모으니 모은 모으면"),
    ("고르", "verb", "르", "고릅니다 고른다 골랐습니다 고를_것입니다 고르지_않습니다 고르니 고른 고르면"),
    ("부르", "verb", "르", "부릅니다 부른다 불렀습니다 부를_것입니다 부르지_않습니다 부르니 부른 부르면"),
    ("만들", "verb", "", "만듭니다 만든다 만들었습니다 만들_것입니다 만들지_않습니다 만드니 만든 만들면"),
    ("살", "verb", "", "삽니다 산다 살았습니다 살_것입니다 살지_않습니다 사니 산 살면"),
    ("알", "verb", "", "압니다 안다 알았습니다 알_것입니다 알지_않습니다 아니 안 알면"),
    ("크", "adjective", "", "큽니다 크다 컸습니다 클_것입니다 크지_않습니다 크니 큰 크면"),
    ("바쁘", "adjective", "", "바쁩니다 바쁘다 바빴습니다 바쁠_것입니다 바쁘지_않습니다 바쁘니 바쁜 바쁘면"),
    ("길", "adjective", "", "깁니다 길다 길었습니다 길_것입니다 길지_않습니다 기니 긴 길면"),
    ("쉽", "adjective", "ㅂ", "쉽습니다 쉽다 쉬웠습니다 쉬울_것입니다 쉽지_않습니다 쉽니 쉬운 쉬우면"),
    ("좁", "adjective", "", "좁습니다 좁다 좁았습니다 좁을_것입니다 좁지_않습니다 좁니 좁은 좁으면"),
    ("빠르", "adjective", "르", "빠릅니다 빠르다 빨랐습니다 빠를_것입니다 빠르지_않습니다 빠르니 빠른 빠르면"),
    ("빨갛", "adjective", "ㅎ", "빨갛습니다 빨갛다 빨갰습니다 빨갈_것입니다 빨갛지_않습니다 빨갛니 빨간 빨가면"),
    ("하얗", "adjective", "ㅎ", "하얗습니다 하얗다 하얬습니다 하얄_것입니다 하얗지_않습니다 하얗니 하얀 하야면"),
    ("맛있", "exist", "", "맛있습니다 맛있다 맛있었습니다 맛있을_것입니다 맛있지_않습니다 맛있니 맛있는 맛있으면"),
]  # fmt: skip


@each_row(("stem", "kind", "irregular", "expected"), CONJUGATIONS)
def test_conjugation(stem: str, kind: Kind, irregular: Irregular, expected: str) -> None:
    word = Predicate(stem, kind, irregular)
    made = [
        ko.finish(word, "polite", False),
        ko.finish(word, "plain", False),
        ko.finish(ko.past(word), "polite", False),
        ko.finish(ko.future(word), "polite", False),
        ko.finish(ko.negated(word), "polite", False),
        ko.finish(word, "plain", True),
        ko.adnominal(word, "past" if kind == "verb" else "present"),
        ko.conditional(word),
    ]
    assert made == [form.replace("_", " ") for form in expected.split()]


def test_the_rest_of_the_paradigm() -> None:
    read, make, listen = Predicate("읽", "verb"), Predicate("만들", "verb"), Predicate("듣", "verb", "ㄷ")
    assert ko.finish(read, "polite", True) == "읽습니까"
    assert ko.finish(ko.past(read), "plain", False) == "읽었다"
    assert ko.finish(ko.past(read), "plain", True) == "읽었니"
    assert ko.finish(ko.negated(read), "plain", False) == "읽지 않는다"
    assert ko.finish(ko.negated(Predicate("작", "adjective")), "plain", False) == "작지 않다"
    assert ko.finish(ko.past(ko.progressive(make)), "polite", False) == "만들고 있었습니다"
    assert ko.finish(ko.future(make), "plain", True) == "만들 것이니"
    assert ko.finish(ko.ability(listen, False), "polite", False) == "들을 수 있습니다"
    assert ko.finish(ko.ability(make, True), "plain", False) == "만들 수 없다"
    assert ko.finish(ko.obligation(listen, False), "polite", False) == "들어야 합니다"
    assert ko.finish(ko.obligation(make, True), "polite", False) == "만들면 안 됩니다"
    assert ko.finish(ko.wish(read, True), "polite", False) == "읽고 싶습니다"
    assert ko.finish(ko.wish(read, False), "plain", False) == "읽고 싶어 한다"
    assert [ko.adnominal(make, tense) for tense in ("past", "present", "future")] == ["만든", "만드는", "만들"]
    assert ko.command(Predicate("열", "verb"), "polite", False) == "열어 주십시오"
    assert ko.command(Predicate("고르", "verb", "르"), "plain", False) == "골라라"
    assert ko.command(Predicate("주", "verb"), "polite", False) == "주십시오"
    assert ko.command(listen, "polite", True) == "듣지 마십시오"


def test_copula() -> None:
    doctor, student = Predicate("의사이", "copula"), Predicate("학생이", "copula")
    assert ko.finish(doctor, "polite", False) == "의사입니다"
    assert ko.finish(doctor, "plain", False) == "의사다"
    assert ko.finish(student, "plain", False) == "학생이다"
    assert ko.finish(ko.past(doctor), "polite", False) == "의사였습니다"
    assert ko.finish(ko.past(student), "polite", False) == "학생이었습니다"
