"""Glossaries and banned phrases from file to translation, with small trained tokenizers and random models."""

from functools import cache
from pathlib import Path

import pytest
import torch
from copying_model import facts
from oracle import perturb
from rows import each_row

from tolka.data.batch import BOS
from tolka.engines.options import DecodingConfig
from tolka.engines.torch_engine import TorchEngine
from tolka.errors import ConfigError, DataError
from tolka.models.rnn.config import RnnConfig
from tolka.search.beam import BeamConfig
from tolka.search.greedy import GreedyConfig
from tolka.search.options import SEARCHES, SearchConfig
from tolka.search.sampling import SamplingConfig
from tolka.terminology.glossary import Entry, Match
from tolka.text.characters import CharacterForm
from tolka.text.direction import Direction
from tolka.text.pairs import Pair
from tolka.tokenizer.tokenizer import Tokenizer, TokenizerConfig
from tolka.tokenizer.training import train_tokenizer
from tolka.translation.request import Request
from tolka.translation.terminology import Terminology
from tolka.translation.translator import Translator

PAIRS = [
    Pair(
        "red birds sing. blue fish swim, green frogs jump.", "rote Vögel singen. der blaue Fisch schwimmt, sie laufen."
    ),
    Pair("the old boat drifts home", "고래가 노래합니다. 달이 뜹니다。 一头鲸鱼游泳。鲸鱼和狗 鱼"),
    Pair("dogs run and a dog barks", "Hunde laufen und ein Hund bellt (der Hund)"),
] * 4


@cache
def tokenizer(kind: str = "bpe", byte_fallback: bool = True, normalization: str = "identity") -> Tokenizer:
    size = 380 if byte_fallback else 120
    config = TokenizerConfig(type=kind, vocab_size=size, byte_fallback=byte_fallback, normalization=normalization)
    return train_tokenizer(config, lambda: iter(PAIRS), lambda remark: None)


@cache
def engine_of(seed: int, used: Tokenizer) -> TorchEngine:
    torch.manual_seed(seed)
    model = RnnConfig(d_model=16).build(used.source_size, used.target_size, True).eval()
    perturb(model, seed)
    pieces = used.target_pieces(range(used.target_size))
    unlikely = torch.tensor([-30.0 * piece.startswith("<0x") for piece in pieces])  # random bytes are no text
    real = model.logits
    model.logits = lambda features: real(features) + unlikely  # type: ignore[method-assign]
    return TorchEngine(model, torch.device("cpu"))


def translator(
    entries: list[Entry],
    banned: list[str] | None = None,
    search: SearchConfig | None = None,
    seed: int = 1,
    used: Tokenizer | None = None,
    max_length: int = 50,
) -> Translator[TorchEngine]:
    used = used or tokenizer()
    request = Request(search or BeamConfig(beam_size=3), glossary=entries, banned=banned or [])
    known, decoding = facts(used, max_length), DecodingConfig(split="length")
    return Translator(engine_of(seed, used), known, request, decoding)


ENTRIES = [
    Entry(("dog", "dogs"), ("Hund", "Hunde")),
    Entry(("boat",), ("laufen",)),
    Entry(("birds",), ("rote Vögel",)),
    Entry(("fish",), ("鲸鱼",)),
    Entry(("frogs",), ("고래",)),
    Entry(("home",), ("Zeppelin ☃",)),
]
TEXTS = [
    "the dog barks",
    "the old boat drifts home",
    "red birds sing. blue fish swim, green frogs jump.",
    "and a run",
    "",
    "dogs dogs dogs",
]
FORMS: list[list[tuple[str, ...]]] = [
    [("Hund",)],
    [("laufen", "Laufen"), ("Zeppelin ☃",)],
    [("rote Vögel", "Rote Vögel"), ("鲸鱼",), ("고래",)],
    [],
    [],
    [("Hund",)],
]


@pytest.mark.slow
@each_row("kind", ["bpe", "unigram", "char"])
@each_row("seed", [1, 2])
def test_all_terms_stand_in_the_translations(kind: str, seed: int) -> None:
    made = translator(ENTRIES, search=BeamConfig(beam_size=4, n_best=2), seed=seed, used=tokenizer(kind))
    plain = translator([], search=BeamConfig(beam_size=4, n_best=2), seed=seed, used=tokenizer(kind))
    for text, forms, translation, without in zip(
        TEXTS, FORMS, made.translate(TEXTS), plain.translate(TEXTS), strict=True
    ):
        for candidate in translation.candidates:
            assert candidate.missing == []
            for alternatives in forms:
                assert any(form in candidate.text for form in alternatives), (text, candidate.text)
        if not forms:
            assert translation.text == without.text
            assert translation.score == pytest.approx(without.score, abs=1e-4)
    assert all(each.candidates[0].missing == [] for each in plain.translate(TEXTS))


def test_terms_of_each_part_of_a_split_text() -> None:
    made = translator(ENTRIES, max_length=6)
    [found] = made.translate(["a dog barks. red fish swim. the old boat drifts. a dog barks."])
    assert len(found.segments) >= 4
    assert found.candidates[0].missing == []
    assert found.text.count("Hund") >= 2, "once for each part that has the term"


def test_what_cannot_be_met_is_reported() -> None:
    """The length limit is short; and a tokenizer without bytes does not know some characters."""
    entries = [Entry(("dog",), ("Hund " * 12 + "Hund",)), Entry(("barks",), ("laufen",))]
    short = BeamConfig(beam_size=3, max_length_factor=0.0, max_length_extra=9)
    [found] = translator(entries, search=short).translate(["the dog barks"])
    assert found.candidates[0].missing == [entries[0].targets[0]]
    assert "laufen" in found.text.casefold()
    unknown = translator([Entry(("dog",), ("☃",)), Entry(("barks",), ("laufen",))], used=tokenizer(byte_fallback=False))
    [found] = unknown.translate(["the dog barks"])
    assert found.candidates[0].missing == ["☃"]


def test_the_ids_of_a_term_are_those_inside_a_sentence_and_at_its_beginning() -> None:
    used = tokenizer()
    terms = Terminology([], [], used)
    for form, texts in {
        "laufen": {"sie laufen", "laufen", "Laufen"},
        "Hund": {"ein Hund", "Hund"},
        "鲸鱼": {"一头 鲸鱼", "(鲸鱼", "鲸鱼"},
    }.items():
        [alternatives] = terms.wish([Match("", (form,))]).terms
        decoded = {used.decode_target([each[each[0] == BOS :]])[0] for each in alternatives}
        assert decoded <= {form, form.capitalize()}
        for text in texts:
            [ids] = used.encode_target([text])
            begun = [BOS, *ids]
            assert any(
                list(each) == begun[start : start + len(each)] for each in alternatives for start in range(len(begun))
            ), text


def test_spelling_follows_the_unicode_form_of_the_training_text() -> None:
    terms = Terminology(
        [Entry(("cafe\u0301",), ("Vo\u0308gel",))], ["Vo\u0308gel"], tokenizer(), characters=CharacterForm("nfc")
    )
    [match] = terms.matches("ein caf\u00e9")
    assert match.targets == ("V\u00f6gel",)
    assert terms.missing([match], "rote V\u00f6gel") == []
    assert terms.banned_phrases("rote V\u00f6gel") == ["V\u00f6gel"]


@pytest.mark.slow
@each_row("search", [BeamConfig(beam_size=3), GreedyConfig(), SamplingConfig(n_best=2)])
@each_row("seed", [1, 2, 3])
def test_banned_phrases_stay_out_in_whatever_subwords(search: SearchConfig, seed: int) -> None:
    """Words of the plain translations are banned; a character would otherwise come in another spelling."""
    plain = translator([], search=search, seed=seed)
    texts = TEXTS[:4]
    before = [candidate.text for each in plain.translate(texts) for candidate in each.candidates]
    words = {word for text in before for word in text.split() if word.isalpha()}
    banned = sorted(words)[:3]
    assert banned
    made = translator([], banned, search=search, seed=seed)
    found = [candidate for each in made.translate(texts) for candidate in each.candidates]
    assert [candidate.text for candidate in found] != before
    for candidate in found:
        assert candidate.banned == []
        assert not {*banned} & {*candidate.text.split()}


def test_other_spellings_of_a_banned_phrase_are_found() -> None:
    used = tokenizer()
    terms = Terminology([], ["Hund"], used)
    [letters] = [[used.encode_target([letter])[0][-1] for letter in "Hund"]]
    [blank] = used.encode_target(["a b"])
    ids = [*used.encode_target(["ein"])[0], *used.encode_target([" "])[0], *letters]
    text = used.decode_target([ids])[0]
    assert terms.banned_phrases("ein Hund") == ["Hund"]
    assert terms.banned_phrases("Hunde") == []
    assert terms.banned_phrases(text) == (["Hund"] if "ein Hund" in text else [])
    assert blank
    spelt = used.encode_target(["ein Hund bellt"])[0]
    [found] = terms.banned_spellings("ein Hund bellt", spelt)
    assert used.decode_target([list(found)]) == ["Hund"]


def test_a_term_that_is_banned_is_reported() -> None:
    [found] = translator([Entry(("dog",), ("Hund",))], ["Hund"]).translate(["the dog barks"])
    assert found.candidates[0].missing == ["Hund"]
    assert found.candidates[0].banned == []


def test_prefix_and_glossary_together() -> None:
    [found] = translator(ENTRIES).translate(["the dog barks"], Request(prefixes=["sie laufen"]))
    assert found.text.startswith("sie laufen")
    assert "Hund" in found.text
    [found] = translator(ENTRIES).translate(["the dog barks"], Request(prefixes=["ein Hund"]))
    assert found.text.startswith("ein Hund")


@pytest.mark.parametrize("name", [name for name in SEARCHES.names() if name != "beam"])
def test_searches_that_meet_no_terms_say_so(name: str) -> None:
    with pytest.raises(ConfigError, match=r"search\.glossary \(terms\.tsv\) needs beam search: set search=beam"):
        SEARCHES.get(name)(glossary="terms.tsv")
    assert SEARCHES.get(name)(banned="banned.txt").banned == "banned.txt"


def test_a_request_of_files_has_what_is_in_them(tmp_path: Path) -> None:
    glossary, banned = tmp_path / "terms.tsv", tmp_path / "banned.txt"
    glossary.write_text("dog\tHund\n")
    banned.write_text("Katze\n")
    search = BeamConfig(glossary=str(glossary), banned=str(banned))
    request = Request.of(search, Direction("en", "de"))
    assert (request.glossary, request.banned) == ((Entry(("dog",), ("Hund",)),), ("Katze",))
    assert request.search == BeamConfig()
    with pytest.raises(DataError, match=r"none\.txt: there is no such file"):
        Request.of(GreedyConfig(banned=str(tmp_path / "none.txt")), Direction("en", "de"))


def test_forms_are_compared_as_the_tokenizer_writes_them() -> None:
    """With nfkc, m² is read and written as m2; a text that a person gives may have either."""
    used = tokenizer(normalization="nfkc")
    terms = Terminology([Entry(("area",), ("m²",)), Entry(("maker",), ("ﬁrma",))], ["m²", "ﬁn"], used)
    area, maker = terms.matches("the area, the maker")
    for match, texts in ((area, ("12 m2", "12 m²")), (maker, ("die firma", "Firma", "die ﬁrma"))):
        assert [terms.missing([match], text) for text in texts] == [[]] * len(texts)
        assert terms.missing([match], "12 m") == [match.targets[0]]
    assert [terms.banned_phrases(text) for text in ("ein m2.", "M2", "m²", "Fin", "m22 final")] == [
        *([["m²"]] * 3),
        ["ﬁn"],
        [],
    ]
    ids = used.encode_target(["ein m2 und"])[0]
    [spelling] = terms.banned_spellings(used.decode_target([ids])[0], ids)
    assert used.decode_target([list(spelling)])[0].strip() == "m2"


def test_banned_phrases_are_looked_up_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = Terminology([], [f"w{number} x" for number in range(300)], tokenizer())
    assert terms.banned_phrases("") == []
    tried: list[str] = []
    for name in ("Phrases", "occurs_in"):
        monkeypatch.setattr(f"tolka.translation.terminology.{name}", lambda *given, **named: tried.append(given[0]))
    monkeypatch.setattr(Tokenizer, "encode_target", lambda *given: tried.append(given[0]))
    assert terms.banned_phrases("W7 x and w299 x, w7 y") == ["w7 x", "w299 x"]
    assert tried == []
