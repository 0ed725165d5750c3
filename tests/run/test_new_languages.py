"""A language that a model of several does not know: its tag, its characters and subwords, and all of it there again."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from m2m_folder import write_m2m_folder
from marian_folder import mixed_lines
from rows import each_row
from torch.nn.functional import cross_entropy

import tolka
from conftest import Command, sentences, write_corpus
from tolka.auto.rules import choose_tuning
from tolka.auto.text_facts import TextFacts
from tolka.config.command_line import train_config
from tolka.data.batch import collate
from tolka.data.buckets import BatchingConfig
from tolka.data.preparation import Order, prepare
from tolka.errors import ConfigError
from tolka.formats.huggingface.family import read_foreign
from tolka.interchange.huggingface import export_huggingface
from tolka.model_directory.facts import ModelFacts
from tolka.model_directory.read import load_model
from tolka.model_directory.verify import TrainingSources
from tolka.run.parents import _nearest
from tolka.text.cleaning.steps import CleaningConfig
from tolka.text.corpora.base import Corpus
from tolka.text.direction import Direction
from tolka.text.new_languages import check_new_languages
from tolka.text.pairs import Pair, PairSource, ParallelFiles
from tolka.tokenizer.extension import Extension, add_tags, extend_tokenizer, spellings
from tolka.tokenizer.special_tokens import UNK

KNOWN = ["deu_Latn", "eng_Latn", "kor_Hang"]


@pytest.fixture(scope="module")
def nllb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of NLLB-200, not to be changed."""
    return write_m2m_folder(tmp_path_factory.mktemp("nllb") / "model", "nllb", init_std=0.3)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """German, and a language with two letters that the model lacks."""
    folder = write_corpus(tmp_path_factory.mktemp("corpus") / "corpus")
    for path in [*folder.iterdir()]:
        text = path.read_text(encoding="utf-8")
        path.with_suffix(".deu_Latn").write_text(text, encoding="utf-8")
        if path.suffix == ".xb":
            path.with_suffix(".tyv_Cyrl").write_text(text.replace("a", "ж").replace("o", "щ"), encoding="utf-8")
        path.unlink()
    for code, lines in (("eng_Latn", mixed_lines(6)), ("deu_Latn", mixed_lines(6, seed=4))):
        (folder / f"old.{code}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def settings(nllb: Path, corpus: Path, run: Path) -> list[str]:
    texts = [f"corpus.{split}=[{corpus / split}]" for split in ("train", "valid", "test")]
    return [
        *(f"run.init_from={nllb}", "corpus=files", "corpus.source=tyv_Cyrl", "corpus.target=deu_Latn", *texts),
        *(f"run.dir={run}", f"run.prepared={run / 'prepared'}", "trainer.updates=4", "trainer.device=cpu"),
        *("trainer.precision=fp32", "report.page=false", "report.plots=false", "search=greedy"),
    ]


@pytest.mark.slow
def test_a_new_language_is_added_in_both_directions(nllb: Path, corpus: Path, tmp_path: Path, command: Command) -> None:
    """The tags, the subwords and the weights are there again after saving, exporting and reading."""
    old_test = f"{{text: {corpus / 'old'}, source: eng_Latn, target: deu_Latn}}"
    tests = f"corpus.test=[{corpus / 'test'},{old_test}]"
    kept = [each for each in settings(nllb, corpus, tmp_path / "run") if not each.startswith("corpus.test")]
    done = command("mt-train", *kept, tests)
    assert done.code == 0, done.err
    assert "tyv_Cyrl is new to the model: its tag begins as that of " in done.err
    assert "corpus.both_directions  True" in done.err
    assert "subwords of the source added, 2 of them characters" in done.err
    start, tuned = read_foreign(nllb).load().tokenizer, load_model(tmp_path / "run").tokenizer
    assert tuned.languages == [*start.languages, "tyv_Cyrl"]
    assert tuned.tags(Direction("eng_Latn", "kor_Hang")) == start.tags(Direction("eng_Latn", "kor_Hang"))
    (ids,) = tuned.encode_source(["жщ"])
    assert tuned.decode_source([ids]) == ["жщ"]
    scores = load_model(tmp_path / "run").scores["test"]
    changed = {tuple(test["direction"]): "changes" in test for test in scores.values()}
    # Of the old directions it is measured what fine-tuning changed; the new ones had no translation before.
    assert changed == {
        ("tyv_Cyrl", "deu_Latn"): False,
        ("deu_Latn", "tyv_Cyrl"): False,
        ("eng_Latn", "deu_Latn"): True,
        ("deu_Latn", "eng_Latn"): True,
    }
    export_huggingface(tmp_path / "run", tmp_path / "back", "float32", mixed_lines(5), lambda line: None)
    assert not (tmp_path / "back" / "sentencepiece.bpe.model").exists()
    back = read_foreign(tmp_path / "back").load()
    assert back.tokenizer.languages == tuned.languages
    assert back.tokenizer.vocabularies[0].subwords == tuned.vocabularies[0].subwords
    lines = [*mixed_lines(5), "жщ walnut ferry"]
    for direction in (("tyv_Cyrl", "deu_Latn"), ("deu_Latn", "tyv_Cyrl")):
        request = tolka.Request(direction=Direction(*direction))
        one, other = (tolka.load(tmp_path / name).translate(lines, request) for name in ("run", "back"))
        assert [each.text for each in one] == [each.text for each in other]


@pytest.mark.slow
def test_a_tag_without_new_subwords_goes_out_with_its_id(nllb: Path, corpus: Path, tmp_path: Path) -> None:
    """It follows rows that no subword uses, as NLLB-200 has them."""
    tolka.train([*settings(nllb, corpus, tmp_path / "run"), "tokenizer.extend=0"])
    export_huggingface(tmp_path / "run", tmp_path / "back", "float32", mixed_lines(5), lambda line: None)
    one, other = load_model(tmp_path / "run").tokenizer, read_foreign(tmp_path / "back").tokenizer
    assert one.tag_ids == other.tag_ids
    assert one.vocabularies[0].subwords == other.vocabularies[0].subwords


@pytest.mark.slow
def test_a_run_that_was_interrupted_goes_on(nllb: Path, corpus: Path, tmp_path: Path, command: Command) -> None:
    """The tag's row is the one that was trained, not again that of another language."""
    rate = ["scheduler=constant", "scheduler.warmup=0", "optimizer.lr=0.001"]
    whole, halved = ([*settings(nllb, corpus, tmp_path / name), *rate] for name in ("whole", "halved"))
    assert command("mt-train", *whole).code == 0
    assert command("mt-train", *halved, "trainer.updates=2").code == 0
    done = command("mt-train", *halved)
    assert done.code == 0, done.err
    assert "is new to the model" not in done.err
    one, other = (load_model(tmp_path / name / "last").model.state_dict() for name in ("whole", "halved"))
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())


def test_a_new_tag_is_spelt_by_that_of_the_language_it_is_like(nllb: Path) -> None:
    old = read_foreign(nllb).tokenizer
    new = add_tags(old, [*old.languages, "tyv_Cyrl", "kaz_Cyrl"], "both")
    like = {"tyv_Cyrl": "kor_Hang", "kaz_Cyrl": "deu_Latn"}
    source, target = spellings(old, new, like)
    assert source == target == [[old.tag_ids[0]["kor_Hang"]], [old.tag_ids[0]["deu_Latn"]]]
    assert spellings(old, new)[0] == [[], []]


def test_the_nearest_language_is_that_which_makes_the_text_likeliest(nllb: Path) -> None:
    start, direction = read_foreign(nllb).load(), Direction("deu_Latn", "ndl_Latn")
    pairs = [Pair(*pair) for pair in zip(mixed_lines(8), mixed_lines(8, seed=4), strict=True)]
    tokenizer, loss = start.tokenizer, dict.fromkeys(start.tokenizer.languages, 0.0)
    for code in loss:
        for pair in pairs:
            source, target = tokenizer.encode_source([pair.source]), tokenizer.encode_target([pair.target])
            batch = collate(source, target, tokenizer.tags(Direction("deu_Latn", code)))
            with torch.inference_mode():
                logits = start.model.logits(start.model(batch))  # of all but the tag
            loss[code] += cross_entropy(logits, batch.target_out[0, 1:], reduction="sum").item()
    # Codes of no language, whose script nobody knows: all are compared.
    unknown = Direction("deu_Latn", "qqq_Qqqq")
    assert _nearest(start, unknown.target, {unknown: pairs}) == min(loss, key=loss.__getitem__)
    latin = {code: loss[code] for code in loss if code.endswith("_Latn")}
    dutch = Direction("deu_Latn", "nld_Latn")
    assert _nearest(start, dutch.target, {direction: [], dutch: pairs}) == min(latin, key=latin.__getitem__)


@each_row(
    ("code", "known", "like", "said"),
    [
        ("tyv", KNOWN, "", "Its codes are like deu_Latn, eng_Latn, kor_Hang: write a new one so, too"),
        ("de", KNOWN, "", "Did you mean 'deu_Latn'?"),
        ("rsu_Cyrl", KNOWN, "", "no registry of languages has it. Known: deu_Latn"),
        ("tyv_Cyrl", KNOWN, "kir_Cyrl", "must be one of the model's, as deu_Latn"),
        ("tyv_Cyrl", [], "kir_Cyrl", "must be left out, as no language is new"),
    ],
)
def test_codes_that_are_no_new_language(code: str, known: list[str], like: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_new_languages([code], known, like)
    assert said in str(caught.value)


def test_another_script_of_a_known_language_is_new() -> None:
    check_new_languages(["deu_Cyrl", "tyv_Cyrl"], KNOWN, "")
    check_new_languages(["qqq_Qqqq"], KNOWN, "deu_Latn")
    check_new_languages([], KNOWN, "")
    check_new_languages(["tyv", "kaz_Cyrl"], ["en", "pt_BR"], "")


def test_a_model_of_many_languages_has_no_usual_one(nllb: Path, corpus: Path, tmp_path: Path) -> None:
    kept = [each for each in settings(nllb, corpus, tmp_path / "run") if not each.startswith("corpus.target")]
    with pytest.raises(ConfigError, match=r"translates between many languages: .* corpus\.target=CODE"):
        train_config(kept)


def test_characters_that_a_model_lacks_are_counted(nllb: Path, tmp_path: Path) -> None:
    """They are added even where they are rare, if the language is new; and else if they are not."""

    def facts_of(lines: list[str], target: str) -> TextFacts:
        for code in ("deu_Latn", "eng_Latn"):
            (tmp_path / f"train.{code}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        text = ParallelFiles(tmp_path / "train.deu_Latn", tmp_path / "train.eng_Latn", "train")
        text.direction = Direction("deu_Latn", target)
        return TextFacts.of(Corpus([[text]], [text], []), read_foreign(nllb).tokenizer)

    def extend(facts: TextFacts) -> object:
        assert facts.unspelt < 0.1
        chosen = {choice.key: choice.value for choice in choose_tuning(facts)}
        assert ("corpus.both_directions" in chosen) == bool(facts.new_languages)
        return chosen["tokenizer.extend"]

    lines = [pair[0] for pair in sentences(60, 3)]
    assert extend(facts_of([*lines, "ferry щ ж"], "eng_Latn")) == 0
    assert extend(facts_of([*lines, *["ferry щ"] * 5, "ferry ж"], "eng_Latn")) == 1  # ten times, on both sides
    assert extend(facts_of([*lines, "ferry щ ж"], "tur_Latn")) == 2


def test_subwords_of_a_word_are_counted_in_a_new_language(nllb: Path, tmp_path: Path) -> None:
    """Words of known letters that the model has cut up; of a known language nothing is counted."""

    def subwords(target: str) -> float:
        for code, lines in (("deu_Latn", ["ferry"] * 2), ("eng_Latn", ["yrref zqx xqz", "qqzzxx"])):
            (tmp_path / f"train.{code}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        text = ParallelFiles(tmp_path / "train.deu_Latn", tmp_path / "train.eng_Latn", "train")
        text.direction = Direction("deu_Latn", target)
        return TextFacts.of(Corpus([[text]], [text], []), read_foreign(nllb).tokenizer).subwords

    assert subwords("eng_Latn") == 0
    pieces = read_foreign(nllb).tokenizer.encode_target(["yrref zqx xqz", "qqzzxx"])
    assert subwords("tur_Latn") == sum(map(len, pieces)) / 4


def test_like_needs_a_model() -> None:
    notes: list[str] = []
    train_config(["corpus.like=en"], say=notes.append)
    assert "corpus.like has no effect without a model to start from" in "".join(notes)


def test_characters_of_the_known_side_are_added_too(nllb: Path) -> None:
    """But no subwords of them, as the new ones are learnt from the other side."""
    base = read_foreign(nllb).tokenizer
    pairs = [Pair("\u0436\u0449 \u0436\u0449", "\u4f60\u597d walnut \u4f60\u597d")] * 3
    extension = Extension(base, 10, "source", 0, 1.0)
    new = extend_tokenizer(extension, {"source": lambda: iter(pairs)}, lambda note: None)
    added = {*new.source_pieces(range(base.source_size, new.source_size))}
    assert {"\u0436", "\u0449", "\u4f60", "\u597d"} < added
    assert not any("\u4f60" in each for each in added - {"\u4f60"})
    assert UNK not in new.encode_target(["\u4f60\u597d walnut"])[0]


@each_row(
    ("directions", "sides"),
    [
        (["eng-zad", "eng-zad"], ["target", "target"]),
        (["eng-zad", "grc-eng"], ["target", "source"]),
        (["eng-deu", "eng-zad"], ["", "target"]),
        (["grc-zad", "eng-deu", "zad-eng"], ["both", "", "source"]),
        (["eng-deu", "eng-deu"], ["both", ""]),
    ],
)
def test_subwords_are_learnt_from_each_text_in_a_new_language(
    nllb: Path, directions: list[str], sides: list[str]
) -> None:
    script = {"eng": "eng_Latn", "deu": "deu_Latn", "zad": "zad_Latn", "grc": "grc_Grek"}
    named = [Direction(*(script[code] for code in each.split("-"))) for each in directions]
    tokenizer = read_foreign(nllb).tokenizer
    assert Extension(tokenizer, 10, tokenizer.languages, 0, 1.0).sides(named) == sides


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("targets", [("tyv_Cyrl", "tyv_Cyrl"), ("tyv_Cyrl", "zad_Latn"), ("eng_Latn", "eng_Latn")])
def test_no_character_is_lost_whatever_the_order_of_the_texts(
    nllb: Path, tmp_path: Path, swap: bool, targets: tuple[str, str]
) -> None:
    """Letters that the model knows in one text, others in the other, a sign in the sources; each often enough."""
    base, lines, texts = read_foreign(nllb).tokenizer, [pair[0] for pair in sentences(60, 3)], list[PairSource]()
    for number, (target, letters) in enumerate(zip(targets, ("", "\u0436\u0449 \ua78c\u0331"), strict=True)):
        for code, sign in (("deu_Latn", "\u2042" if letters else ""), (target, letters)):
            path = tmp_path / f"{number}.{code}"
            path.write_text("".join(f"{line} {sign}\n" for line in lines), encoding="utf-8")
        text = ParallelFiles(tmp_path / f"{number}.deu_Latn", tmp_path / f"{number}.{target}", f"{number}")
        text.direction = Direction("deu_Latn", target)
        texts.append(text)
    corpus = Corpus([[text] for text in (reversed(texts) if swap else texts)], texts, []).with_opposite()
    facts = TextFacts.of(replace(corpus, entries=corpus.entries[:2]), base)
    assert facts.unknown == 5
    assert (
        facts.new_languages
        == tuple(dict.fromkeys(each for each in targets if each != "eng_Latn"))[:: -1 if swap else 1]
    )
    chosen = {choice.key: choice.value for choice in choose_tuning(facts)}
    extension = Extension(base, chosen["tokenizer.extend"], base.languages, 0, 1.0)
    order = Order(corpus, CleaningConfig(), extension, BatchingConfig(), tagged=[*base.languages, *facts.new_languages])
    prepared = prepare(order, tmp_path / "cache")
    for side in ("\u0436\u0449 \ua78c\u0331", "\u2042"):
        assert UNK not in prepared.tokenizer.encode_target([f"ferry {side}"])[0]
    assert UNK not in prepared.store.source_ids
    added = prepared.tokenizer.source_pieces(range(base.source_size, prepared.tokenizer.source_size))
    assert {each for each in added if len(each) == 1} == {"\u0436", "\u0449", "\ua78c", "\u0331", "\u2042"}


def test_a_direction_is_filled_in_by_the_only_one_that_fits(nllb: Path) -> None:
    """A model that was fine-tuned on one language and back needs no source, though it has tags of many languages."""
    there = Direction("tyv_Cyrl", "rus_Cyrl")
    tokenizer = read_foreign(nllb).tokenizer
    facts = ModelFacts(tokenizer, TrainingSources(10), directions=(there, there.swapped))
    assert facts.direction(target="rus_Cyrl") == facts.direction(source="tyv_Cyrl") == there
    assert facts.direction("eng_Latn", "rus_Cyrl") == Direction("eng_Latn", "rus_Cyrl")
    assert facts.direction() == Direction("und", "und")
    assert facts.direction(target="eng_Latn") == Direction("und", "eng_Latn")
    alone = ModelFacts(tokenizer, TrainingSources(10), directions=(there,))
    assert (alone.direction(), alone.direction(source="x")) == (there, Direction("x", "rus_Cyrl"))
