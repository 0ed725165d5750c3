"""Rules on text and readers of files take twice as long for twice as much, whatever the text is."""

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest
from rows import each_row

from tolka.evaluation.input_notes import text_notes
from tolka.text.cleaning.cleaner import near_key
from tolka.text.cleaning.markup import has_markup, without_markup
from tolka.text.cleaning.steps import CleaningConfig, steps_of
from tolka.text.direction import Direction
from tolka.text.encodings import likely_encoding
from tolka.text.lines import LineLimit
from tolka.text.pairs import Pair
from tolka.text.readers import reader_of
from tolka.text.readers.wmt import segments
from tolka.translation.flags import differing_placeholders, text_flags
from tolka.translation.numbers import numbers_of, to_ascii_digits, unmatched_numbers
from tolka.translation.splitting import sentences

EN_DE = Direction("en", "de")
ALL_STEPS = steps_of(CleaningConfig(markup="strip", control="strip", blanks="space", unicode="nfc", copies=True,
                                    min_letters=0.5, numbers=True, script=True, max_characters=0), EN_DE)  # fmt: skip


def all_steps(text: str) -> None:
    for _, step in ALL_STEPS:
        step(Pair(text, f"{text} x"))


# Rules by name, and how many characters a text has at first: as many as are seen to take some milliseconds.
RULES: dict[str, tuple[int, Callable[[str], object]]] = {
    "flags": (4000, lambda text: text_flags(text, f"x {text}")),
    "placeholders": (20_000, lambda text: differing_placeholders(text, "x")),
    "numbers": (4000, lambda text: list(numbers_of(text))),
    "digits": (40_000, to_ascii_digits),
    "unmatched numbers": (2000, lambda text: unmatched_numbers(text, f"{text} x")),
    "cleaning": (20_000, all_steps),
    "markup": (20_000, lambda text: (has_markup(text), without_markup(text))),
    "keys": (20_000, lambda text: near_key(Pair(text, text))),
    "sentences": (20_000, lambda text: sentences(text, "en")),
    "encoding": (20_000, lambda text: likely_encoding(text.encode("cp1252", "replace") + b"\xe9")),
    "notes": (20_000, lambda text: list(text_notes(("a", [text]), ("b", [f"{text} x"])))),
}
# Apostrophes take sentencex itself too long in `sentences`.
TEXTS = (
    *(
        "a",
        "1",
        "１",
        "1 ",
        "1,",
        "1.",
        "１/",
        "½",
        "万",
        "1億",
        " ",
        "\xa0",
        "<",
        "<b",
        "<b>",
        "</",
        "&",
        "&amp;",
        "&#1",
    ),
    *(
        "%",
        "%(",
        "{",
        "{{",
        "${",
        "http://",
        "@",
        "e\u0301",
        "\u0301",
        "-",
        '"',
        ".",
        "...",
        "a.",
        "A. ",
        "ab ",
        "!",
        "한",
    ),
    *("ｱ", "\u200b", "\ufffd", "[", "](", "\\", "#", "_a", "$1"),
)


def ratio(call: Callable[[int], object], size: int) -> float:
    """Return the time for twice the size, by the time for the size; medians of the time of the CPU."""

    def seconds(times: int) -> float:
        started_at = time.process_time()
        call(times * size)
        return time.process_time() - started_at

    pairs = [(seconds(1), seconds(2)) for _ in range(5)]
    once, twice = (median(side) for side in zip(*pairs, strict=True))
    # What takes less than this at twice the size cannot be measured, and need not be.
    return twice / once if twice > 0.03 else 0.0


@pytest.mark.slow
@each_row(("rule", "piece"), [(rule, piece) for rule in RULES for piece in TEXTS])
def test_rules(rule: str, piece: str) -> None:
    size, call = RULES[rule]
    found = ratio(lambda length: call((piece * length)[:length]), size)
    found = found if found < 2.6 else ratio(lambda length: call((piece * length)[:length]), size)
    assert found < 2.6


PO = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
TMX = '<tu><tuv xml:lang="en"><seg>a{}</seg></tuv><tuv xml:lang="de"><seg>b</seg></tuv></tu>'
XLIFF = "<trans-unit><source>a{}</source><target>b</target></trans-unit>"
XLIFF_FILE = '<xliff version="1.2"><file source-language="en" target-language="de">{}</file></xliff>'
FILES: dict[str, tuple[str, int, Callable[[int], str]]] = {
    "rows": ("a.tsv", 20_000, lambda n: "en\tde\n" + "a\tb\n" * n),
    "cells": ("a.tsv", 100_000, lambda n: "en\tde\n" + "a\t" * n + "\n"),
    "quoted lines": ("a.csv", 20_000, lambda n: 'en,de\n"' + "x\n" * n + '",b\n'),
    "quotes": ("a.csv", 100_000, lambda n: "en,de\n" + '""' * n + ",b\n"),
    "objects": ("a.jsonl", 10_000, lambda n: '{"en": "a", "de": "b"}\n' * n),
    "a list": ("a.json", 10_000, lambda n: "[" + '{"en": "a", "de": "b"},\n' * n + '{"en": "a", "de": "b"}]'),
    "blanks": ("a.json", 1_000_000, lambda n: "[" + " " * n + '{"en": "a", "de": "b"}]'),
    "a long text": ("a.json", 2_000_000, lambda n: '[{"en": "' + "a" * n + '", "de": "b"}]'),
    "messages": ("a.po", 5000, lambda n: PO + 'msgid "a"\nmsgstr "b"\n\n' * n),
    "a message of many lines": ("a.po", 40_000, lambda n: PO + 'msgid "a"\nmsgstr ""\n' + '"b"\n' * n),
    "empty lines of a message": ("a.po", 40_000, lambda n: PO + 'msgid "a"\nmsgstr ""\n' + '""\n' * n),
    "texts in a line": ("a.po", 40_000, lambda n: PO + 'msgid "a"\nmsgstr ' + '"b"' * n),
    "escapes": ("a.po", 100_000, lambda n: PO + 'msgid "a"\nmsgstr "' + "\\n" * n + '"\n'),
    "comments": ("a.po", 40_000, lambda n: PO + "#, fuzzy\n" * n + 'msgid "a"\nmsgstr "b"\n'),
    "units": ("a.tmx", 5000, lambda n: f"<tmx>{TMX.format('') * n}</tmx>"),
    "broken units": ("a.tmx", 3000, lambda n: f"<tmx>{TMX.format('&') * n}</tmx>"),
    "one broken unit": ("a.tmx", 300_000, lambda n: f"<tmx>{TMX.format('&' + 'x' * n)}</tmx>"),
    "codes": ("a.tmx", 20_000, lambda n: f"<tmx>{TMX.format('<ph>{0}</ph>' * n)}</tmx>"),
    "codes between letters": ("a.tmx", 20_000, lambda n: f"<tmx>{TMX.format('<ph/>' * n)}</tmx>"),
    "a long code": ("a.tmx", 300_000, lambda n: f"<tmx>{TMX.format('<ph>' + '{' * n + '</ph>')}</tmx>"),
    "trans-units": ("a.xlf", 5000, lambda n: XLIFF_FILE.format(XLIFF.format("") * n)),
    "groups": ("a.xlf", 20_000, lambda n: XLIFF_FILE.format("<group></group>" * n + XLIFF.format(""))),
    "segments": ("a.sgm", 20_000, lambda n: "<seg id=1>a</seg>" * n),
    "segments without an end": ("a.sgm", 100_000, lambda n: "<seg id=" * n + ">x</seg>"),
    "attributes": ("a.sgm", 100_000, lambda n: "<seg " + "id " * n + "id=1>x</seg>"),
    "documents": ("a.sgm", 100_000, lambda n: "<doc docid" * n + "<seg>x</seg>"),
    "lines of a segment": ("a.sgm", 50_000, lambda n: "<seg>" + "a\n" * n + "</seg>"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", FILES)
def test_readers(tmp_path: Path, kind: str) -> None:
    name, size, content = FILES[kind]
    limit = LineLimit(2**26)

    def read(length: int) -> None:
        path = tmp_path / f"{length}{name}"
        if not path.exists():
            path.write_text(content(length), encoding="utf-8")
        reader = reader_of(path)
        pairs = reader(path, "t", EN_DE, (), limit).read() if reader else segments(path, limit)
        assert sum(1 for _ in pairs)

    read(size)
    read(2 * size)
    assert min(ratio(read, size) for _ in range(2)) < 2.6
