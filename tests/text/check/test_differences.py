"""Training text that is written otherwise than held-out text: tokenised, in any script, or in another spelling."""

from rows import each_row

from tolka.text.check.sides import differences
from tolka.text.direction import UNKNOWN, Direction
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
    one, other = Pair(plain, "x"), Pair(tokenised, "x")
    assert not list(differences([one] * 10, {"valid": [one] * 10}, UNKNOWN))
    (found,) = differences([other] * 10, {"valid": [one] * 10}, UNKNOWN)
    assert found.startswith("the source of the training text is tokenised, as by Moses (in 100% of the lines")


def test_lines_without_punctuation_say_nothing() -> None:
    plain, few = [Pair("No marks here", "x"), Pair("Really?", "x")] * 100, [Pair("two .", "x")] * 9
    for training, held_out in ((plain, [SPLIT] * 20), ([SPLIT] * 20, plain), ([PLAIN] * 20, few), (few, [PLAIN] * 20)):
        assert not [note for note in differences(training, {"valid": held_out}, UNKNOWN) if "the source" in note]


PLAIN, SPLIT = Pair("A cat.", "Eine Katze."), Pair("A cat .", "Eine Katze .")


def test_a_mismatch_of_each_side() -> None:
    held_out = {"valid": [PLAIN] * 20, "test": [SPLIT] * 20}
    source, target = differences([SPLIT] * 30 + [PLAIN], held_out, UNKNOWN)
    assert source.startswith("the source of the training text is tokenised, as by Moses (in 97% of the lines")
    assert "and that of valid is not" in source
    assert target.startswith("the target of the training text")
    (other, _) = differences([PLAIN] * 30, held_out, UNKNOWN)
    assert other.startswith("the source of test is tokenised")
    assert "that of the training text is not" in other
    (one,) = differences([Pair("A cat .", "Eine Katze.")] * 30, {"valid": [PLAIN] * 20}, UNKNOWN)
    assert one.startswith("the source")
    assert not list(differences([SPLIT] * 30, {"valid": [SPLIT] * 20}, UNKNOWN))


@each_row(
    ("code", "training", "held_out", "name"),
    [
        ("ro", "Ştiinţa şi ţara", "Știința și țara", "ş, ţ for ș, ț"),
        ("fa", "علي كتاب", "علی کتاب", "ي, ك for ی, ک"),
        ("uk", "п’ять", "п'ять", "’ for '"),
        ("de", "er sagt „ja“", 'er sagt "ja"', "quotation marks"),
        ("de", "Ein Haus", "ein haus", "capitals"),
        ("ar", "٣ كتب", "3 كتب", "digits of another script"),
        ("he", "שָׁלוֹם", "שלום", "vowel marks"),
    ],
)
def test_a_spelling_that_the_other_text_lacks(code: str, training: str, held_out: str, name: str) -> None:
    one, other = [Pair("x", training)] * 20, [Pair("x", held_out)] * 20
    (note,) = differences(one, {"valid": other}, Direction("en", code))
    assert note.startswith(f"the target of the training text has {name} in 100% of the lines with either")
    (note,) = differences(other, {"valid": one}, Direction("en", code))
    assert note.startswith(f"the target of valid has {name}")
    for same in (one, other):
        assert not list(differences(same, {"valid": same}, Direction("en", code)))
    assert not list(differences(one + other, {"valid": other}, Direction("en", code)))  # half of it is another matter
