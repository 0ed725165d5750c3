"""Bad input ends in one line that says what to try, with the right exit code and without a traceback."""

import errno
import hashlib
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from guarded_command import guarded
from safetensors.torch import load_file, save_file

from tolka.errors import CheckpointError, ConfigError, DataError

Command = Callable[..., Any]


@pytest.mark.parametrize(
    ("error", "code"),
    [(ConfigError("x"), 2), (DataError("x"), 1), (CheckpointError("x"), 1), (OSError(28, "x"), 1)],
)
def test_exit_codes(error: Exception, code: int, capfd: pytest.CaptureFixture[str]) -> None:
    def failing(arguments: object) -> int:
        raise error

    assert guarded(failing, []) == code
    assert capfd.readouterr().err.splitlines()[-1].startswith("error: ")


def test_a_file_that_may_not_be_read_is_not_written_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """os.access stands in for the permissions, which root has always."""
    (tmp_path / "given").touch()
    monkeypatch.setattr(os, "access", lambda name, mode: False)
    for name, said in (
        ("given", "cannot be read (Permission denied)"),
        ("new", "Permission denied; write elsewhere: run.dir and run.prepared, or -o"),
    ):

        def failing(arguments: object, path: Path = tmp_path / name) -> int:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))

        assert guarded(failing, []) == 1
        assert capfd.readouterr().err == f"error: {tmp_path / name}: {said}\n"


def test_an_interruption(capfd: pytest.CaptureFixture[str]) -> None:
    def interrupted(arguments: object) -> int:
        raise KeyboardInterrupt

    def interrupted_in_a_module_of_c(arguments: object) -> int:
        raise ImportError("initialization failed") from KeyboardInterrupt()

    for command in (interrupted, interrupted_in_a_module_of_c):
        assert guarded(command, []) == 130
        assert capfd.readouterr().err == "interrupted\n"


def test_an_interruption_before_the_command_is_there() -> None:
    """While it is still being imported."""
    code = "import importlib, signal, tolka.cli\n"
    code += "importlib.import_module = lambda name: signal.raise_signal(signal.SIGINT)\ntolka.cli.mt_train()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stderr, done.returncode) == ("interrupted\n", 130)


SETTINGS: list[tuple[list[str], list[str]]] = [
    (["trainer.update=5"], ["unknown key 'trainer.update'. Did you mean 'trainer.updates'?"]),
    (["trainr.updates=5"], ["unknown key 'trainr.updates'. Did you mean 'trainer.updates'?"]),
    (["trainer.warmup=5"], ["unknown key 'trainer.warmup'. Here it is scheduler.warmup=5"]),
    (["trainer.foo=5"], ["Keys of trainer: trainer.accumulate, ", " more (mt-train --help shows all)."]),
    (["model=xyz"], ["Known: auto, ", " more (mt-train --help shows all)."]),
    (["modl=x"], ["unknown key 'modl'. Did you mean 'model'?"]),
    (["model=transformer_tinny"], ["unknown model 'transformer_tinny'. Did you mean 'transformer_tiny'?"]),
    (["search=beem"], ["unknown search 'beem'. Did you mean 'beam'?"]),
    (["trainer=5"], ["unknown trainer '5'. Known: default."]),
    (["tokenizer.type=bep"], ["tokenizer.type ('bep') is unknown. Did you mean 'bpe'?"]),
    (["trainer.updates=five"], ["trainer.updates ('five') must be a whole number"]),
    (["trainer.updates=5.5"], ["trainer.updates (5.5) must be a whole number"]),
    (["trainer.updates=null"], ["trainer.updates (None) must be a whole number"]),
    (["tokenizer.shared=yes"], ["tokenizer.shared ('yes') must be true or false"]),
    (["optimizer.lr=nan"], ["optimizer.lr (nan) must be a number"]),
    (["trainer.max_minutes=inf"], ["trainer.max_minutes (inf) must be a number"]),
    (["run.seed=-1"], ["run.seed (-1) must be at least 0"]),
    (["run.seed=99999999999999999999"], ["run.seed (99999999999999999999) must be a whole number, at most 2**62"]),
    (["model.d_model=15"], ["model.d_model (15) must be a multiple of model.heads (2)"]),
    (
        ["batching.tokens=64"],
        ["batching.tokens (64) is smaller than one sentence may be", "at least batching.max_length + 1 (65)"],
    ),
    (["corpus.target=xa"], ["corpus.source and corpus.target are both 'xa'; they must differ"]),
    (["scheduler.warmup=6"], ["scheduler.warmup (6) is longer than the training (trainer.updates 5)"]),
    (["trainer.ema=1"], ["trainer.ema (1.0) must be at least 0 and below 1"]),
    (["trainer.average=1"], ["trainer.average (1) must be 0 (none), or at least 2"]),
    (["corpus.weights=[a,b]"], ["corpus.weights (['a', 'b']) must be a list, each of it a number"]),
    (["corpus.weights=[0]"], ["corpus.weights ([0.0]) must be 0 or more, and not all of them 0"]),
    (["corpus.temperature=0"], ["corpus.temperature (0) must be at least 1"]),
    (["corpus.temperature=2", "corpus.weights=[1]"], ["corpus.weights and corpus.temperature both say"]),
    (["cleaning.unicode=foo"], ["cleaning.unicode ('foo') is unknown"]),
    (["cleaning.leaks=foo"], ["cleaning.leaks ('foo') is unknown"]),
    (
        ["tokenizer=word", "batching.sampling=0.1"],
        ["batching.sampling draws other segmentations", "choose bpe or unigram"],
    ),
    (["batching.sampling=1.5"], ["batching.sampling (1.5) must be at least 0 and below 1"]),
    (
        ["scheduler=linear", "scheduler.horizon=2"],
        ["scheduler.horizon (2) must be longer than scheduler.warmup (2)"],
    ),
    (["model=lstm trainer.updates=2"], ["'model=lstm trainer.updates=2' has several settings"]),
    (["updates"], ["'updates' is not a setting; write key=value, as in trainer.updates=1000"]),
    (["=5"], ["'=5' is not a setting"]),
    (["+foo=1"], ["unknown key 'foo'"]),
    (["~model"], ["the chosen model has no key model.d_model"]),
    (["hydra.run.dir=x"], ["hydra.run.dir is Hydra's own setting"]),
    (["trainer.updates=[1"], ["cannot read 'trainer.updates=[1'"]),
    (["tokenizer.type=a(b"], ["cannot read 'tokenizer.type=a(b'", "\"tokenizer.type='a(b'\""]),
    (["--updates"], ["--updates is not an option; settings are key=value. Here it is trainer.updates=VALUE"]),
    (
        ["trainer.updates=five", "model.d_model=x", "tokenizer.type=bep", "run.seed=-1"],
        ["trainer.updates ('five')", "model.d_model ('x')", "tokenizer.type ('bep')", "run.seed (-1)"],
    ),
]


def test_settings(command: Command, tiny: list[str], tmp_path: Path) -> None:
    for given, complaints in SETTINGS:
        outcome = command("mt-train", *tiny, *given)
        assert (outcome.code, outcome.out) == (2, ""), given
        assert all(complaint in outcome.error for complaint in complaints), outcome.error
        assert "unknown" not in outcome.error or outcome.error.count(",") <= 6 * outcome.error.count("unknown")
    assert not (tmp_path / "run").exists()


def test_wrong_usage_of_translate(command: Command, trained: Path) -> None:
    assert "the following arguments are required: MODEL" in command("mt-translate").error
    for arguments, complaint in (
        (["search.beam_sze=3"], "Did you mean 'search.beam_size'?"),
        (["search.beam_size=0"], "search.beam_size (0) must be at least 1"),
        (["model=transformer_big"], "unknown key 'model'. Here, the model comes first"),
        (["decoding.max_length=-1"], "decoding.max_length (-1) must be 0"),
        (["decoding.device=gpu"], "decoding.device (gpu) is not a device; allowed: auto, cpu"),
    ):
        outcome = command("mt-translate", trained, *arguments, stdin=b"ferry\n")
        assert (outcome.code, outcome.out) == (2, "")
        assert complaint in outcome.error


def spoil(corpus: Path, name: str, content: bytes) -> None:
    (corpus / name).write_bytes(content)


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("train.xa", b"", "train.xa: the file is empty"),
        ("train.xa", b"ferry\n", "train.xb has 60: line by line they are not pairs. Find the first line"),
        ("train.xb", b"k\xe4ttle\n" * 60, "train.xb:1: not UTF-8 (byte 0xe4 at column 2); convert the file first"),
        ("train.xb", b"fjon\n" * 59 + b"f\0jon\n", "train.xb:60: a NUL byte"),
        ("train.xa", "ferry\n".encode("utf-16")[:-1], "train.xa: cannot be read to its end (not UTF-16"),
        ("train.xa", b" \n" * 60, "no training pair is left after cleaning (60 pairs, 0 kept, 60 left out: 60 blank s"),
        ("valid.xa", b"\n" * 8, "no pair of corpus.valid has text on both sides (8 pairs, 0 kept"),
        ("valid.xa", b"ferry\n", "valid.xb has 8"),
    ],
)
def test_corpora(command: Command, tiny: list[str], corpus: Path, name: str, content: bytes, complaint: str) -> None:
    spoil(corpus, name, content)
    outcome = command("mt-train", *tiny)
    assert outcome.code == 1
    assert complaint in outcome.error


@pytest.mark.parametrize("place", ["a file", "stdin", "hypothesis", "source", "compare"])
def test_a_line_beyond_the_ceiling_of_each_command(command: Command, trained: Path, tmp_path: Path, place: str) -> None:
    path, long = tmp_path / "long", b"ferry\n" + b"ferry " * 20 + b"\n"
    path.write_bytes(long)
    limit = "decoding.max_line_bytes=100"
    if place == "stdin":
        outcome = command("mt-translate", trained, limit, stdin=long)
    elif place == "a file":
        outcome = command("mt-translate", trained, path, limit)
    elif place == "compare":
        outcome = command("mt-eval", "compare", path, path, f"reference={path}", limit)
    else:
        model = [trained] if place == "source" else []
        outcome = command("mt-eval", *model, f"{place}={path}", f"reference={path}", limit)
    assert outcome.code == 1
    name = "stdin" if place == "stdin" else str(path)
    assert outcome.error.startswith(f"{name}:2: the line is longer than 100 bytes (decoding.max_line_bytes)")


@pytest.mark.parametrize("check", [[], ["--check"]])
def test_a_line_of_training_text_beyond_the_ceiling(
    command: Command, tiny: list[str], corpus: Path, check: list[str]
) -> None:
    spoil(corpus, "train.xa", b"ferry\n" + b"ferry " * 200_000 + b"\n" + b"ferry\n" * 58)
    outcome = command("mt-train", *tiny, *check)
    assert outcome.code == 1
    assert outcome.error.startswith(f"{corpus / 'train.xa'}:2: the line is longer than 1000000 bytes; is this text")
    assert outcome.error.endswith("If so, split it, or take it out")


def test_a_missing_corpus_names_what_is_there(command: Command, tiny: list[str], corpus: Path) -> None:
    outcome = command("mt-train", *tiny, f"corpus.train={corpus / 'trian'}")
    assert outcome.code == 1
    assert f"corpus.train: there is no {corpus / 'trian'}.xa, plain or as .gz, .xz, .bz2, .zst" in outcome.error
    assert "near it: train.xa, train.xb" in outcome.error
    (corpus / "test.xb").unlink()
    assert "corpus.test: there is no" in command("mt-train", *tiny).error


def test_the_same_file_for_both_sides(command: Command, tiny: list[str], corpus: Path) -> None:
    (corpus / "train.xb").unlink()
    os.link(corpus / "train.xa", corpus / "train.xb")
    assert "are the same file; give one file per language" in command("mt-train", *tiny).error


def test_a_hub_name_without_a_network_is_tried_once(
    command: Command, tiny: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets
    import huggingface_hub

    # Put back what the first failed request changes.
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    tries: list[object] = []

    def unreachable(*arguments: object, **options: object) -> object:
        tries.append(arguments)
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unreachable)
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("waits for another try"))
    kept = [setting for setting in tiny if not setting.startswith("corpus")]
    outcome = command("mt-train", *kept, "corpus=hub", "corpus.path=some/name", "corpus.source=xa", "corpus.target=xb")
    assert outcome.code == 1
    assert outcome.error.startswith("corpus.path 'some/name' (split train) could not be loaded: ")
    assert "give a local folder, or text files with corpus=files" in outcome.error
    assert outcome.error.endswith("'corpus.test=[]' none")
    assert len(tries) == 1


@pytest.fixture
def model(trained: Path, tmp_path: Path) -> Path:
    """A copy of the model directory, to be spoilt."""
    return Path(shutil.copytree(trained / "best", tmp_path / "model"))


def rewrite(model: Path, **changes: Any) -> None:
    manifest = json.loads((model / "manifest.json").read_text())
    files = changes.pop("files", {})
    manifest.update(changes)
    manifest["files"].update(files)
    (model / "manifest.json").write_text(json.dumps(manifest))


def refused(command: Command, model: Path) -> str:
    outcome = command("mt-translate", model, stdin=b"ferry\n")
    assert (outcome.code, outcome.out) == (1, "")
    return str(outcome.error)


@pytest.mark.parametrize("name", ["model.safetensors", "config.yaml", "tokenizer.model", "scores.json"])
def test_a_model_with_a_missing_or_changed_file(command: Command, model: Path, name: str) -> None:
    content = bytearray((model / name).read_bytes())
    content[len(content) // 2] ^= 1
    (model / name).write_bytes(content)
    assert refused(command, model).endswith(
        f"{name} is damaged: its checksum is not the manifest's; copy the directory again"
    )
    (model / name).unlink()
    assert refused(command, model) == f"{model} lacks its file {name}; copy the model directory again"


def test_a_model_of_a_later_format(command: Command, model: Path) -> None:
    rewrite(model, format=3)
    assert "has format 3, this tolka reads up to 1; install a newer tolka" in refused(command, model)


@pytest.mark.parametrize("name", ["../outside", "/outside", "a/../../outside"])
def test_a_manifest_that_names_a_file_outside(command: Command, model: Path, name: str) -> None:
    (model.parent / "outside").write_bytes(b"")
    rewrite(model, files={name: hashlib.sha256(b"").hexdigest()})
    assert refused(command, model).endswith(f"names a file outside its folder: {name}")


def test_a_link_that_leads_outside(command: Command, model: Path) -> None:
    (model / "scores.json").rename(model.parent / "scores.json")
    (model / "scores.json").symlink_to(model.parent / "scores.json")
    assert "names a file outside its folder: scores.json" in refused(command, model)


SPOILT = [
    "",
    "[]",
    "{",
    '{"format": 1}',
    '{"format": "x", "files": {}}',
    '{"format": Infinity, "files": {}}',
    "[" * 200_000,
    '{"format": 1, "longest_source": 9, "files": {"a\\u0000b": "0"}}',
    '{"format": 1, "longest_source": 9, "files": {"\\ud800": "0"}}',
]


def test_a_manifest_with_an_impossible_length(command: Command, model: Path) -> None:
    for longest in (0, -5, "64", None, True):
        rewrite(model, longest_source=longest)
        assert f"longest_source is {longest!r}" in refused(command, model)


def test_a_spoilt_manifest(command: Command, model: Path) -> None:
    for content in SPOILT:
        (model / "manifest.json").write_text(content)
        assert "manifest.json is damaged" in refused(command, model), content[:60]


@pytest.mark.parametrize("name", ["tokenizer.model", "model.safetensors"])
def test_a_file_that_the_manifest_does_not_vouch_for(command: Command, model: Path, name: str) -> None:
    manifest = json.loads((model / "manifest.json").read_text())
    del manifest["files"][name]
    (model / "manifest.json").write_text(json.dumps(manifest))
    assert refused(command, model) == f"{model / 'manifest.json'} does not list {name}"


@pytest.mark.parametrize("corpus", [None, "x", {"source": "xa"}])
def test_a_configuration_without_languages(command: Command, model: Path, corpus: object) -> None:
    settings = yaml.safe_load((model / "config.yaml").read_text())
    (model / "config.yaml").write_text(yaml.safe_dump({**settings, "corpus": corpus}))
    rewrite(model, files={"config.yaml": hashlib.sha256((model / "config.yaml").read_bytes()).hexdigest()})
    assert "does not say its languages (corpus.source, corpus.target)" in refused(command, model)


@pytest.mark.parametrize(
    "text", ["model: [1", "a", "model: {name: transformer, d_model: 15, heads: 2}", "model: {name: x}"]
)
def test_a_configuration_that_describes_no_model(command: Command, model: Path, text: str) -> None:
    (model / "config.yaml").write_text(text)
    rewrite(model, files={"config.yaml": hashlib.sha256(text.encode()).hexdigest()})
    assert str(model) in refused(command, model)


def test_weights_of_another_shape(command: Command, model: Path) -> None:
    text = (model / "config.yaml").read_text().replace("d_model: 16", "d_model: 18")
    (model / "config.yaml").write_text(text)
    rewrite(model, files={"config.yaml": hashlib.sha256(text.encode()).hexdigest()})
    assert "does not fit config.yaml" in refused(command, model)


def renamed(model: Path, *names: str) -> None:
    """Save the one matrix of the embeddings under these names."""
    tensors = load_file(model / "model.safetensors")
    (embedding,) = [tensors.pop(name) for name in list(tensors) if name.endswith("_embedding.weight")]
    save_file({**tensors, **{name: embedding.clone() for name in names}}, model / "model.safetensors")
    content = (model / "model.safetensors").read_bytes()
    rewrite(model, files={"model.safetensors": hashlib.sha256(content).hexdigest()})


@pytest.mark.parametrize(
    "names", [["output_embedding.weight"], ["output_embedding.weight", "source_embedding.weight"], ["other"], []]
)
def test_matrices_that_should_be_one(command: Command, model: Path, names: list[str]) -> None:
    renamed(model, *names)
    assert "does not fit config.yaml" in refused(command, model)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("opus-mt-en-de", "; on the Hugging Face Hub it is hub:Helsinki-NLP/opus-mt-en-de"),
        ("Helsinki-NLP/opus-mt-en-de", "; on the Hugging Face Hub it is hub:Helsinki-NLP/opus-mt-en-de"),
        ("ann/captions", "; if it is on the Hugging Face Hub, write hub:ann/captions"),
        ("runs/mine", ""),
    ],
)
def test_a_model_of_the_hub_without_hub(
    command: Command, tiny: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, hint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    complaint = f"{name}: there is no such model directory{hint}"
    assert command("mt-translate", name, stdin=b"a\n").error == complaint
    assert command("mt-train", *tiny, f"run.init_from={name}").error == complaint


def test_a_model_of_the_hub_where_a_model_directory_is_needed(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, folder = "hub:Helsinki-NLP/opus-mt-en-de", tmp_path / "cached"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    monkeypatch.setattr("tolka.formats.hub.local_folder", lambda model: folder)
    complaint = (
        f"{folder} is not a model directory, but a folder of Hugging Face's transformers: run mt-train import first, "
        "and give its OUT"
    )
    for words in (["export", name, "--to", "html"], ["export", name, "--to", "ctranslate2"], ["quantise", name]):
        assert command("mt-train", *words, "-o", tmp_path / "out").error == complaint


def test_an_output_that_is_an_input(command: Command, trained: Path, tmp_path: Path) -> None:
    """By any name of the file: its text would be lost."""
    for name in ("a.xa", "a.xb", "terms", "begun", "banned"):
        (tmp_path / name).write_text("a\tb\n" if name == "terms" else "a\n")
    (tmp_path / "link").symlink_to(tmp_path / "a.xa")
    os.link(tmp_path / "terms", tmp_path / "hard")
    source, reference = tmp_path / "a.xa", tmp_path / "a.xb"
    terms, begun, banned = (tmp_path / name for name in ("terms", "begun", "banned"))
    read = [f"search.glossary={terms}", f"input.prefix={begun}", f"search.banned={banned}"]
    for out in (source, tmp_path / "link", terms, tmp_path / "hard", begun, banned):
        assert command("mt-translate", trained, source, "-o", out, *read).error.startswith(f"{out} is read, too")
    assert command("mt-translate", trained, "--score", source, reference, "-o", reference).code == 1
    of_eval = [f"source={source}", f"reference=[{source},{reference}]", read[0], read[2]]
    for option in ("-o", "--lines"):
        for out in (source, reference, terms, tmp_path / "hard", banned):
            assert command("mt-eval", trained, *of_eval, option, out).error.startswith(f"{out} is read, too")
    both = "--lines", tmp_path / "x.tsv", "-o", tmp_path / "." / "x.tsv"
    assert "are both" in command("mt-eval", trained, *of_eval, *both).error
    assert {path.read_text() for path in (source, reference, begun, banned)} == {"a\n"}
    assert "Files have names, as in hypothesis=FILE reference=FILE" in command("mt-eval", source, reference).error


def test_an_output_inside_a_model(command: Command, trained: Path, tmp_path: Path) -> None:
    """Or in place of what a run has written. Beside it in the run's folder there is room."""
    run = shutil.copytree(trained, tmp_path / "run")
    (tmp_path / "link").symlink_to(run / "config.yaml")
    (tmp_path / "text").write_text("lantern\n")
    (tmp_path / "best").symlink_to(run / "best")
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    places = run / "config.yaml", tmp_path / "link", run / "best" / "new", run / "metrics.jsonl"
    for out in (*places, tmp_path / "best" / "config.yaml"):
        complaint = f"{out} is inside the model {run}"
        assert command("mt-translate", run, tmp_path / "text", "-o", out).error.startswith(complaint)
        scored = f"source={tmp_path / 'text'}", f"reference={tmp_path / 'text'}"
        assert command("mt-eval", run, *scored, "-o", out).error.startswith(complaint)
    made = run / "best" / "made"
    assert "is inside the model" in command("mt-translate", run / "best", tmp_path / "text", "--attention", made).error
    others = ["export", run, "--to", "ctranslate2"], ["quantise", run], ["average", run, run], ["import", run / "best"]
    for words in others:
        assert f"{made} is inside the model" in command("mt-train", *words, "-o", made).error
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    assert command("mt-translate", run, tmp_path / "text", "-o", run / "text.xb").code == 0
    assert command("mt-translate", run, tmp_path / "text", "-o", run / "text.xb").code == 0


def test_messages_name_what_was_typed(command: Command, trained: Path, tmp_path: Path) -> None:
    """Not a file with which writing begins; and a setting with its prefix."""
    out = tmp_path / ("o" * 250)
    assert command("mt-train", "quantise", trained, "-o", out).error == f"{out}: File name too long"
    (tmp_path / "text").write_text("lantern\n")
    out = tmp_path / ("o" * 251)
    assert command("mt-translate", trained, tmp_path / "text", "-o", out).error == f"{out}: File name too long"
    for change in ("+", "++", "~"):
        typed = f"{change}recipe=distillation"
        assert command("mt-train", typed).error == f"{typed}: settings are key=value here, without {change}"
    assert command("mt-train", "+recipe.size=3").error.startswith("+recipe.size=3 is for a recipe: name it")


def test_a_damaged_model_is_told_without_python_s_words(command: Command, trained: Path, tmp_path: Path) -> None:
    """A link to itself, bytes that are not UTF-8, and values of another kind."""
    best = shutil.copytree(trained / "best", tmp_path / "best")
    for content, said in (
        (b"3", "a value is of another kind than expected"),
        (b"\xc0", "it is not UTF-8"),
        (b"{}", "'format' is missing"),
        (b'{"format": "x", "files": {}}', "a value is of another kind than expected"),
    ):
        (best / "manifest.json").write_bytes(content)
        assert command("mt-translate", best).error == f"{best / 'manifest.json'} is damaged ({said})"
    shutil.copy(trained / "best" / "manifest.json", best)
    (best / "tokenizer.model").unlink()
    (best / "tokenizer.model").symlink_to("tokenizer.model")
    assert "tokenizer.model" in command("mt-translate", best).error


def test_what_is_no_model(command: Command, tmp_path: Path) -> None:
    assert "is not a model directory: it has no manifest.json. Give a run directory" in refused(command, tmp_path)
    assert "there is no such model directory" in refused(command, tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    assert "is a file, and not a model directory" in refused(command, tmp_path / "file")


def test_the_name_of_a_run_is_one_folder_below_runs(
    command: Command, tiny: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    before = sorted(tmp_path.rglob("*"))
    arguments = [setting for setting in tiny if not setting.startswith("run.dir=")]
    names = ("a/../../etc", "../x", "..", ".", "/tmp/x", "a/b", "a\\b", "a\nb")
    for name, several in itertools.product(names, ([], ["-m", "run.seed=1,2"])):
        outcome = command("mt-train", *arguments, f"run.name={name}", *several)
        assert outcome.code == 2
        assert "names one folder below runs/, so that it has no / or .. in it" in outcome.error
    assert sorted(tmp_path.rglob("*")) == before
