"""Tokenised text is told from text that is not, in any script."""

from rows import each_row

from tolka.text.check.sides import share_of_tokenised, tokenisation_differences
from tolka.text.pairs import Pair


@each_row(
    ("plain", "tokenised"),
    [
        ("He was hanged.", "He was hanged ."),
        ("Tom's car isn't red, is it?", "Tom &apos;s car is n&apos;t red , is it ?"),
        ('A well-known "team", they say', "A well @-@ known &quot; team &quot; , they say"),
        ("我爱你，妈妈。", "我 爱 你 ， 妈妈 。"),
        ("वह घर गया।", "वह घर गया ।"),
        ("Il dit : « oui », puis part !", "Il dit : « oui » , puis part !"),
        ("Wait... or go, now.", "Wait ... or go , now ."),
        ("It costs 3,50 or .5 of it.", "It costs 3,50 or .5 of it ."),
    ],
)
def test_a_line(plain: str, tokenised: str) -> None:
    assert share_of_tokenised([plain] * 10) == 0
    assert share_of_tokenised([tokenised] * 10) == 1


def test_lines_without_punctuation_say_nothing() -> None:
    assert share_of_tokenised(["No marks here", "Really?"] * 100) is None
    assert share_of_tokenised(["One.", "two ."] * 4) is None  # too few


PLAIN, SPLIT = Pair("A cat.", "Eine Katze."), Pair("A cat .", "Eine Katze .")


def test_a_mismatch_of_each_side() -> None:
    held_out = {"valid": [PLAIN] * 20, "test": [SPLIT] * 20}
    source, target = tokenisation_differences([SPLIT] * 30 + [PLAIN], held_out)
    assert source.startswith("the source of the training text is tokenised, as by Moses (in 97% of the lines")
    assert "and that of valid is not" in source
    assert target.startswith("the target of the training text")
    (other, _) = tokenisation_differences([PLAIN] * 30, held_out)
    assert other.startswith("the source of test is tokenised")
    assert "that of the training text is not" in other
    (one,) = tokenisation_differences([Pair("A cat .", "Eine Katze.")] * 30, {"valid": [PLAIN] * 20})
    assert one.startswith("the source")
    assert not list(tokenisation_differences([SPLIT] * 30, {"valid": [SPLIT] * 20}))
