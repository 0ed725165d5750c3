"""When cleaning leaves out so much that a training stops, and which step is named."""

from collections import Counter

from rows import each_row

from tolka.text.check.loss import describe_loss
from tolka.text.cleaning.cleaner import Tally
from tolka.text.cleaning.steps import CleaningConfig

STRICT = CleaningConfig(
    control="drop", markup="drop", max_ratio=4.0, copies=True, min_letters=0.5, numbers=True, script=True,
    language=True, duplicates="near", leaks="pair",
)  # fmt: skip


@each_row(
    ("kept", "dropped", "stops"),
    [
        (100, {}, False),
        (50, {"few letters": 50}, False),  # half is not more than half
        (49, {"few letters": 51}, True),
        (40, {"few letters": 30, "blank source": 30}, True),  # all steps together
        (1, {"duplicate": 1999}, True),  # a constant column
        (30, {"duplicate": 70}, False),  # a translation memory: all of its text is learnt from
        (30, {"duplicate": 35, "blank source": 35}, True),
        (20, {"set aside": 80}, False),  # as corpus.valid and corpus.test ask
        (20, {"source set aside": 80}, True),
        (20, {"further variants not read": 80}, False),  # one of each unit's was read
        (20, {"no pair in en and ko (the first such unit is in de, fr)": 80}, False),  # a memory of several languages
    ],
)
def test_more_than_half(kept: int, dropped: dict[str, int], stops: bool) -> None:
    tally = Tally(kept, Counter(dropped))
    assert bool(describe_loss(tally, CleaningConfig(), 256)) == stops
    assert describe_loss(tally, CleaningConfig(allow_loss=True), 256) == ""
    assert tally == Tally(kept, Counter(dropped))


@each_row(
    ("reason", "setting"),
    [
        ("control characters", "cleaning.control=drop"),
        ("markup", "cleaning.markup=drop"),
        ("over 2000 characters", "cleaning.max_characters=2000"),
        ("over 64 tokens", "batching.max_length=64"),
        ("one side over 4 times as long", "cleaning.max_ratio=4.0"),
        ("source copied", "cleaning.copies=true"),
        ("few letters", "cleaning.min_letters=0.5"),
        ("numbers that differ", "cleaning.numbers=true"),
        ("target in another script", "cleaning.script=true"),
        ("source in another language", "cleaning.language=true"),
        ("near duplicate", "cleaning.duplicates=near"),
        ("held-out pair", "cleaning.leaks=pair"),
    ],
)
def test_the_step_that_took_most(reason: str, setting: str) -> None:
    words = describe_loss(Tally(1, Counter({reason: 90, "blank source": 60})), STRICT, 64)
    assert words.startswith(f"150 of 151 training pairs are left out, most of them (90) as '{reason}', by {setting}")
    assert "cleaning.allow_loss=true trains on the 1 that are left" in words


def test_a_step_that_no_setting_asks_for() -> None:
    words = describe_loss(Tally(1, Counter({"blank source": 9})), STRICT, 64)
    assert "most of them (9) as 'blank source': look at some" in words
