"""The page's tokenizer, rules of characters and splitter give what tolka and SentencePiece give; Node runs them."""

import json
import random
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from rows import each_row

from tolka.errors import ConfigError
from tolka.formats.html.model import about_characters, about_splitter, about_tokenizer
from tolka.system.package_data import sample_dir, table_beside
from tolka.text import typography
from tolka.text.abbreviations import COMMON, RARE, abbreviation_before
from tolka.text.characters import KEEP, CharacterForm
from tolka.text.direction import Direction
from tolka.text.pairs import Pair
from tolka.text.scripts import plain_code
from tolka.tokenizer.extension import add_tags
from tolka.tokenizer.sentencepiece_model import model_proto
from tolka.tokenizer.special_tokens import EOS
from tolka.tokenizer.tokenizer import Tokenizer, TokenizerConfig
from tolka.tokenizer.training import train_tokenizer
from tolka.tokenizer.vocabulary import Vocabulary
from tolka.translation.segments import Segmenter
from tolka.translation.terminology import Terminology

PAGE = Path(typography.__file__).parents[1] / "page"
SENTENCES = Path(__file__).parents[2] / "translation" / "sentences.tsv"
EN_KO = Direction("en", "ko")
# Latin, Greek, Cyrillic, Hebrew, Arabic, Devanagari, Thai, Hangul, kana, Han, Ethiopic, Deseret; jamo, combining marks,
# full-width and presentation forms, letters of mathematics, signs, emoji, controls, private use, specials.
SCRIPTS = "20-24f 370-3ff 400-4ff 590-5ff 600-6ff 900-97f e00-e7f ac00-d7a3 3040-30ff 4e00-9fff 1200-137f 10400-1044f"
OTHERS = (
    "1100-11ff 300-36f ff00-ffef fb00-fdff 1d400-1d7ff 2000-206f 2500-259f 1f300-1f64f 0-1f 7f-9f e000-e00f fff0-ffff"
)
BETWEEN = (
    "",
    "",
    " ",
    "  ",
    "\u3000",
    "\u200d",
    "\u0301",
    "▁",
    "\ufe0f",
    "👨‍👩‍👧",
    "%s",
    "<br>",
    "<s>",
    "<0x41>",
    "lion",
    "\0",
)

# Several merges or segmentations are equally good; a byte order mark is a character.
TIES = ("aaa eee lll nnnnn ooo", *("the lions " * n + "8000 00000 000 lions" for n in range(40)), "\ufeff a\ufeff")


def run_page(name: str, given: Any) -> Any:
    """Return what a function of page_text.mjs returns."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed: nothing runs the page's scripts")
    command = [node, str(Path(__file__).with_name("page_text.mjs")), str(PAGE), name]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@cache
def sample_pairs() -> list[Pair]:
    english, korean = ((sample_dir() / f"train.{code}").read_text(encoding="utf-8").splitlines() for code in EN_KO)
    numbers = [Pair(f"{n}00 {n}000", f"{n}.00 00{n}") for n in range(60)]  # so that 00 is a subword
    return [*numbers, *(Pair(*pair) for pair in zip(english[:600], korean, strict=False))]


def random_lines(number: int, seed: int) -> list[str]:
    """Return lines of the sample, and as many in twelve scripts with all that a text may have."""
    draw = random.Random(seed)
    ranges = [
        [int(end, 16) for end in each.split("-")] for each in (*SCRIPTS.split(), *SCRIPTS.split(), *OTHERS.split())
    ]

    def part() -> str:
        first, last = draw.choice(ranges)
        return "".join(chr(draw.randint(first, last)) for _ in range(draw.randint(1, 6))) + draw.choice(BETWEEN)

    texts = [text for pair in sample_pairs() for text in (pair.source, pair.target)]
    real = [draw.choice(texts) for _ in range(number // 2)]
    return real + ["".join(part() for _ in range(draw.randint(0, 12))) for _ in range(number - len(real))]


@cache
def trained(symbols: tuple[str, ...] = (), **options: Any) -> Tokenizer:
    config = TokenizerConfig(**{"vocab_size": 700, "symbols": [*symbols], **options})
    return train_tokenizer(config, lambda: iter(sample_pairs()), lambda note: None)


def check_equal(tokenizer: Tokenizer, number: int, direction: Direction = EN_KO, lines: tuple[str, ...] = ()) -> None:
    """Compare the ids of `number` lines, and the texts of twice as many rows of random ids."""
    draw = random.Random(number)
    texts = [*lines, *TIES, *random_lines(number, seed=number)]
    sizes = [min(264, tokenizer.target_size), tokenizer.target_size]  # bytes are among the first
    rows = [[draw.randrange(draw.choice(sizes)) for _ in range(draw.randint(0, 15))] for _ in range(2 * number)]
    rows += tokenizer.encode_target(texts)
    about = about_tokenizer(tokenizer, [direction])
    given = {"about": about, "direction": direction._asdict(), "lines": texts, "rows": rows}
    page, tags = run_page("tokenize", given), tokenizer.tags(direction)
    expected = [[*tags.source, *ids, EOS] for ids in tokenizer.encode_source(texts, direction)]
    assert [line for line, one, other in zip(texts, page["encoded"], expected, strict=True) if one != other] == []
    texts_of_rows = tokenizer.decode_target(rows)
    assert [row for row, one, other in zip(rows, page["decoded"], texts_of_rows, strict=True) if one != other] == []
    assert page["beginning"] == list(tags.target)


MODELS = [(kind, bytes_too) for kind in ("bpe", "unigram") for bytes_too in (False, True)]


@each_row("kind, byte_fallback", MODELS)
def test_ids_and_texts_are_those_of_sentencepiece(kind: str, byte_fallback: bool) -> None:
    normalization = "nfkc" if byte_fallback else "identity"
    check_equal(trained(type=kind, byte_fallback=byte_fallback, normalization=normalization), 300)


@pytest.mark.slow
@each_row("kind, byte_fallback, normalization", [(*model, form) for model in MODELS for form in ("identity", "nfkc")])
def test_ten_thousand_lines_have_the_ids_of_sentencepiece(kind: str, byte_fallback: bool, normalization: str) -> None:
    check_equal(trained(type=kind, byte_fallback=byte_fallback, normalization=normalization), 10_000)


@each_row("kind", ["bpe", "unigram", "char", "word"])
def test_symbols_and_other_types_are_those_of_sentencepiece(kind: str) -> None:
    symbols = () if kind == "word" else ("%s", "<br>", "lion", "나")
    check_equal(trained(type=kind, symbols=symbols, byte_fallback=kind != "char"), 200)


@each_row("form", ["source", "target", "both"])
def test_tags_stand_where_tolka_has_them(form: str) -> None:
    check_equal(add_tags(trained(shared=False), ["en", "ko"], form), 50, lines=(">>ko<< lion", "__ko__ lion"))


def test_a_vocabulary_beside_the_model_gives_the_ids() -> None:
    """A vocabulary in another order, which lacks some of the model's subwords, and has some that the model lacks."""
    base = trained(byte_fallback=False)
    subwords = base.source_pieces(range(4, base.source_size))[::-1][20:]
    names = ["</s>", "<unk>", *subwords, "鯨", ">>ko<<", ">>group<<", "<pad>"]
    vocabulary = Vocabulary.of(names, (0, 1, len(names) - 1))
    lines = (">>ko<< a lion", ">>group<< a lion", ">>xx<< a lion", "鯨 a lion", "a >>ko<<")
    check_equal(Tokenizer(base.models, [vocabulary]), 200, lines=lines)
    tagged = Vocabulary.of(
        [*names[:-1], "__en__", "__ko__", "<pad>"], (0, 1, len(names) + 1), {"en": "__en__", "ko": "__ko__"}
    )
    check_equal(Tokenizer(base.models, [tagged]), 200, lines=("__ko__ a lion", *lines))


def test_what_no_page_computes_is_refused() -> None:
    for change in ("treat_whitespace_as_suffix", "escape_whitespaces"):
        model = model_proto(trained().models[0])
        spec: Any = model.trainer_spec if hasattr(model.trainer_spec, change) else model.normalizer_spec
        setattr(spec, change, not getattr(spec, change))
        with pytest.raises(ConfigError, match="a page cannot compute a SentencePiece model with denormalisation"):
            about_tokenizer(Tokenizer([model.SerializeToString()]), [])


def forms() -> Iterator[CharacterForm]:
    settings = [
        ("keep", "keep", "keep"),
        ("nfc", "keep", "space"),
        ("keep", "strip", "source"),
        ("nfc", "strip", "space"),
    ]
    yield from (CharacterForm(*each, "keep", EN_KO) for each in settings)
    for codes in table_beside(typography.__file__)["languages"]:
        yield from (CharacterForm("nfc", "strip", "space", "standard", Direction(code, "en")) for code in codes.split())


def test_characters_are_those_of_tolka() -> None:
    draw = random.Random(5)
    # All characters of the table of spellings, and those of the other rules.
    table = Path(typography.__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    unseen = "\x80\x85\x9f\xa0\xad\u061c\u200b\u200c\u200d\u200e\u2028\u205f\u2060\u3000\ufeffกខאבe\u0301\u1100\u1161"
    alphabet = table + 8 * unseen
    cases = [
        (form, ["".join(draw.choices(alphabet, k=draw.randint(0, 30))) for _ in range(100)] + random_lines(20, seed=2))
        for form in forms()
    ]
    cases = [(form, [*lines, 'hoà, "中文", ĳs l·l ŀl o\'g ʻil cлово, 中 (日) ﾊﾝｶｸ ٣ ٤']) for form, lines in cases]
    given = [
        {"about": about_characters(form, [form.direction]), "language": form.direction.source, "lines": lines}
        for form, lines in cases
    ]
    for (form, lines), page in zip(cases, run_page("normalize", given), strict=True):
        assert page == list(map(form.source, lines)), form


def test_sentences_are_those_that_a_reader_sees() -> None:
    rows = [row.split("\t") for row in SENTENCES.read_text(encoding="utf-8").splitlines()[1:]]
    patterns = [abbreviation_before(plain_code(code), (RARE, COMMON)) for code, _ in rows]
    given = [
        (text.replace("¦", ""), code, pattern and pattern.pattern)
        for (code, text), pattern in zip(rows, patterns, strict=True)
    ]
    page = run_page("sentences", given)
    wrong = ["¦".join(found) for (_, text), found in zip(rows, page, strict=True) if found != text.split("¦")]
    assert wrong == ["Yahoo! ¦Inc. is big."]


TEXTS = [
    "I love you. A lion sleeps in the house. You run.",
    "a lion, " * 40 + "sleeps",
    "x" * 150 + "e\u0301" * 30,
    "甲乙。丙丁。",
    "",
    " \t ",
    "One two.  Three four.",
]


@each_row(
    "split, target", [("sentences", "ko"), ("length", "ja"), ("never", "xb"), ("sentences", "zh"), ("sentences", "")]
)
def test_texts_are_split_and_joined_as_by_tolka(split: str, target: str) -> None:
    direction, tokenizer = Direction("en", target), trained()
    segmenter = Segmenter(tokenizer, 30, KEEP, split, direction, Terminology((), (), tokenizer))
    given = {
        "about": about_splitter([direction], split, 30),
        "characters": about_characters(KEEP, [direction]),
        "tokenizer": about_tokenizer(tokenizer, [direction]),
        "direction": direction._asdict(),
        "texts": TEXTS,
    }
    for text, page in zip(TEXTS, run_page("split", given), strict=True):
        segments = segmenter.segment(text).segments
        assert tokenizer.encode_source(page["sentences"]) == [segment.ids for segment in segments], text
        assert page["separators"][1:-1] == [segment.separator for segment in segments][1:], text
    given["texts"] = ["One two.\n  Three. Four.\r\n\r\nFive.\n"]
    (page,) = run_page("split", given)
    assert page["separators"][0] == ""
    assert page["separators"][-1] == "\n"
    assert [each for each in page["separators"] if "\n" in each] == ["\n  ", "\n\n", "\n"]
