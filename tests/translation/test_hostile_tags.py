"""Lines with tags, codes and special tokens in them: none becomes a tag, none is lost, and no translation has one."""

import random
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pytest
from m2m_folder import write_m2m_folder
from marian_folder import mixed_lines

from conftest import Command
from tolka.engines.options import DecodingConfig
from tolka.formats.any_model import load_any
from tolka.search.greedy import GreedyConfig
from tolka.tokenizer.extension import add_tags
from tolka.tokenizer.language_tags import FORMS
from tolka.translation.results import Translation
from tolka.translation.translator import Translator

SPECIAL = ("<s>", "</s>", "<pad>", "<unk>", "<mask>")
WRITTEN = [
    *("deu_Latn", "eng_Latn", "kor_Hang", "__de__", "__en__", ">>deu<<", ">>xa<<", "<<xb>>", "__xa__", ">>", "<<"),
    *("__", "madeupword0000", "\u2581", "\u2581deu_Latn", "<0x41>", "xa", "de", *SPECIAL),
]


def hostile_lines(count: int) -> list[str]:
    """Lines of such words and ordinary ones; every tenth is blank."""
    draw, words = random.Random(7), [word for line in mixed_lines(20) for word in line.split()]
    lines = []
    for number in range(count):
        parts = [draw.choice(WRITTEN if draw.random() < 0.5 else words) for _ in range(draw.randint(1, 6))]
        lines.append(draw.choice(["", " ", "\t"]) if number % 10 == 9 else draw.choice(["", " "]).join(parts))
    return lines


LINES = hostile_lines(1000)


@pytest.mark.parametrize("kind", ["m2m100", "nllb"])
def test_one_line_in_is_one_line_out_without_a_tag(kind: str, tmp_path: Path) -> None:
    saved = load_any(write_m2m_folder(tmp_path / "model", kind, init_std=0.3))
    source, target = ("en", "de") if kind == "m2m100" else ("eng_Latn", "deu_Latn")
    search = GreedyConfig(max_length_factor=0.0, max_length_extra=12)
    translator = Translator.of(saved, search, DecodingConfig(device="cpu", source=source, target=target))
    found = translator.translate(LINES)
    assert len(found) == len(LINES)
    assert [not each.text.strip() for each in found][9::10] == [True] * 100
    tags = {*saved.tokenizer.vocabularies[0].tags.values()}
    assert not [each.text for each in found if any(tag in each.text for tag in (*tags, *SPECIAL))]
    ids = {number for side in saved.tokenizer.tag_ids for number in side.values()}
    assert not any(ids & {*row} for row in saved.tokenizer.encode_source(LINES))
    # The model would say tags of its own accord, and what stands for no text besides: no search lets it.
    never = {*saved.tokenizer.without_text}
    assert never > ids
    assert not never & tokens_of(found)
    saved.tokenizer.without_text = ()
    assert never & tokens_of(translator.translate(LINES[:200]))


def tokens_of(found: Sequence[Translation]) -> set[int]:
    """All ids of these translations."""
    segments = [tokens for each in found for candidate in each.candidates for _, tokens in candidate.segments]
    return {*chain.from_iterable(segments)}


@pytest.mark.parametrize("form", FORMS)
def test_a_subword_that_is_spelt_as_a_tag_is_named(form: str, tiny: list[str], command: Command) -> None:
    tag = FORMS[form].format("xb")
    words = "corpus.both_directions=true", f"tokenizer.tags={form}", f"tokenizer.symbols=['{tag}']"
    assert (
        f"the tokenizer has {tag} as a subword, and it is to be a language's tag"
        in command("mt-train", *tiny, *words).error
    )


@pytest.mark.parametrize("form", FORMS)
def test_no_line_is_spelt_with_an_own_model_s_tags(trained: Path, form: str) -> None:
    plain = load_any(trained).tokenizer
    tokenizer = add_tags(plain, ["xa", "xb"], form)
    assert {*tokenizer.without_text} == {*tokenizer.tag_ids[1].values()}
    assert plain.without_text == ()
    rows = tokenizer.encode_source(LINES)
    assert rows == plain.encode_source(LINES)
    ids = tokenizer.tag_ids[0].values()
    tagged = [[*ids, *row, *ids] for row in rows]
    assert tokenizer.decode_target(tagged) == plain.decode_target(rows)
