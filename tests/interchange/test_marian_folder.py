"""Folders that cannot be imported, damaged and hostile ones among them: one clear line each, without `transformers`."""

import dataclasses
import json
import pickle
import shutil
import sys
from collections.abc import Callable
from errno import EACCES
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from marian_folder import load_marian, write_by_hand
from rows import each_row
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from conftest import Command
from tolka.errors import CheckpointError, ConfigError
from tolka.formats.any_model import load_any
from tolka.formats.hub import local_folder
from tolka.formats.huggingface.marian import config_of
from tolka.interchange.huggingface import export_huggingface, import_huggingface
from tolka.model_directory.read import load_model
from tolka.models.transformer.config import PRESETS, TransformerConfig

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_by_hand(tmp_path_factory.mktemp("made") / "opus")


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A folder to be spoilt."""
    return shutil.copytree(made, tmp_path / "opus")


def change(path: Path, **values: Any) -> None:
    content = {**json.loads(path.read_text(encoding="utf-8")), **values}
    path.write_text(json.dumps(content), encoding="utf-8")


def tensors(folder: Path, changed: Callable[[dict[str, torch.Tensor]], object]) -> None:
    found = load_file(folder / WEIGHTS)
    changed(found)
    save_file(found, folder / WEIGHTS)


def complaint(folder: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        load_marian(folder)
    message = str(caught.value)
    assert "\n" not in message
    assert str(folder) in message
    return message


def test_the_folder_as_it_is(folder: Path) -> None:
    saved = load_marian(folder)
    assert (saved.config["corpus"], saved.sources.longest) == ({"source": "xa", "target": "xb"}, 63)
    assert saved.tokenizer.shared


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"model_type": "t5"}, "the architecture is 't5' (model_type), and only Hugging Face's m2m_100 (M2M100For"),
        ({"model_type": None}, "the architecture is None"),
        ({"d_model": 32}, "must be ("),
        ({"d_model": 2**19}, "must be ("),
        ({"d_model": "16"}, "d_model ('16') must be a whole number"),
        ({"d_model": True}, "d_model (True) must be a whole number"),
        ({"encoder_layers": 900}, "tensors differ from config.json: model.encoder.layers.1.fc1.bias is missing"),
        ({"encoder_layers": 10**9}, "model.layers"),
        ({"decoder_layers": 0}, "decoder_layers (0) must be at least 1"),
        ({"decoder_layers": 2}, "tensors differ from config.json"),
        ({"encoder_attention_heads": 3, "decoder_attention_heads": 3}, "must be a multiple of model.heads (3)"),
        ({"decoder_attention_heads": 1}, "encoder_attention_heads (2) and decoder_attention_heads (1) must be equal"),
        ({"encoder_ffn_dim": 8}, "encoder_ffn_dim (8) and decoder_ffn_dim (24) must be equal"),
        (
            {"activation_function": "gelu_new"},
            "activation_function ('gelu_new') must be one of swish, silu",
        ),
        ({"activation_function": ["swish"]}, "activation_function (['swish']) must be one of swish, silu"),
        ({"activation_function": {}}, "activation_function ({}) must be one of swish, silu"),
        ({"encoder_ffn_dim": 0, "decoder_ffn_dim": 0}, "encoder_ffn_dim (0) must be at least 1"),
        ({"activation_function": "\x1b[31m" * 99}, r"activation_function ('\x1b[31m\x1b"),
        ({"vocab_size": 12}, "subwords, and config.json says 12 (vocab_size)"),
        ({"decoder_start_token_id": 1}, "(eos_token_id, decoder_start_token_id) they are"),
        ({"eos_token_id": 7}, "(eos_token_id, decoder_start_token_id) they are (7,"),
        ({"scale_embedding": "yes"}, "scale_embedding ('yes') must be true or false"),
        ({"dropout": 2}, "dropout (2) must be a number, at least 0 and below 1"),
        ({"dropout": 10**400}, "dropout (1000"),
        ({"dropout": float("nan")}, "dropout (nan) must be a number"),
        ({"attention_dropout": float("inf")}, "attention_dropout (inf) must be a number"),
        ({"dropout": "a"}, "dropout ('a') must be a number"),
    ],
)
def test_a_config_that_does_not_fit(folder: Path, values: dict[str, Any], said: str) -> None:
    change(folder / "config.json", **values)
    message = complaint(folder)
    assert said in message
    assert message.isprintable()
    assert len(message) < len(str(folder)) + 400


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "source.spm", "target.spm", WEIGHTS])
def test_a_file_that_is_missing_or_damaged(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"\x00nothing")
    assert name in complaint(folder)
    (folder / name).write_bytes(b"")
    assert name in complaint(folder)
    (folder / name).unlink()
    assert f"lacks its file {name}" in complaint(folder) or f"neither {WEIGHTS}" in complaint(folder)


def test_a_vocabulary_that_is_none(folder: Path) -> None:
    path = folder / "vocab.json"
    vocabulary = json.loads(path.read_text(encoding="utf-8"))
    for changed, said in (
        ({**vocabulary, "new": 1}, "each once"),
        ({**vocabulary, "new": "x"}, "each once"),
        ({("x" if key == "<unk>" else key): number for key, number in vocabulary.items()}, "lacks <unk>"),
        ([1], "cannot be read"),
        (
            {("a\ud800" if number == 5 else key): number for key, number in vocabulary.items()},
            r"the subword a\ud800 is not UTF-8",
        ),
    ):
        path.write_text(json.dumps(changed), encoding="utf-8")
        assert said in complaint(folder)


def test_tensors_that_do_not_fit(folder: Path) -> None:
    name = "model.encoder.layers.0.fc1.weight"
    tensors(folder, lambda found: found.update({name: torch.zeros(24, 17)}))
    assert f"{name} is (24, 17), and by config.json and the vocabulary it must be (24, 16)" in complaint(folder)
    tensors(folder, lambda found: found.update({name: torch.full((24, 16), float("nan"))}))
    assert f"not finite (NaN or inf in {name})" in complaint(folder)
    tensors(folder, lambda found: found.update({name: torch.zeros(24, 16, dtype=torch.int32)}))
    assert f"{name} is int32, and must be one of float32, float16, bfloat16, float64" in complaint(folder)
    tensors(folder, lambda found: found.update({name: torch.zeros(24, 16).to(torch.float8_e4m3fn)}))
    assert f"{name} is float8_e4m3fn, and must be one of float32" in complaint(folder)
    tensors(folder, lambda found: found.update({name: torch.full((24, 16), 1e300, dtype=torch.float64)}))
    assert f"not finite (NaN or inf in {name})" in complaint(folder)
    tensors(folder, lambda found: (found.pop(name), found.update(more=torch.zeros(2))))
    assert f"2 tensors differ from config.json: {name} is missing, more is unknown" in complaint(folder)


def test_matrices_that_config_says_are_one(folder: Path) -> None:
    tensors(folder, lambda found: found.update({"lm_head.weight": found["model.shared.weight"] + 1}))
    assert "lm_head.weight and model.shared.weight differ, and by config.json they are one matrix" in complaint(folder)


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "source.spm", WEIGHTS])
def test_links_to_the_outside_are_not_followed(folder: Path, tmp_path: Path, name: str) -> None:
    shutil.move(folder / name, tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    assert f"{name} is a link to a file outside its folder" in complaint(folder)
    (folder / name).unlink()
    (folder / name).symlink_to(folder / name)
    assert f"{name} is not a file, or a link to nothing" in complaint(folder)


def test_the_hub_s_cache_has_links(folder: Path, tmp_path: Path) -> None:
    """snapshots/COMMIT/NAME -> ../../blobs/HASH, in one folder of the model."""
    blobs, snapshot = (tmp_path / "models--a--opus-mt-a-b" / name for name in ("blobs", "snapshots/1a2b"))
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for number, path in enumerate(sorted(folder.iterdir())):
        shutil.copy(path, blobs / str(number))
        (snapshot / path.name).symlink_to(Path("..") / ".." / "blobs" / str(number))
    expected, found = (load_marian(path) for path in (folder, snapshot))
    assert (expected.config["run"], found.config["run"]) == ({"name": "opus"}, {"name": "opus-mt-a-b"})
    assert found.scores["facts"]["imported from"] == "a folder of Hugging Face's Marian, opus-mt-a-b"
    tensors = found.model.state_dict()
    assert all(torch.equal(tensor, tensors[name]) for name, tensor in expected.model.state_dict().items())


@pytest.mark.parametrize("name", ["/etc/passwd", "../other.safetensors", "a/../../b.safetensors", "x.safetensors\0"])
def test_an_index_that_names_files_outside(folder: Path, name: str) -> None:
    (folder / WEIGHTS).unlink()
    (folder / INDEX).write_text(json.dumps({"weight_map": {"a": name}}), encoding="utf-8")
    assert "names a file outside its folder" in complaint(folder) or "names other files" in complaint(folder)


@pytest.mark.parametrize("index", [{}, {"weight_map": []}, {"weight_map": {"a": 1}}, {"weight_map": {}}])
def test_an_index_without_files(folder: Path, index: object) -> None:
    (folder / WEIGHTS).unlink()
    (folder / INDEX).write_text(json.dumps(index), encoding="utf-8")
    assert INDEX in complaint(folder)


class Touch:
    """Unpickled with everything allowed, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("by_torch", [True, False])
def test_a_pickled_file_runs_nothing(folder: Path, tmp_path: Path, by_torch: bool) -> None:
    (folder / WEIGHTS).unlink()
    path, harmful = folder / "pytorch_model.bin", {"a": Touch(tmp_path / "ran")}
    if by_torch:
        torch.save(harmful, path)
    else:
        path.write_bytes(pickle.dumps(harmful))
    assert "is not a file of tensors alone, and nothing in it is run" in complaint(folder)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("content", [b"\x80\x02}q\x00(X", b"\x80\x09.", b"\x80\x02]", b"PK\x03\x04"])
def test_a_pickled_file_of_made_up_bytes(folder: Path, content: bytes) -> None:
    (folder / WEIGHTS).unlink()
    (folder / "pytorch_model.bin").write_bytes(content)
    assert "is not a file of tensors alone, and nothing in it is run" in complaint(folder)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_pickled_tensors_that_are_not_dense(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    for tensor in (torch.eye(3).to_sparse(), torch.empty(3, device="meta"), nested):
        torch.save({"model.shared.weight": tensor}, folder / "pytorch_model.bin")
        assert "something else than dense tensors in it" in complaint(folder)
    torch.save([1, 2], folder / "pytorch_model.bin")
    assert "something else than dense tensors in it" in complaint(folder)


@pytest.mark.slow
def test_languages_that_nobody_names(folder: Path, tmp_path: Path, command: Command) -> None:
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(ConfigError, match=r"does not say the languages .*: add them, as in corpus\.source=en"):
        import_huggingface(folder, tmp_path / "model", None, [], lambda line: None)
    asked = command("mt-train", "import", folder, "corpus.source=en", "corpus.target=de", "-o", tmp_path / "model")
    assert asked.code == 0, asked.err
    assert "corpus:\n  source: en\n  target: de\n" in (tmp_path / "model" / "config.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["import", "FOLDER"], "mt-train import needs -o OUT, the folder to write"),
        (["import", "FOLDER", "-o", "OUT", "corpus.source=en"], "give both languages"),
        (
            ["import", "FOLDER", "-o", "OUT", "corpus.source=../x", "corpus.target=de"],
            "corpus.source ('../x') is not a language code",
        ),
        (
            ["import", "FOLDER", "-o", "OUT", "corpus.source=a", "corpus.target=b", "corpus.source=c"],
            "corpus.source=a corpus.target=b corpus.source=c: give each setting once",
        ),
        (["import", "FOLDER", "-o", "LINK"], "link is there already; name another folder to write"),
        (
            ["import", "FOLDER", "-o", "OUT", "model=lstm"],
            "model=lstm: mt-train import takes corpus.source, corpus.target, languages, text",
        ),
        (["import", "nowhere", "-o", "OUT"], "nowhere: there is no such folder"),
        (["export", "FOLDER", "-o", "OUT"], "the following arguments are required: --to"),
        (["export", "FOLDER", "--to", "onnx", "-o", "OUT"], "invalid choice: 'onnx'"),
        (
            ["export", "FOLDER", "--to", "huggingface", "--dtype", "int4", "-o", "OUT"],
            "--dtype (int4) of a",
        ),
        (["export", "FOLDER", "--to", "huggingface", "-o", "FOLDER"], "is there already; name another folder"),
        (["import", "FOLDER", "-o", "OUT", "--sample", "EMPTY"], "empty.txt is empty: it must have source lines"),
        (["import", "FOLDER", "-o", "OUT", "--sample", "nowhere.txt"], "nowhere.txt: there is no such file"),
    ],
)
def test_arguments_that_do_not_do(
    made: Path, tmp_path: Path, command: Command, arguments: list[str], said: str
) -> None:
    (tmp_path / "empty.txt").touch()
    places = {"FOLDER": made, "OUT": tmp_path / "out", "EMPTY": tmp_path / "empty.txt", "LINK": tmp_path / "link"}
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    done = command("mt-train", *(places.get(text, text) for text in arguments))
    assert done.code in (1, 2)
    assert said in done.error
    assert not (tmp_path / "out").exists()


@each_row(
    ("options", "said"),
    [
        ({"norm": "pre"}, "model.norm=pre (it has post)"),
        ({"positions": "rotary"}, "model.positions=rotary (it has sinusoidal_halves)"),
        ({"decoder": "ssru"}, "model.decoder=ssru (it has attention)"),
        ({"positions": "learned"}, "model.positions=learned"),
        ({"positions": "sinusoidal"}, "model.positions=sinusoidal (it has sinusoidal_halves)"),
        ({"normalization": "rmsnorm"}, "model.normalization=rmsnorm (it has layernorm)"),
        ({"activation": "swiglu"}, "model.activation=swiglu (it has swish or relu or gelu)"),
        ({"d_v": 7}, "model.d_v=7 (it has 64)"),
        ({"share_embeddings": "source_output"}, "model.share_embeddings=source_output (it has all or source_target"),
    ],
)
def test_what_marian_cannot_express(options: dict[str, Any], said: str) -> None:
    fits = PRESETS["transformer_marian"].resolved(shared=True)
    config_of(fits, (9, 9), 9, (0, 1, 8))
    with pytest.raises(ConfigError) as caught:
        config_of(dataclasses.replace(fits, **options), (9, 9), 9, (0, 1, 8))
    assert said in str(caught.value)
    assert str(caught.value).endswith("train with model=transformer_marian, which fits")


def test_a_model_that_marian_cannot_express_is_not_written(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model.norm=pre \(it has post\), model.positions=sinusoidal"):
        export_huggingface(trained, tmp_path / "out", "float32", [], lambda line: None)
    assert [*tmp_path.iterdir()] == []


def test_a_recurrent_model_is_refused(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = load_model(trained)
    recurrent = dataclasses.replace(saved, config={**saved.config, "model": {"name": "rnn"}})
    monkeypatch.setattr("tolka.interchange.huggingface.load_any", lambda name: recurrent)
    with pytest.raises(ConfigError, match=r"is model\.name=rnn: train with model=transformer_marian, which fits"):
        export_huggingface(trained, tmp_path / "out", "float32", [], lambda line: None)


def test_weights_that_float16_cannot_hold(folder: Path, tmp_path: Path) -> None:
    tensors(folder, lambda found: found.update({"model.decoder.layers.0.fc1.bias": torch.full((24,), 1e6)}))
    with pytest.raises(CheckpointError, match=r"fc1\.bias has values that float16 cannot hold: take --dtype bfloat16"):
        export_huggingface(folder, tmp_path / "out", "float16", [], lambda line: None)
    assert not (tmp_path / "out").exists()


def test_the_preset_has_opus_mt_s_sizes() -> None:
    model = PRESETS["transformer_marian"].resolved(shared=True)
    assert isinstance(model, TransformerConfig)
    assert (model.d_model, model.heads, model.layers, model.decoder_layers, model.d_ff) == (512, 8, 6, 6, 2048)
    assert (model.share_embeddings, model.output_bias) == ("all", True)


def test_a_folder_of_the_hub(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the files that are read are downloaded; the pickled weights only where there are no others."""
    asked: list[Any] = []

    def download(name: str, allow_patterns: list[str]) -> str:
        asked.append((name, allow_patterns))
        return str(folder)

    for files, pickled in ((["config.json", WEIGHTS], False), (["config.json", "pytorch_model.bin"], True)):
        siblings = [SimpleNamespace(rfilename=file) for file in files]
        info = SimpleNamespace(siblings=siblings)
        monkeypatch.setattr("huggingface_hub.model_info", lambda name, timeout, info=info: info)
        monkeypatch.setattr("huggingface_hub.snapshot_download", download)
        assert local_folder("hub:owner/name") == folder
        assert asked[-1][0] == "owner/name"
        assert ("pytorch_model*.bin" in asked[-1][1]) == pickled
    assert load_any("hub:owner/name").tokenizer.shared


def test_the_hub_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    from huggingface_hub import errors

    def offline(*names: object, **options: object) -> None:
        raise errors.OfflineModeIsEnabled("no\nnetwork")

    for name in ("model_info", "snapshot_download"):
        monkeypatch.setattr(f"huggingface_hub.{name}", offline)
    done = command("mt-train", "import", "hub:Helsinki-NLP/opus-mt-en-de", "-o", tmp_path / "model")
    assert done.code == 1
    assert done.error.startswith(
        "hub:Helsinki-NLP/opus-mt-en-de cannot be downloaded (OfflineModeIsEnabled: no network)"
    )
    tuned = command("mt-train", "corpus=files", "corpus.train=x", "run.init_from=hub:a/b", "corpus.valid=y")
    assert "hub:a/b cannot be downloaded" in tuned.error


def test_without_a_network_the_cache_is_taken_at_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a download leaves it: only the files that are read, of those that the list of the commit has."""
    cached, commit = tmp_path / "cache" / "models--owner--opus-mt", "0" * 40
    shutil.copytree(folder, cached / "snapshots" / commit)
    listed = {name: {"size": 1, "blob_id": "0"} for name in [*(path.name for path in folder.iterdir()), "tf_model.h5"]}
    tree = json.dumps({"format_version": 1, "files": listed})
    for name, text in (("refs/main", commit), (f"trees/{commit}.json", tree)):
        (cached / name).parent.mkdir()
        (cached / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.hf_api.api.endpoint", "http://127.0.0.1:9")
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("it waits"))
    assert local_folder("hub:owner/opus-mt") == cached / "snapshots" / commit


def test_the_hub_without_its_package(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    done = command("mt-translate", "hub:owner/name")
    assert done.error == "hub:owner/name needs the package huggingface_hub: pip install 'tolka[hub]'"


@pytest.mark.parametrize(
    "arguments",
    [
        ["quantise", "FOLDER", "-o", "OUT"],
        ["average", "FOLDER", "FOLDER", "-o", "OUT"],
        ["merge", "MODEL", "FOLDER", "-o", "OUT"],
    ],
)
def test_a_folder_of_marian_where_a_model_directory_is_needed(
    made: Path, trained: Path, tmp_path: Path, command: Command, arguments: list[str]
) -> None:
    places = {"FOLDER": made, "MODEL": trained, "OUT": tmp_path / "out"}
    done = command("mt-train", *(places.get(text, text) for text in arguments))
    assert done.error == (
        f"{made} is not a model directory, but a folder of Hugging Face's transformers: run mt-train import first, "
        "and give its OUT"
    )


def test_what_need_not_be_imported(trained: Path, tmp_path: Path) -> None:
    for folder in (trained, trained / "best"):
        with pytest.raises(CheckpointError, match="is a model directory of tolka already: use it as it is"):
            import_huggingface(folder, tmp_path / "out", None, [], lambda line: None)


def test_a_folder_exported_for_ctranslate2_is_no_beginning(tmp_path: Path, command: Command) -> None:
    exported = tmp_path / "exported"
    exported.mkdir()
    for name in ("manifest.json", "tolka.json", "config.json"):
        (exported / name).write_text("{}", encoding="utf-8")
    with pytest.raises(CheckpointError, match="is a model directory of tolka already"):
        import_huggingface(exported, tmp_path / "out", None, [], lambda line: None)
    files = ["corpus=files", "corpus.train=x", "corpus.valid=y"]
    tuned = command("mt-train", f"run.init_from={exported}", *files)
    assert tuned.error == (
        f"{exported} was exported for CTranslate2, which mt-translate reads; here, give the model it was made from"
    )


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "source.spm", WEIGHTS])
def test_a_file_that_may_not_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """As a file without permissions: root, who may run the tests, reads those too."""
    real = Path.open

    def opened(path: Path, *arguments: Any, **options: Any) -> Any:
        if path.name == name:
            raise PermissionError(EACCES, "Permission denied", str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", opened)
    assert complaint(folder) == f"{folder / name} cannot be read (Permission denied)"


def test_an_export_to_a_full_disk(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("tolka.model_directory.write.save_file", full)
    with pytest.raises(CheckpointError, match=r"could not be written .*No space left.*; is the disk full\?"):
        export_huggingface(folder, tmp_path / "out", "float32", [], lambda line: None)
    assert not (tmp_path / "out").exists()
