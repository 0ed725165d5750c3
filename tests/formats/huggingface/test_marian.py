"""Marian in and out, compared with the real `transformers`: translations, logits and tensors."""

import itertools
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from marian_folder import TAGS, Sizes, load_marian, mixed_lines, write_folder
from safetensors.torch import load_file, save_file

import tolka
from conftest import Command, arguments_of, write_corpus
from tolka.api.train import prepare
from tolka.engines.options import DecodingConfig
from tolka.errors import CheckpointError, ConfigError
from tolka.formats.huggingface.family import read_foreign
from tolka.formats.huggingface.marian import Marian
from tolka.interchange import huggingface as exporting
from tolka.interchange.huggingface import export_huggingface, import_huggingface
from tolka.interchange.parity import LIMIT, Threshold, TolkaSide, compare
from tolka.interchange.transformers_side import TransformersSide, checked_copy
from tolka.model_directory.read import SavedModel, load_model
from tolka.model_directory.settings import character_form
from tolka.models.options import MODELS
from tolka.options.parsing import build
from tolka.search.greedy import GreedyConfig
from tolka.text.direction import Direction
from tolka.tokenizer.extension import add_tags
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.translation.translator import Translator

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")  # which Marian no longer uses
KINDS: dict[str, dict[str, Any]] = {
    "as on the Hub": {},
    "two vocabularies": {"separate": True, "sizes": Sizes(layers=1, decoder_layers=2)},
    "tags, three matrices, relu": {
        "tags": True,
        "share_encoder_decoder_embeddings": False,
        "tie_word_embeddings": False,
        "activation_function": "relu",
    },
    "two matrices, unscaled, gelu": {
        "share_encoder_decoder_embeddings": False,
        "scale_embedding": False,
        "activation_function": "gelu",
        "init_std": 0.5,
    },
}
LINES = 15  # one batch of transformers, which takes a millisecond for each layer of each token


@pytest.fixture(scope="module", params=KINDS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("marian") / "opus-mt-xa-xb", **KINDS[request.param])


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder as on the Hub, not to be changed."""
    return write_folder(tmp_path_factory.mktemp("marian") / "opus-mt-xa-xb")


def theirs(folder: Path, saved: SavedModel) -> TransformersSide:
    return TransformersSide(folder, Marian(), saved.tokenizer.vocabularies[-1], min(LIMIT, saved.sources.longest))


def lines_for(folder: Path, count: int = LINES) -> list[str]:
    """Lines, with language tags where the vocabulary has them."""
    lines = mixed_lines(count)
    tagged = TAGS[0] in json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    return [f"{TAGS[n % 2]} {line}" for n, line in enumerate(lines)] if tagged else lines


def alike(saved: SavedModel, folder: Path, lines: list[str]) -> None:
    """Assert that both sides translate alike, with a model that does not say the same of everything."""
    ours = TolkaSide(saved, min(LIMIT, saved.sources.longest))
    found = compare(ours, theirs(folder, saved), lines, ours.beginning)
    assert found.first is None
    assert found.logits is not None
    assert found.logits < 3e-5
    assert len({*ours.translate(lines)}) > LINES / 2


def test_ids_are_those_of_the_tokenizer(folder: Path) -> None:
    """Subword by subword, also those that the vocabulary lacks, and language tags."""
    saved, tokenizer = load_marian(folder), transformers.MarianTokenizer.from_pretrained(str(folder))
    unknown = 0
    for line in lines_for(folder):
        for ours, name, pieces in (
            (saved.tokenizer.encode_source, "text", saved.tokenizer.source_pieces),
            (saved.tokenizer.encode_target, "text_target", saved.tokenizer.target_pieces),
        ):
            if name == "text_target" and line.startswith(">>"):
                continue
            found = tokenizer(**{name: [line]})["input_ids"][0][:-1]
            vocab = tokenizer.encoder if name == "text" or not tokenizer.separate_vocabs else tokenizer.target_encoder
            names = {number: subword for subword, number in vocab.items()}
            (ids,) = ours([line])
            assert pieces(ids) == [names[number] for number in found]
            unknown += ids.count(3)
    assert unknown > 0


@pytest.mark.slow
def test_a_folder_comes_in_and_goes_out_byte_for_byte(folder: Path, tmp_path: Path) -> None:
    """It translates as in transformers, and comes back as it was."""
    said: list[str] = []
    alike(load_marian(folder), folder, lines_for(folder))
    import_huggingface(folder, tmp_path / "model", None, lines_for(folder), said.append)
    export_huggingface(tmp_path / "model", tmp_path / "back", "float32", lines_for(folder), said.append)
    before, after = (load_file(path / "model.safetensors") for path in (folder, tmp_path / "back"))
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        assert tensor.dtype == after[name].dtype
        assert torch.equal(tensor.view(torch.uint8), after[name].view(torch.uint8)), name
    for name in ("vocab.json", "target_vocab.json"):
        if (folder / name).exists():
            assert json.loads((folder / name).read_bytes()) == json.loads((tmp_path / "back" / name).read_bytes())
    for name in ("source.spm", "target.spm"):
        assert (folder / name).read_bytes() == (tmp_path / "back" / name).read_bytes()
    one, other = (json.loads((path / "config.json").read_bytes()) for path in (folder, tmp_path / "back"))
    # Which act on no translation: more positions than the folder had are computed.
    named = {"transformers_version", "init_std", "max_position_embeddings", "is_decoder", "static_position_embeddings"}
    assert {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)} <= named
    assert sum("translate 15 identically (greedy)" in line for line in said) == 2
    assert "note: generation_config.json asks for num_beams=6" in "\n".join(said)
    for place in (tmp_path / "model", tmp_path / "back"):
        assert "## Parity\n\nOf 15 lines, transformers" in (place / "README.md").read_text(encoding="utf-8")


def test_the_folder_of_an_order_of_its_own(usual: Path, tmp_path: Path) -> None:
    """Special tokens anywhere in the vocabulary: they go back to their places."""
    shutil.copytree(usual, tmp_path / "in")
    vocabulary = json.loads((usual / "vocab.json").read_bytes())
    size = len(vocabulary)
    moved = {subword: (number + 5) % size for subword, number in vocabulary.items()}
    (tmp_path / "in" / "vocab.json").write_text(json.dumps(moved), encoding="utf-8")
    config = json.loads((usual / "config.json").read_bytes())
    config |= {"eos_token_id": 5, "forced_eos_token_id": 5, "pad_token_id": 4, "decoder_start_token_id": 4}
    (tmp_path / "in" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    import_huggingface(tmp_path / "in", tmp_path / "model", None, mixed_lines(5), lambda line: None)
    export_huggingface(tmp_path / "model", tmp_path / "back", "float32", mixed_lines(5), lambda line: None)
    before, after = (load_file(path / "model.safetensors") for path in (tmp_path / "in", tmp_path / "back"))
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert json.loads((tmp_path / "back" / "vocab.json").read_bytes()) == moved


def test_weights_in_several_files_and_pickled_ones(usual: Path, tmp_path: Path) -> None:
    """pytorch_model.bin as older folders of the Hub have it: every name of a shared matrix, and the position tables."""
    expected = load_marian(usual).model.state_dict()
    model = transformers.MarianMTModel.from_pretrained(str(usual))
    kinds = ("sharded", "pickled", "pickled before torch 1.6", "pickled in parts")
    for name in kinds:
        shutil.copytree(usual, tmp_path / name)
        (tmp_path / name / "model.safetensors").unlink()
    model.save_pretrained(tmp_path / "sharded", max_shard_size="20KB")
    assert (tmp_path / "sharded" / "model.safetensors.index.json").exists()
    state = model.state_dict()
    assert "model.encoder.embed_positions.weight" in state
    assert "lm_head.weight" in state
    torch.save(state, tmp_path / "pickled" / "pytorch_model.bin")
    old = tmp_path / "pickled before torch 1.6" / "pytorch_model.bin"
    torch.save(state, old, _use_new_zipfile_serialization=False)
    parts = {"pytorch_model-00001-of-00002.bin": [*state][::2], "pytorch_model-00002-of-00002.bin": [*state][1::2]}
    for file, keys in parts.items():
        torch.save({key: state[key] for key in keys}, tmp_path / "pickled in parts" / file)
    named = {key: file for file, keys in parts.items() for key in keys}
    index = tmp_path / "pickled in parts" / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": named}), encoding="utf-8")
    import_huggingface(tmp_path / "pickled in parts", tmp_path / "model", None, mixed_lines(3), lambda line: None)
    for name in kinds:
        found = load_marian(tmp_path / name).model.state_dict()
        assert all(torch.equal(found[key], tensor) for key, tensor in expected.items()), name


def test_half_precision_comes_in_and_goes_out(usual: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Of a model that nothing has trained, rounding decides on whole lines.
    monkeypatch.setitem(exporting._THRESHOLDS, "bfloat16", Threshold(identical=0.0, bleu=0.0, logits=1.0))
    shutil.copytree(usual, tmp_path / "half")
    tensors = {name: tensor.half() for name, tensor in load_file(usual / "model.safetensors").items()}
    save_file(tensors, tmp_path / "half" / "model.safetensors", {"format": "pt"})
    export_huggingface(tmp_path / "half", tmp_path / "back", "float16", mixed_lines(5), lambda line: None)
    after = load_file(tmp_path / "back" / "model.safetensors")
    assert all(torch.equal(after[name], tensor) for name, tensor in tensors.items())
    export_huggingface(tmp_path / "half", tmp_path / "bf16", "bfloat16", mixed_lines(5), lambda line: None)
    assert {tensor.dtype for tensor in load_file(tmp_path / "bf16" / "model.safetensors").values()} == {torch.bfloat16}


@pytest.fixture(scope="module", params=[["tokenizer.byte_fallback=true"], ["tokenizer.shared=false"]])
def own(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of model=transformer_marian."""
    from guarded_command import guarded

    from tolka.cli import train

    folder = tmp_path_factory.mktemp("own")
    arguments = arguments_of(write_corpus(folder / "corpus"), folder / "run")
    changed = [
        "model=transformer_marian",
        "cleaning.control=strip",
        "cleaning.blanks=space",
        *request.param,
        "trainer.updates=80",
        "trainer.validate_every=80",
        "optimizer.lr=0.01",
        "model.d_model=32",
        "model.heads=2",
        "model.layers=1",
        "model.decoder_layers=1",
    ]
    assert guarded(train.run, [*arguments[1:], *changed]) == 0
    return folder / "run"


@pytest.mark.slow
def test_a_model_trained_here_translates_alike_in_transformers_and_comes_back(own: Path, tmp_path: Path) -> None:
    """Ids are the same, too, but for the order of special tokens; unknown characters are spelt as bytes."""
    lines = mixed_lines(LINES)
    export_huggingface(own, tmp_path / "out", "float32", lines[:5], lambda line: None)
    saved = load_model(own)
    alike(saved, tmp_path / "out", lines)
    tokenizer = transformers.MarianTokenizer.from_pretrained(str(tmp_path / "out"))
    form = character_form(saved.config)
    assert form.source("a\xa0\u200bb") == "a b"
    for line in (*lines, "a\u3000\ufeffb\xadc\u200e \x84d\x93\re", lines[0].replace(" ", "\xa0")):
        expected = [number - 2 for number in saved.tokenizer.encode_source([form.source(line)])[0]]
        assert tokenizer([line])["input_ids"][0] == [*expected, 0]
    auto = transformers.AutoModelForSeq2SeqLM.from_pretrained(str(tmp_path / "out"))
    assert type(auto).__name__ == "MarianMTModel"
    assert isinstance(transformers.AutoTokenizer.from_pretrained(str(tmp_path / "out")), transformers.MarianTokenizer)
    one, other = TolkaSide(saved, 30), TolkaSide(load_marian(tmp_path / "out"), 30)
    # Marian's tokenizer strips translations, ours does not.
    assert [text.strip() for text in one.translate(lines)] == other.translate(lines)


def _with_tags(own: Path, form: str) -> SavedModel:
    """The run's model with tags of two languages in its tokenizer, and weights that make the tags count."""
    saved = load_model(own)
    tokenizer = add_tags(saved.tokenizer, ["xa", "xb"], form)
    model = build(MODELS.get(saved.config["model"]["name"]), saved.config["model"], "model").build(
        tokenizer.source_size, tokenizer.target_size, tokenizer.shared
    )
    torch.manual_seed(1)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    config = {**saved.config, "corpus": {**saved.config["corpus"], "source": "xb", "target": "xa"}}
    return replace(saved, model=model.eval(), tokenizer=tokenizer, config=config)


@pytest.mark.slow
def test_a_model_of_several_directions_has_its_tag_typed_before_the_source(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved, lines = _with_tags(own, "source"), mixed_lines(LINES)
    monkeypatch.setattr(exporting, "load_any", lambda path: saved)
    export_huggingface(own, tmp_path / "out", "float32", lines, lambda line: None)
    assert 'tokenizer([">>xa<< A sentence."]' in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    tokenizer = transformers.MarianTokenizer.from_pretrained(str(tmp_path / "out"))
    # Own ids are two more than Marian's.
    (tag,), (row,) = saved.tokenizer.tags(Direction("xb", "xa")).source, saved.tokenizer.encode_source(lines[:1])
    assert tokenizer([f">>xa<< {lines[0]}"])["input_ids"][0] == [*(number - 2 for number in (tag, *row)), 0]
    pairs = [*itertools.pairwise(lines)]
    for code in ("xa", "xb"):
        ours = TolkaSide(replace(saved, config={**saved.config, "corpus": {"source": "xb", "target": code}}))
        side = TransformersSide(tmp_path / "out", Marian(), saved.tokenizer.vocabularies[-1], before=f">>{code}<< ")
        one, other = (np.concatenate(each.logits(pairs) or []) for each in (ours, side))
        assert np.abs(one - other).max() < 1e-4
    # Without the right tag, they do not translate alike.
    monkeypatch.setattr(Tokenizer, "tag_before", lambda *_: "")
    with pytest.raises(CheckpointError, match="does not translate like tolka"):
        export_huggingface(own, tmp_path / "wrong", "float32", lines, lambda line: None)


def test_tags_in_another_place_are_refused(own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "load_any", lambda path: _with_tags(own, "both"))
    with pytest.raises(ConfigError, match=r"train with tokenizer\.tags=source"):
        export_huggingface(own, tmp_path / "out", "float32", [], lambda line: None)


def test_what_does_not_translate_alike_is_not_written(
    usual: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Marian.tensors

    def spoilt(*arguments: Any) -> dict[str, Any]:
        tensors = real(*arguments)
        tensors["final_logits_bias"] = tensors["final_logits_bias"].flip(1)
        return tensors

    monkeypatch.setattr(Marian, "tensors", spoilt)
    with pytest.raises(CheckpointError) as caught:
        export_huggingface(usual, tmp_path / "out", "float32", mixed_lines(5), lambda line: None)
    assert "does not translate like tolka: " in str(caught.value)
    assert "logits differ by" in str(caught.value)
    assert "First line that differs: " in str(caught.value)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.slow
def test_the_commands_take_a_folder(usual: Path, tmp_path: Path, command: Command) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in usual.iterdir()}
    lines = mixed_lines(6)
    (tmp_path / "in.xa").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    limits = {"max_length_factor": 0.0, "max_length_extra": 38}  # as many tokens as the folder has positions
    greedy = ["search=greedy", *(f"search.{key}={value}" for key, value in limits.items())]
    done = command("mt-translate", usual, tmp_path / "in.xa", *greedy)
    assert done.code == 0
    assert done.out.splitlines() == [*theirs(usual, load_marian(usual)).translate(lines)]
    assert tolka.load(usual, search={"name": "greedy", **limits})(lines) == done.out.splitlines()
    resumable = [usual, tmp_path / "in.xa", *greedy, "-o", tmp_path / "out.xb", "resume=true"]
    assert command("mt-translate", *resumable).code == 0
    assert command("mt-translate", *resumable).code == 0
    assert (tmp_path / "out.xb").read_text(encoding="utf-8") == done.out
    scored = command("mt-eval", usual, f"source={tmp_path / 'in.xa'}", f"reference={tmp_path / 'out.xb'}")
    assert scored.code == 0
    assert "PPL" in scored.out
    assert {path.name: path.stat().st_mtime_ns for path in usual.iterdir()} == before
    sample = ["--sample", tmp_path / "in.xa"]
    assert command("mt-train", "import", usual, "-o", tmp_path / "model", *sample).code == 0
    again = command("mt-translate", tmp_path / "model", tmp_path / "in.xa", *greedy)
    assert again.out == done.out
    assert (
        command("mt-train", "export", tmp_path / "model", "--to", "huggingface", "-o", tmp_path / "back", *sample).code
        == 0
    )
    assert (tmp_path / "back" / "model.safetensors").exists()


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose vocabulary has tags of languages, as those of OPUS-MT's models from one language into several."""
    return write_folder(tmp_path_factory.mktemp("marian") / "opus-mt-xa-gem", tags=True)


def test_the_named_language_s_tag_is_put_before_each_source(tagged: Path) -> None:
    """As if it were typed; where it is typed as well, the named language counts, and a typed one alone stays."""
    lines = mixed_lines(12)
    deu, fra = ([f"{tag} {line}" for line in lines] for tag in TAGS)
    # The limit of a translation's length does not count the tag of a named language.
    limit = {"name": "greedy", "max_length_factor": 0.0, "max_length_extra": 38}
    usual, named = (
        tolka.load(tagged, search=limit, decoding={"split": "never", **more}) for more in ({}, {"target": "deu"})
    )
    expected = usual(deu)
    assert expected != usual(fra) != usual(lines) != expected
    assert named(lines) == named(fra) == expected
    assert usual(lines, tolka.Request(direction=Direction("xa", "fra"))) == usual(fra)
    pairs = list(zip(lines, expected, strict=True))
    assert [each.score for each in named.score(pairs)] == [
        each.score for each in usual.score(list(zip(deu, expected, strict=True)))
    ]
    with pytest.raises(ConfigError, match=r"does not know the target language 'de'\. Did you mean 'deu'"):
        tolka.load(tagged, decoding={"target": "de"})


def test_a_tag_that_gives_way_is_noted(tagged: Path, tmp_path: Path, command: Command) -> None:
    (tmp_path / "in.xa").write_text(f"{TAGS[1]} e e\ne e\n", encoding="utf-8")
    done = command("mt-translate", tagged, tmp_path / "in.xa", "target=deu", "search=greedy")
    assert "note: 1 of 2 lines began with the tag of a language, which gave way to that of target=deu" in done.err
    assert len({*done.out.splitlines()}) == 1
    assert "began with" not in command("mt-translate", tagged, tmp_path / "in.xa", "search=greedy").err


@pytest.mark.parametrize("typed", [False, True])
def test_fine_tuning_puts_the_tag_of_the_target(tagged: Path, tmp_path: Path, typed: bool) -> None:
    """Into each source of a batch, once, also where the source begins with one."""
    corpus = write_corpus(tmp_path / "corpus")
    for part in ("train", "valid"):
        text = (corpus / f"{part}.xa").read_text(encoding="utf-8").splitlines()
        lines = [f"{TAGS[0]} {line}" if typed else line for line in text]
        (corpus / f"{part}.xa").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        (corpus / f"{part}.xb").rename(corpus / f"{part}.deu")
    texts = [f"corpus.{part}={corpus / part}" for part in ("train", "valid")]
    folders = [f"run.prepared={tmp_path / 'prepared'}", f"run.dir={tmp_path / 'run'}"]
    config = tolka.train_config([f"run.init_from={tagged}", "corpus=files", "corpus.target=deu", *texts, *folders])
    prepared = prepare(config)
    source, tag = prepared.store.batch(np.arange(3)).source, prepared.tokenizer.typed_tags["deu"]
    assert {*source[:, 0].tolist()} == {tag}
    assert tag not in source[:, 1:]


@pytest.mark.slow
def test_fine_tuning_begins_with_a_folder(usual: Path, tmp_path: Path, command: Command) -> None:
    """The weights move from the imported ones; vocabulary and tokenizer stay, and the result goes out again."""
    arguments = arguments_of(write_corpus(tmp_path / "corpus"), tmp_path / "run")
    kept = [text for text in arguments if not text.startswith(("model", "tokenizer", "trainer.updates"))]
    settings = [f"run.init_from={usual}", "tokenizer.extend=0", "trainer.updates=5", "batching.sampling=0.3"]
    done = command("mt-train", *kept, *settings)
    assert done.code == 0, done.err
    start, tuned = load_marian(usual), load_model(tmp_path / "run" / "last")
    assert start.tokenizer.digests == tuned.tokenizer.digests
    moved = [
        float((start.model.state_dict()[name] - tensor).abs().max())
        for name, tensor in tuned.model.state_dict().items()
    ]
    assert 0 < max(moved) < 0.5
    export_huggingface(tmp_path / "run" / "last", tmp_path / "back", "float32", mixed_lines(5), lambda line: None)
    vocabularies = [json.loads((path / "vocab.json").read_bytes()) for path in (usual, tmp_path / "back")]
    assert vocabularies[0] == vocabularies[1]


def test_the_other_side_s_logits_have_our_columns(usual: Path) -> None:
    saved = load_marian(usual)
    (logits,) = theirs(usual, saved).logits([("lantern .", "tolo .")]) or []
    (ids,) = saved.tokenizer.encode_target(["tolo ."])
    assert logits.shape == (len(ids) + 1, saved.tokenizer.target_size - 2)
    assert logits.dtype == np.float32


def test_log_probabilities_are_those_of_transformers(usual: Path) -> None:
    """Our <pad>, which Marian does not have, takes no part in the softmax."""
    saved, pair = load_marian(usual), ("lantern ferry .", "tolo mirka .")
    model = transformers.MarianMTModel.from_pretrained(str(usual)).eval()
    tokenizer = transformers.MarianTokenizer.from_pretrained(str(usual))
    batch = tokenizer([pair[0]], text_target=[pair[1]], return_tensors="pt")
    with torch.no_grad():
        expected = model(**batch).logits[0].log_softmax(dim=-1).gather(1, batch["labels"].T)[:, 0]
    translator = Translator.of(saved, GreedyConfig(), DecodingConfig(device="cpu"))
    (found,) = translator.score([pair])
    assert found.token_scores == pytest.approx(expected.tolist(), abs=1e-5)


def test_transformers_gets_only_what_was_checked(usual: Path, tmp_path: Path) -> None:
    """Settings that would have it read another file, run code, or open another model are not passed on."""
    spoilt = shutil.copytree(usual, tmp_path / "in")
    for name, values in (
        ("config.json", {"auto_map": {"AutoModel": "evil.Model"}, "_name_or_path": "/elsewhere", "num_beams": 3}),
        ("tokenizer_config.json", {"sp_model_kwargs": {"model_file": "/etc/hostname"}, "vocab": "/etc/hostname"}),
        ("adapter_config.json", {"base_model_name_or_path": "/elsewhere"}),
    ):
        content = json.loads((spoilt / name).read_bytes()) if (spoilt / name).exists() else {}
        (spoilt / name).write_text(json.dumps({**content, **values}), encoding="utf-8")
    with checked_copy(read_foreign(spoilt), 40) as copy:
        assert {path.name for path in copy.iterdir()} == {
            *("config.json", "tokenizer_config.json", "model.safetensors", "source.spm", "target.spm", "vocab.json")
        }
        about = json.loads((copy / "tokenizer_config.json").read_bytes())
        assert {*about} <= {"source_lang", "target_lang", "separate_vocabs"}
        config = json.loads((copy / "config.json").read_bytes())
        assert not {"auto_map", "_name_or_path", "num_beams"} & {*config}
    import_huggingface(spoilt, tmp_path / "model", None, mixed_lines(5), lambda line: None)


def test_transformers_that_cannot_be_imported_is_named(
    usual: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tolka.interchange.huggingface.uncompared_section", lambda family, say: "")
    monkeypatch.setitem(sys.modules, "transformers", None)  # as an ImportError of its own
    outcome = command("mt-train", "import", usual, "-o", tmp_path / "model")
    assert outcome.code == 2
    assert "transformers is installed, and cannot be imported (import of transformers halted" in outcome.error
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("positions", [8, 10**7])
def test_few_and_many_positions_are_compared(
    usual: Path, tmp_path: Path, positions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """transformers computes a table of 10**7 in minutes, and has no position for a token after the last one."""
    monkeypatch.setattr("tolka.interchange.parity.LINES", 8)
    folder, said = shutil.copytree(usual, tmp_path / "in"), list[str]()
    config = json.loads((folder / "config.json").read_bytes())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": positions}), encoding="utf-8")
    import_huggingface(folder, tmp_path / "model", None, [], said.append)
    assert "translate 8 identically (greedy)" in said[0]
    assert load_model(tmp_path / "model").sources.longest == positions - 1


def test_what_transformers_cannot_load_is_named(usual: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(folder: str, **options: object) -> None:
        raise KeyError(folder)

    monkeypatch.setattr(transformers.MarianTokenizer, "from_pretrained", failing)
    with pytest.raises(CheckpointError, match=rf" cannot load {usual}: KeyError: '{usual}'$"):
        import_huggingface(usual, tmp_path / "out", None, mixed_lines(3), lambda line: None)
    with pytest.raises(CheckpointError, match=rf" cannot load {tmp_path}/out: KeyError: '{tmp_path}/out'$"):
        export_huggingface(usual, tmp_path / "out", "float32", mixed_lines(3), lambda line: None)
