"""benchmarks/attention_hits.py: the words that are looked for, and how a hit is counted."""

import sys
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from attention_hits import (
    Probe,
    first_probes,
    interval,
    it_hit,
    it_probe,
    main,
    maps_of,
    verb_hit,
    verb_probe,
    without_marks,
)
from sample_corpus.sentences import Sentence, random_sentence
from tolka.engines.options import DecodingConfig
from tolka.search.greedy import GreedyConfig
from tolka.translation.attention_maps import AttentionMap
from tolka.translation.opening import open_model


def sentence(english: str, korean: str, *lexemes: str, pairs: tuple[tuple[str, str], ...] = ()) -> Sentence:
    return Sentence(english, korean, frozenset(lexemes), frozenset(pairs))


def test_verbs_are_found_whatever_their_form() -> None:
    love = sentence("I love you.", "나는 당신을 사랑합니다.", "verb:love")
    assert verb_probe(love) == Probe(love.english, love.korean, 1, 2)
    drive = sentence("I cannot drive a bus.", "나는 버스를 운전할 수 없습니다.", "verb:drive")
    assert verb_probe(drive) == Probe(drive.english, drive.korean, 2, 2)
    know = sentence("Tom does not know me.", "톰은 나를 모릅니다.", "verb:know")
    assert verb_probe(know) == Probe(know.english, know.korean, 3, 2)
    assert (
        verb_probe(sentence("Anna does not know me.", "안나는 나를 모릅니다.", "verb:know")) is None
    )  # 안 could be it
    assert verb_probe(sentence("Love and drive.", "사랑하고 운전해라.", "verb:love", "verb:drive")) is None
    assert verb_probe(sentence("It was hot.", "더웠다.")) is None


def test_what_it_refers_to() -> None:
    english = "The cat did not eat the rice because it was too hot."
    cat = it_probe(sentence(english, "", pairs=(("adjective:hot", "noun:rice"),)))
    assert cat == Probe(english, "", 6, 1)
    assert it_probe(sentence(english, "")) is None
    assert it_probe(sentence("The cat ate the rice.", "")) is None


def test_a_hit_is_the_largest_weight_and_marks_do_not_count() -> None:
    probe = Probe("I love you.", "당신을 사랑합니다.", 1, 1)
    columns, rows = ["▁I", "▁love", "▁you", ".", "</s>"], ["▁당신을", "▁사랑", "합니다", ".", "</s>"]
    looking = [0.1, 0.6, 0.2, 0.1, 0.0]
    away = [0.0, 0.0, 0.1, 0.9, 0.0]
    weights = [away, looking, looking, away, away]
    each = AttentionMap("decoder.0.cross", rows, columns, weights)
    assert without_marks(each).columns == ["▁I", "▁love", "▁you", "</s>"]
    assert without_marks(each).weights[2] == [0.1, 0.6, 0.2, 0.0]
    assert verb_hit(probe, without_marks(each))
    apart = AttentionMap("decoder.0.cross", ["▁나는", "▁", "너를", ".", "</s>"], columns, weights)
    assert without_marks(apart).rows == ["▁나는", "▁", "너를", "</s>"]
    elsewhere = AttentionMap("decoder.0.cross", rows, columns, [away, away, [0.9, 0.0, 0.1, 0, 0], away, away])
    assert not verb_hit(probe, without_marks(elsewhere))


def test_it_is_compared_with_the_other_noun() -> None:
    pieces = ["▁the", "▁cat", "▁ate", "▁the", "▁ri", "ce", "▁because", "▁it", "</s>"]
    rows = [[0.0] * 9] * 7 + [[0.5, 0.2, 0.0, 0.0, 0.1, 0.15, 0.0, 0.05, 0.0]] + [[0.0] * 9]
    each = AttentionMap("encoder.0.self", pieces, pieces, rows)
    assert it_hit(Probe("The cat ate the rice because it", "", 4, 1), each)
    assert not it_hit(Probe("The cat ate the rice because it", "", 1, 4), each)


def test_wilson_s_interval() -> None:
    assert interval(50, 100) == pytest.approx((0.4038, 0.5962), abs=1e-3)
    assert interval(0, 100)[0] == pytest.approx(0.0, abs=1e-9)


def test_every_layer_and_head_is_read(trained: Path) -> None:
    translator = open_model(trained, GreedyConfig(), DecodingConfig(backend="torch"))
    probes = [Probe("ferry lantern .", "fjon tolo .", 0, 0)] * 3
    found = maps_of(translator, probes, "encoder")
    assert set(found) == {("encoder.0.self", head) for head in ("0", "1", "mean")}
    assert all(len(maps) == 3 for maps in found.values())
    assert "." not in {piece.strip("▁") for piece in found["encoder.0.self", "0"][0].columns}


def test_enough_of_both_kinds_are_found() -> None:
    """In the language itself; the script takes them from the test halves, which take half a minute to make."""
    drawn = Random(3)
    made = list(islice((random_sentence(drawn) for _ in iter(int, 1)), 3000))
    assert len(first_probes(map(verb_probe, made))) == 100
    assert sum(probe is not None for probe in map(it_probe, made)) > 50


def test_a_model_of_other_languages_is_one_line(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("attention_hits.all_probes", lambda: {"verbs": [Probe("a", "b", 0, 0)]})
    monkeypatch.setattr(sys, "argv", ["attention_hits.py", str(trained)])
    with pytest.raises(SystemExit):
        main()
    assert "is no model of the embedded corpus" in capsys.readouterr().err.splitlines()[-1]
