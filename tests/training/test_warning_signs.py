"""Warnings while training: each where it belongs, said once, and again only after it was gone."""

import pytest

from tolka.metrics.validation import Validation
from tolka.training.warning_signs import Watch


class Said:
    def __init__(self, vocabulary: int = 1000, settled_at: int = 100) -> None:
        self.messages: list[str] = []
        self.watch = Watch(vocabulary, settled_at, self.messages.append)


def validation(bleu: float = 20.0, copied: float = 0.0, repeated: float = 0.0) -> Validation:
    return Validation({"bleu": bleu}, "", {}, copied, repeated)


def test_a_good_training_is_not_disturbed() -> None:
    said = Said()
    for update in range(50, 5000, 50):
        said.watch.loss(update, 9.0 - 5 * update / 5000)
        said.watch.validation(update, validation(0.0 if update < 200 else 1.0))
    assert said.messages == []


def test_worse_than_guessing_after_the_warm_up() -> None:
    said = Said(vocabulary=1000, settled_at=100)  # ln 1000 = 6.91
    said.watch.loss(100, 9.5)
    assert said.messages == []
    said.watch.loss(101, 8.8)
    assert said.messages == []
    said.watch.loss(102, 9.0)
    said.watch.loss(103, 9.1)
    (message,) = said.messages
    assert message.startswith("warning: update 102: the training loss is 9.00 nats a token, and a uniform guess")
    said.watch.loss(104, 5.0)
    said.watch.loss(105, 9.1)
    assert len(said.messages) == 2


def test_a_jump() -> None:
    said = Said()
    for update in range(1, 6):
        said.watch.loss(update, 3.0)
    said.watch.loss(6, 3.9)
    assert said.messages == []
    said.watch.loss(7, 4.2)
    assert "has jumped from about 3.00 to 4.20 nats" in said.messages[0]


def test_bleu_that_stays_zero() -> None:
    said = Said()
    for number in range(7):
        said.watch.validation(100 * number, validation(bleu=0.0))
    assert len(said.messages) == 1
    assert "BLEU has been exactly 0 in 5 validations" in said.messages[0]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (validation(copied=0.3), "30% of the translations are their sources"),
        (validation(repeated=0.2), "over and over"),
    ],
)
def test_copies_and_loops_are_expected_of_the_young_only(found: Validation, expected: str) -> None:
    said = Said()
    said.watch.validation(2000, found)
    assert said.messages == []
    said.watch.validation(2001, found)
    said.watch.validation(2100, found)
    (message,) = said.messages
    assert expected in message
    said.watch.validation(2200, validation())
    said.watch.validation(2300, found)
    assert len(said.messages) == 2
