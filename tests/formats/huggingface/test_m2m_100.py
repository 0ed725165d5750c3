"""M2M-100 and NLLB-200 in and out, compared with the real `transformers`: translations, logits, ids and tensors."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from m2m_folder import NLLB_TAGS, write_m2m_folder
from marian_folder import Sizes, mixed_lines, write_json
from safetensors.torch import load_file, save_file

import tolka
from conftest import Command, arguments_of, write_corpus
from tolka.engines.options import DecodingConfig
from tolka.errors import CheckpointError, ConfigError
from tolka.formats.huggingface.family import read_foreign
from tolka.interchange.export_ctranslate2 import export_checked
from tolka.interchange.huggingface import export_huggingface, import_huggingface
from tolka.model_directory.read import load_model
from tolka.models.transformer.config import TransformerConfig
from tolka.search.options import BeamConfig
from tolka.text.direction import Direction
from tolka.translation.translator import Translator

transformers = pytest.importorskip("transformers")
M2M, NLLB = Direction("en", "de"), Direction("eng_Latn", "kor_Hang")
KINDS: dict[str, dict[str, Any]] = {
    "m2m100": {"kind": "m2m100"},
    "m2m100, untied, gelu": {"kind": "m2m100", "tie_word_embeddings": False, "activation_function": "gelu"},
    "nllb": {"kind": "nllb"},
    "nllb, odd width, unscaled": {
        "kind": "nllb",
        "sizes": Sizes(d_model=33, heads=3, layers=1, decoder_layers=2, positions=60),
        "scale_embedding": False,
        "init_std": 0.5,
    },
    "nllb without tokenizer.json": {"kind": "nllb_old"},
    "nllb with nothing else": {"kind": "nllb_new"},
}
LINES = [*mixed_lines(12), "walnut eng_Latn velvet", "__de__ ferry", "deu_Latn"]


def said_nothing(line: str) -> None:
    pass


@pytest.fixture(scope="module", params=KINDS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_m2m_folder(tmp_path_factory.mktemp("m2m") / "model", **KINDS[request.param])


@pytest.fixture(scope="module")
def nllb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder as published, not to be changed."""
    return write_m2m_folder(tmp_path_factory.mktemp("nllb") / "model", "nllb")


@pytest.fixture
def spoilt(nllb: Path, tmp_path: Path) -> Path:
    return shutil.copytree(nllb, tmp_path / "spoilt")


def direction_of(folder: Path) -> Direction:
    return M2M if (folder / "vocab.json").exists() else NLLB


def change(path: Path, **values: Any) -> None:
    content = {**json.loads(path.read_text(encoding="utf-8")), **values}
    path.write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.slow
def test_a_folder_comes_in_and_goes_out_byte_for_byte(folder: Path, tmp_path: Path) -> None:
    """The gate compares greedy translations and logits on both ways."""
    said: list[str] = []
    import_huggingface(folder, tmp_path / "model", direction_of(folder), mixed_lines(15), said.append)
    export_huggingface(tmp_path / "model", tmp_path / "back", "float32", mixed_lines(15), said.append)
    assert sum("translate 15 identically (greedy)" in line for line in said) == 2
    one, other = (json.loads((path / "config.json").read_bytes()) for path in (folder, tmp_path / "back"))
    # Which act on no translation: more positions than the folder had are computed.
    differing = {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}
    assert differing <= {"transformers_version", "init_std", "max_position_embeddings"}
    assert all(float(line.partition("logits is ")[2].split()[0].rstrip(".")) < 2e-5 for line in said)
    before, after = (load_file(path / "model.safetensors") for path in (folder, tmp_path / "back"))
    if len(before) > len(after):  # untied: transformers writes a matrix that its model does not use
        del before["model.shared.weight"]
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        assert torch.equal(tensor.view(torch.uint8), after[name].view(torch.uint8)), name
    if (folder / "vocab.json").exists():
        one, other = (json.loads((path / "vocab.json").read_bytes()) for path in (folder, tmp_path / "back"))
        assert one == other
    if (folder / "sentencepiece.bpe.model").exists():
        one, other = ((path / "sentencepiece.bpe.model").read_bytes() for path in (folder, tmp_path / "back"))
        assert one == other


@pytest.mark.slow
def test_ids_and_texts_are_those_of_the_tokenizer(folder: Path, tmp_path: Path) -> None:
    """But for tags in a text, which stay text."""
    saved, direction = read_foreign(folder).load(), direction_of(folder)
    vocabulary = saved.tokenizer.vocabularies[0]
    import_huggingface(folder, tmp_path / "model", direction, mixed_lines(5), said_nothing)
    export_huggingface(tmp_path / "model", tmp_path / "back", "float32", mixed_lines(5), said_nothing)
    theirs = transformers.AutoTokenizer.from_pretrained(
        str(tmp_path / "back"), src_lang=direction.source, tgt_lang=direction.target
    )
    tags, order = saved.tokenizer.tags(direction), vocabulary.ids_in_original_order()
    for line in mixed_lines(30, seed=5):
        (ids,), batch = saved.tokenizer.encode_source([line]), theirs(line, text_target=line)
        assert [order[number] for number in batch["input_ids"]] == [*tags.source, *ids, 2]
        assert [order[number] for number in batch["labels"]] == [*tags.target, *ids, 2]
        decoded = theirs.decode([number for number in batch["input_ids"] if number > 3][1:], skip_special_tokens=True)
        assert saved.tokenizer.decode_target([ids]) == [decoded.strip()]
    hostile = [f"{tag} walnut {tag}" for tag in vocabulary.tags.values()]
    tag_ids = {*vocabulary.tag_ids.values()}
    assert not any(tag_ids & {*row} for row in saved.tokenizer.encode_source(hostile))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["m2m100", "nllb"])
def test_beam_search_finds_what_transformers_finds(kind: str, tmp_path: Path) -> None:
    folder = write_m2m_folder(tmp_path / "model", kind, seed=3, init_std=0.15)
    saved, direction = read_foreign(folder).load(), direction_of(folder)
    search = BeamConfig(beam_size=4, length_normalization="none", max_length_factor=0.0, max_length_extra=20)
    decoding = DecodingConfig(device="cpu", split="never", source=direction.source, target=direction.target)
    translator = Translator.of(saved, search, decoding)
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), src_lang=direction.source)
    model = transformers.M2M100ForConditionalGeneration.from_pretrained(str(folder)).eval()
    tag = tokenizer.convert_tokens_to_ids(saved.tokenizer.vocabularies[0].tags[direction.target])
    vocabulary = saved.tokenizer.vocabularies[0]
    order = vocabulary.ids_in_original_order()
    # Which no search of ours writes, as they stand for no text.
    never = [number for number, ours in enumerate(order) if vocabulary.subwords[ours] in vocabulary.never_text]
    same = 0
    for line in mixed_lines(20):
        with torch.inference_mode():
            (row,) = model.generate(
                **tokenizer([line], return_tensors="pt"),
                num_beams=4,
                length_penalty=0.0,
                early_stopping="never",
                max_new_tokens=22,  # the tag counts there
                forced_bos_token_id=tag,
                bad_words_ids=[[number] for number in (0, 1, *never)],
            ).tolist()
        ids = [order[number] for number in row[2:]]
        expected = [number for number in ids if number > 3]
        (found,) = translator.translate([line])
        (_, ours), *_ = found.candidates[0].segments
        same += [number for number in ours if number > 3] == expected
    assert same == 20


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["m2m100", "nllb"])
def test_ctranslate2_translates_alike_in_every_direction(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    folder = write_m2m_folder(tmp_path / "model", kind, seed=4, init_std=0.15)
    direction = direction_of(folder)
    import_huggingface(folder, tmp_path / "in", direction, mixed_lines(5), said_nothing)
    parity = export_checked(tmp_path / "in", tmp_path / "out", lines=mixed_lines(20))
    assert parity.identical == 20
    assert parity.logits is not None
    assert parity.logits < 1e-4
    one, other = (tolka.load(tmp_path / name, decoding={"backend": "torch"}) for name in ("in", "out"))
    for asked in (direction, direction.swapped):
        # Greedily: CTranslate2 normalises the probabilities of what is left where something is forbidden, as tags are,
        # and without training these are likely enough for another beam.
        request = tolka.Request(direction=asked, search="greedy")
        both = list(zip(*(each.translate(LINES, request) for each in (one, other)), strict=True))
        # A translation that ends right after what is forced is CTranslate2's only where that is the most likely.
        both = [each for each in both if each[0].text]
        assert len(both) > 5
        assert all(ours.text == theirs.text for ours, theirs in both)
    one, other = (
        tolka.load(tmp_path / name, decoding={**direction._asdict(), "backend": "torch"}) for name in ("in", "out")
    )
    pairs = list(zip(mixed_lines(9), mixed_lines(9, seed=4), strict=True))
    for ours, theirs in zip(one.score(pairs), other.score(pairs), strict=True):
        assert ours.token_scores == pytest.approx(theirs.token_scores, abs=1e-4)
    translations = [each.translation for each in one.score(pairs)]
    for ours, theirs in zip(*(each.attention(translations) for each in (one, other)), strict=True):
        assert (ours[0].name, ours[0].rows, ours[0].columns) == (theirs[0].name, theirs[0].rows, theirs[0].columns)
        assert all(a == pytest.approx(b, abs=1e-4) for a, b in zip(ours[0].weights, theirs[0].weights, strict=True))
    prefixed = tolka.Request(prefixes=["tolo"] * len(LINES), direction=direction)
    texts = [[found.text for found in each.translate(LINES, prefixed)] for each in (one, other)]
    assert all(text.startswith("tolo") for text in texts[0])
    assert sum(ours == theirs for ours, theirs in zip(*texts, strict=True)) > 5


def test_translations_have_scores_without_their_tag(nllb: Path) -> None:
    """Their score is that of their tokens, given the tag; and a tag counts for no limit."""
    translator = tolka.load(nllb, source=NLLB.source, target="deu_Latn", search={"name": "greedy"})
    found = translator.translate(mixed_lines(8))
    scored = translator.score([(line, each.text) for line, each in zip(mixed_lines(8), found, strict=True)])
    model = transformers.M2M100ForConditionalGeneration.from_pretrained(str(nllb)).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(nllb), src_lang=NLLB.source, tgt_lang="deu_Latn")
    for line, each, given in zip(mixed_lines(8), found, scored, strict=True):
        batch = tokenizer([line], text_target=[each.text], return_tensors="pt")
        with torch.no_grad():
            expected = model(**batch).logits[0].log_softmax(dim=-1).gather(1, batch["labels"].T)[1:, 0]
        assert given.token_scores == pytest.approx(expected.tolist(), abs=1e-4)
    found = translator.translate(mixed_lines(8), tolka.Request(search={"max_length_factor": 0, "max_length_extra": 3}))
    assert max(len(each.candidates[0].segments[0][1]) for each in found) == 4  # at least one, and three more


def test_the_commands_take_a_folder_and_a_direction(nllb: Path, tmp_path: Path, command: Command) -> None:
    text = tmp_path / "in.txt"
    text.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    done = command("mt-translate", nllb, text, "source=eng_Latn", "target=kor_Hang")
    assert done.code == 0, done.err
    assert len(done.out.splitlines()) == len(LINES)
    assert not any(tag in done.out for tag in NLLB_TAGS)
    other = command("mt-translate", nllb, text, "source=eng_Latn", "target=deu_Latn")
    assert other.out != done.out
    unnamed = command("mt-translate", nllb, text)
    assert unnamed.code == 2
    assert "the model is of 5 languages, and nothing says the source's: name it, as in source=" in unnamed.err
    korean = tmp_path / "in.ko"
    korean.write_text("나는 당신을 사랑합니다 .\n", encoding="utf-8")
    guessed = command("mt-translate", nllb, korean, "target=eng_Latn")
    assert "note: the source is taken for kor_Hang, by its text" in guessed.err
    assert guessed.out == command("mt-translate", nllb, korean, "source=kor_Hang", "target=eng_Latn").out
    near = command("mt-translate", nllb, text, "source=en", "target=kor_Hang")
    assert "does not know the source language 'en'. Did you mean 'eng_Latn'?" in near.err
    text.with_suffix(".ref").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    scored = command(
        *("mt-eval", nllb, f"source={text}", f"reference={text.with_suffix('.ref')}"),
        *("decoding.source=eng_Latn", "target=kor_Hang"),
    )
    assert scored.code == 0, scored.err
    assert "PPL" in scored.out


@pytest.mark.slow
def test_fine_tuning_begins_with_a_folder(nllb: Path, tmp_path: Path, command: Command) -> None:
    """The tags are learnt from, and the result goes out again."""
    for path in [*write_corpus(tmp_path / "corpus").iterdir()]:
        path.rename(path.with_suffix(".eng_Latn" if path.suffix == ".xa" else ".kor_Hang"))
    left_out = ("model", "tokenizer", "trainer.updates", "corpus.source", "corpus.target")
    kept = [
        *(text for text in arguments_of(tmp_path / "corpus", tmp_path / "run") if not text.startswith(left_out)),
        "corpus.target=kor_Hang",
    ]
    settings = [f"run.init_from={nllb}", "tokenizer.extend=0", "trainer.updates=5", "batching.sampling=0.3"]
    settings.append("corpus.source=eng_Latn")
    done = command("mt-train", *kept, *settings)
    assert done.code == 0, done.err
    start, tuned = read_foreign(nllb).load(), load_model(tmp_path / "run" / "last")
    assert start.tokenizer.digests == tuned.tokenizer.digests
    translator = tolka.load(tmp_path / "run")
    assert translator.direction == NLLB
    # The tags are read, and learnt from.
    row = tuned.tokenizer.tags(NLLB).source[0]
    assert not torch.equal(*(each.model.state_dict()["target_embedding.weight"][row] for each in (start, tuned)))
    export_huggingface(tmp_path / "run" / "last", tmp_path / "back", "float32", mixed_lines(5), said_nothing)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["m2m100", "nllb"])
def test_subwords_of_new_text_leave_the_tags_as_they_are(kind: str, tmp_path: Path, command: Command) -> None:
    """CTranslate2 and NLLB-200's tokenizer.json take the result; M2M100Tokenizer has no place for them."""
    folder, corpus = write_m2m_folder(tmp_path / "model", kind), write_corpus(tmp_path / "corpus")
    direction = direction_of(folder)
    for path in [*corpus.iterdir()]:
        text = path.read_text(encoding="utf-8").replace("a", "ж").replace("o", "щ")
        path.unlink()
        path.with_suffix(f".{direction[path.suffix == '.xb']}").write_text(text, encoding="utf-8")
    arguments = [text for text in arguments_of(corpus, tmp_path / "run") if not text.startswith(("model", "tokenizer"))]
    languages = [f"corpus.source={direction.source}", f"corpus.target={direction.target}"]
    kept = [text for text in arguments if not text.startswith(("corpus.source", "corpus.target"))]
    done = command("mt-train", *kept, *languages, f"run.init_from={folder}", "tokenizer.extend=20")
    assert done.code == 0, done.err
    old, new = read_foreign(folder).tokenizer, load_model(tmp_path / "run").tokenizer
    assert old.source_size < new.source_size <= old.source_size + 20
    assert old.tags(direction) == new.tags(direction)
    assert new.languages == old.languages
    if kind == "m2m100":
        with pytest.raises(ConfigError, match=r"as tokenizer.extend adds them: export it for CTranslate2"):
            export_huggingface(tmp_path / "run", tmp_path / "back", "float32", mixed_lines(3), said_nothing)
    else:
        export_huggingface(tmp_path / "run", tmp_path / "back", "float32", mixed_lines(3), said_nothing)
        assert read_foreign(tmp_path / "back").tokenizer.vocabularies[0].subwords == new.vocabularies[0].subwords
    pytest.importorskip("ctranslate2")
    assert export_checked(tmp_path / "run", tmp_path / "out", lines=mixed_lines(5)).identical == 5


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("config.json", {"model_type": "t5"}, "only Hugging Face's m2m_100 (M2M100ForConditionalGeneration), marian"),
        ("config.json", {"vocab_size": 121}, "vocab_size (121) is too small for"),
        ("config.json", {"vocab_size": 10**9}, "vocab_size (1000000000) must be at most 2000000"),
        ("config.json", {"vocab_size": 200}, "by config.json and the vocabulary it must be (200, 32)"),
        ("config.json", {"decoder_start_token_id": 1}, "decoder_start_token_id (1) must be 2"),
        ("config.json", {"d_model": 0}, "model.d_model (0) must be at least 1"),
        ("config.json", {"tie_word_embeddings": "yes"}, "tie_word_embeddings ('yes') must be true or false"),
        ("config.json", {"activation_function": "tanh"}, "activation_function ('tanh') must be one of"),
        ("tokenizer_config.json", {"tokenizer_class": "SMALL100Tokenizer"}, "is a SMaLL-100"),
        ("tokenizer.json", {"added_tokens": []}, "has no ids of the tags (added_tokens)"),
        ("tokenizer.json", {"added_tokens": [{"id": "x", "content": "deu_Latn"}]}, "has no id or no text"),
        ("tokenizer_config.json", {"added_tokens_decoder": {"9" * 5000: {"content": "deu_Latn"}}}, "has no id or"),
        ("tokenizer_config.json", {"extra_special_tokens": 7, "added_tokens_decoder": {"x": 1}}, "has no id or"),
        ("tokenizer.json", {"added_tokens": [{"id": 7, "content": "deu_Latn"}]}, "'deu_Latn' has the id 7"),
    ],
)
def test_what_does_not_fit_is_one_line(spoilt: Path, name: str, values: dict[str, Any], said: str) -> None:
    change(spoilt / name, **values)
    with pytest.raises(CheckpointError) as caught:
        read_foreign(spoilt).load()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def _reverse_tags(folder: Path) -> None:
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        content = json.loads((folder / name).read_bytes())
        for key in {*content} & {"additional_special_tokens", "extra_special_tokens"}:
            content[key] = content[key][::-1]
        write_json(folder / name, content)


def test_a_list_of_tags_in_another_order_is_refused(tmp_path: Path) -> None:
    """By which other languages would be written."""
    folder = write_m2m_folder(tmp_path / "model", "nllb_old")
    _reverse_tags(folder)
    with pytest.raises(CheckpointError, match="lists tags in another order than NLLB-200's"):
        read_foreign(folder)


def test_the_order_of_the_tags_of_m2m_100_is_known(tmp_path: Path) -> None:
    """To transformers as well, whatever is listed."""
    folder = write_m2m_folder(tmp_path / "model", "m2m100")
    whole = read_foreign(folder).tokenizer
    _reverse_tags(folder)
    assert read_foreign(folder).tokenizer.tag_ids == whole.tag_ids
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        write_json(folder / name, {"tokenizer_class": "M2M100Tokenizer"})
    assert read_foreign(folder).tokenizer.tag_ids == whole.tag_ids
    published = transformers.M2M100Tokenizer.from_pretrained(str(folder))
    assert whole.languages == [*published.lang_code_to_id]


def test_an_output_of_its_own_beside_one_matrix_for_both_sides(tmp_path: Path) -> None:
    """As older versions of transformers save an untied model; and one that lacks its output is refused."""
    folder = write_m2m_folder(tmp_path / "model", "nllb")
    change(folder / "config.json", tie_word_embeddings=False)
    with pytest.raises(CheckpointError, match=r"lm_head\.weight is missing"):
        read_foreign(folder).load()
    tensors = load_file(folder / "model.safetensors")
    shared = tensors["model.shared.weight"]
    save_file({**tensors, "lm_head.weight": shared * 2}, folder / "model.safetensors")
    weights = read_foreign(folder).load().model.state_dict()
    torch.save({name: torch.nn.Parameter(each) for name, each in tensors.items()}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    change(folder / "config.json", tie_word_embeddings=True)
    pickled = read_foreign(folder).load().model.state_dict()
    for name in ("source_embedding.weight", "target_embedding.weight"):
        torch.testing.assert_close(weights[name], pickled["source_embedding.weight"])
    torch.testing.assert_close(weights["output_embedding.weight"], pickled["source_embedding.weight"] * 2)


def test_files_that_are_missing_are_named(spoilt: Path) -> None:
    write_json(spoilt / "special_tokens_map.json", {})
    write_json(spoilt / "tokenizer_config.json", {})
    (spoilt / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match=r"names no tags of languages"):
        read_foreign(spoilt)
    (spoilt / "sentencepiece.bpe.model").unlink()
    with pytest.raises(CheckpointError, match=r"lacks its file tokenizer\.json"):
        read_foreign(spoilt)


def test_a_tokenizer_that_merges_otherwise_is_refused(tmp_path: Path) -> None:
    folder = write_m2m_folder(tmp_path / "model", "nllb_new")
    content = json.loads((folder / "tokenizer.json").read_bytes())
    content["model"]["merges"] = content["model"]["merges"][::-1]
    write_json(folder / "tokenizer.json", content)
    with pytest.raises(CheckpointError, match=r"merges other subwords than SentencePiece would: copy sentencepiece"):
        read_foreign(folder)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"model": []}, r"is no BPE: copy sentencepiece"),
        ({"model": {"type": "BPE", "vocab": {"a": "1"}, "merges": []}}, r"its subwords must be numbered"),
        ({"model": {"type": "BPE", "vocab": {"\ud800": 1}, "merges": []}}, r"is not UTF-8"),
        ({"normalizer": ["x"]}, r"its normalizer cannot be read"),
        ({"normalizer": {"type": "Precompiled"}}, r"its normalizer cannot be read"),
        (
            {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "%"}},
            r"is not a SentencePiece|cannot be read",
        ),
    ],
)
def test_a_damaged_tokenizer_json_is_one_line(tmp_path: Path, values: dict[str, Any], said: str) -> None:
    folder = write_m2m_folder(tmp_path / "model", "nllb_new")
    change(folder / "tokenizer.json", **values)
    with pytest.raises(CheckpointError, match=said):
        read_foreign(folder)


def test_positions_of_old_folders_are_left_out(spoilt: Path) -> None:
    from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding as Positions

    tensors = load_file(spoilt / "model.safetensors")
    table = Positions(60, 32, 1).weights
    for side in ("encoder", "decoder"):
        tensors[f"model.{side}.embed_positions.weights"] = table.clone()
    save_file(tensors, spoilt / "model.safetensors")
    read_foreign(spoilt).load()


def test_what_the_family_does_not_have_is_named(nllb: Path, tmp_path: Path) -> None:
    import_huggingface(nllb, tmp_path / "model", NLLB, mixed_lines(3), said_nothing)
    saved, family = load_model(tmp_path / "model"), read_foreign(nllb).family
    with pytest.raises(ConfigError, match=r"NLLB-200 has no model.norm=post \(it has pre\)"):
        family.files(saved, TransformerConfig(norm="post", positions="sinusoidal_fairseq").resolved(True))
