"""One model for several directions: tags, texts, held-out sets and scores of each."""

import dataclasses
import json
import pickle
from pathlib import Path

import pytest

from conftest import sentences, write_split
from tolka import load
from tolka.api.train import train
from tolka.config.command_line import train_config
from tolka.data.mixture import Mixture
from tolka.errors import ConfigError
from tolka.formats.any_model import load_any
from tolka.run.inputs import Inputs, make_loader, read_inputs
from tolka.system.progress import silent
from tolka.text.direction import Direction
from tolka.text.pairs import FURTHER, NO_PAIR, Pair, ParallelFiles
from tolka.tokenizer.extension import add_tags
from tolka.tokenizer.language_tags import FORMS, Tags
from tolka.tokenizer.tokenizer import Tokenizer

XA_XB, XB_XA = Direction("xa", "xb"), Direction("xb", "xa")


def inputs_of(arguments: list[str]) -> Inputs:
    return read_inputs(train_config(arguments), silent)


def test_a_batch_mixes_directions_each_with_its_tag(tiny: list[str]) -> None:
    config = train_config([*tiny, "corpus.both_directions=true"])
    inputs = read_inputs(config, silent)
    tokenizer = inputs.prepared.tokenizer
    ids = {code: tokenizer.tags(Direction("xa", code)).source[0] for code in ("xa", "xb")}
    assert tokenizer.source_pieces([ids["xa"], ids["xb"]]) == [">>xa<<", ">>xb<<"]
    batch = make_loader(inputs, config, silent).batch(0, 0)
    found = set()
    for source, target, length in zip(
        batch.source.tolist(), batch.target_out.tolist(), batch.target_lengths, strict=True
    ):
        text = tokenizer.decode_target([target[: int(length) - 1]])[0]
        # The targets of xb are the upper half of the generator's words: both sides are looked up in the text.
        found.add((source[0], text in {pair.target for pair in inputs.texts.corpus.train[0].read()}))
    assert found <= {(ids["xb"], True), (ids["xa"], False)}
    assert len(found) == 2


@pytest.mark.parametrize("form", FORMS)
def test_tags_stand_where_they_are_asked_for(trained: Path, form: str) -> None:
    tokenizer = add_tags(load_any(trained).tokenizer, ["xa", "xb"], form)
    size = tokenizer.source_size - 2
    expected = {"source": Tags((size + 1,), ()), "target": Tags((), (size + 1,)), "both": Tags((size,), (size + 1,))}
    assert tokenizer.tags(XA_XB) == expected[form]
    again = Tokenizer(tokenizer.models)
    assert (again.languages, again.tag_form) == (["xa", "xb"], form)
    assert add_tags(again, ["xb"], "target") is again


@pytest.mark.parametrize("form", FORMS)
def test_no_text_is_spelt_with_a_tag_and_no_tag_is_text(trained: Path, form: str) -> None:
    plain = load_any(trained).tokenizer
    tokenizer, written = add_tags(plain, ["xa"], form), FORMS[form].format("xa")
    for text in (written, f"{written} lantern", f"lantern{written}kettle", f" {written}{written}", "xa", ""):
        assert tokenizer.encode_source([text]) == plain.encode_source([text])
    tag = tokenizer.target_size - 1
    assert tokenizer.decode_target([[tag, *plain.encode_target(["ferry"])[0], tag]]) == ["ferry"]


def assert_another_direction_shares_the_model(model: Path) -> None:
    """Scores, flags and alignments are those of a translator that was loaded for this direction."""
    usual, loaded = load(model, source="xa", target="xb"), load(model, source="xb", target="xa")
    other, texts = usual.for_direction(XA_XB.swapped), ["ferry 12", "grey frog"]
    assert (other.direction, usual.direction, other.engine) == (XA_XB.swapped, XA_XB, usual.engine)
    found, expected = other.translate(texts), loaded.translate(texts)
    assert [each.text for each in found] == [each.text for each in expected]
    assert other.align(found) == loaded.align(expected)
    assert other.flags(texts, found) == loaded.flags(texts, expected)
    pairs = [("ferry", "frog")]
    assert other.score(pairs)[0].score == loaded.score(pairs)[0].score != usual.score(pairs)[0].score
    assert pickle.loads(pickle.dumps(other)).direction == XA_XB.swapped
    with pytest.raises(ConfigError, match="does not know the target language 'xc'"):
        usual.for_direction(Direction("xa", "xc"))
    # Also where only targets have tags, and any source would be translated.
    with pytest.raises(ConfigError, match="does not translate from xb to xb; it knows: xa to xb, xb to xa"):
        usual.for_direction(Direction("xb", "xb"))(texts)
    with pytest.raises(ConfigError, match="does not know the source language 'xc'"):
        usual.for_direction(Direction("xc", "xb"))


def test_one_model_of_two_directions_is_trained_tested_and_asked(tiny: list[str], tmp_path: Path) -> None:
    train(train_config([*tiny, "corpus.both_directions=true", "trainer.updates=6", "trainer.validate_every=3"]))
    best = tmp_path / "run" / "best"
    saved = load_any(best)
    assert saved.sources.directions == (XA_XB, XB_XA)
    assert set(saved.sources.length_ratios) == {XA_XB, XB_XA}
    tests = json.loads((best / "scores.json").read_text())["test"]
    assert {tuple(each["direction"]) for each in tests.values()} == {XA_XB, XB_XA}
    validation = [line for line in (best.parent / "metrics.jsonl").read_text().splitlines() if "valid_loss" in line]
    line = json.loads(validation[-1])
    assert line["bleu"] == pytest.approx(sum(each["bleu"] for each in line["directions"].values()) / 2)
    card = (best / "README.md").read_text()
    assert "from xa to xb, xb to xa" in card
    assert "target=CODE" in card
    assert_another_direction_shares_the_model(best)


def test_sets_are_held_out_of_each_direction_and_of_its_opposite(tiny: list[str], corpus: Path) -> None:
    write_split(corpus / "train", sentences(300, seed=5))
    text = corpus / "train"
    entries = f"[{{text: {text}, source: xa, target: xb}},{{text: [{text}.xb,{text}.xa], source: xb, target: xa}}]"
    arguments = [each for each in tiny if not each.startswith(("corpus.train", "corpus.valid", "corpus.test"))]
    inputs = inputs_of([*arguments, f"corpus.train={entries}", "corpus.valid=20", "corpus.test=[]"])
    held_out = {
        direction: {dataclasses.astuple(pair)[:2] for pair in pairs}
        for direction, pairs in inputs.texts.validation.items()
    }
    assert {direction: len(pairs) for direction, pairs in held_out.items()} == {XA_XB: 20, XB_XA: 20}
    reasons = inputs.prepared.tally.dropped
    # Each pair stands in both texts, so that two are left out for each of the forty.
    assert reasons["set aside"] == 80
    assert inputs.prepared.tally.total == 600


def test_a_direction_without_validation_text_is_refused(tiny: list[str], corpus: Path) -> None:
    swapped = f"{{text: [{corpus}/train.xb,{corpus}/train.xa], source: xb, target: xa}}"
    with pytest.raises(ConfigError, match=r"no text of corpus\.valid is from xb to xa"):
        inputs_of([*tiny, f"corpus.train=[{corpus}/train,{swapped}]"])


def test_a_test_set_in_no_language_of_the_model_is_refused(tiny: list[str], corpus: Path) -> None:
    other = f"{{text: [{corpus}/test.xb,{corpus}/test.xa], source: xb, target: xa}}"
    with pytest.raises(ConfigError, match="is from xb to xa, and the model translates from xa to xb alone"):
        inputs_of([*tiny, f"corpus.test=[{other}]"])
    unknown = f"{{text: [{corpus}/test.xb,{corpus}/test.xa], source: xb, target: xq}}"
    with pytest.raises(ConfigError, match="no training text has xq"):
        inputs_of([*tiny, "corpus.both_directions=true", f"corpus.test=[{unknown}]"])


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{text: a, source: xa, target: xa}", "both 'xa'; they must differ"),
        ("{text: a, source: x/a, target: xb}", "must be a language code"),
        ("{texts: a}", "must be {text: PREFIX OR FILE"),
        ("{text: a, source: xa}", "must be {text: PREFIX OR FILE"),
    ],
)
def test_entries_with_languages_are_checked(tiny: list[str], entry: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        train_config([*tiny, f"corpus.train=[{entry}]"])


def test_temperature_is_by_direction() -> None:
    directions = [XA_XB, XA_XB, XB_XA]
    # 400 + 400 and 200 pairs; with an infinite temperature each direction would have half of the thousand.
    mixture = Mixture.of([400, 400, 200], temperature=1e9, directions=directions)
    assert mixture.draws == (250, 250, 500)


def verses(folder: Path, source: str, target: str) -> list[Pair]:
    (folder / "a.txt").write_text(source)
    (folder / "b.txt").write_text(target)
    return list(ParallelFiles(folder / "a.txt", folder / "b.txt", "verses").read())


def test_joined_verses_are_joined_on_both_sides(tmp_path: Path) -> None:
    pairs = verses(tmp_path, "one two\n<range>\nthree\n", "1\n2\n3\n")
    further = Pair("", "", f"{FURTHER}verses, joined to those before")
    assert pairs == [Pair("one two", "1 2"), further, Pair("three", "3")]
    assert verses(tmp_path, "a\nb\n<range>\n", "1\n<range>\n<range>\n") == [Pair("a b", "1"), further, further]
    # Where one translation lacks a verse of the range, the sides do not say the same.
    lacking = verses(tmp_path, "one two\n<range>\n", "1\n\n")
    assert [pair.flaw for pair in lacking] == [f"{NO_PAIR}verses that one side lacks", further.flaw]


def test_a_verse_that_a_translation_of_ebible_lacks_is_no_fault(tmp_path: Path) -> None:
    lines = [f"verse {number}" for number in range(41_899)]
    pairs = verses(tmp_path, "\n".join(lines) + "\n", "\n" * 41_890 + "x\n" * 9)
    assert len(pairs) == 41_899
    assert sum(pair.flaw.startswith(NO_PAIR) for pair in pairs) == 41_890


@pytest.mark.slow
def test_a_model_of_one_direction_goes_on_with_both(trained: Path, tiny: list[str]) -> None:
    own = [each for each in tiny if not each.startswith(("model", "tokenizer"))]
    updates = ["trainer.updates=2", "trainer.validate_every=2", "corpus.both_directions=true"]
    train(train_config([*own, f"run.init_from={trained}", *updates]))
    run = next(Path(each.removeprefix("run.dir=")) for each in own if each.startswith("run.dir="))
    before, after = load_any(trained).tokenizer, load_any(run).tokenizer
    assert after.source_size == before.source_size + 2
    assert after.languages == ["xa", "xb"]
