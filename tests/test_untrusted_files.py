"""Files of models and runs that come from anybody: whatever is in them, they are read, or refused in one clear line."""

import json
import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import torch
from damage import complaint, damaged, outcomes
from guarded_command import guarded
from marian_files import write_student, write_zip_of_opus_mt
from marian_folder import write_by_hand
from random_model import TEXTS, write_model
from safetensors.torch import load, load_file, save

from conftest import arguments_of, write_corpus
from tolka.cli import train
from tolka.engines.options import DecodingConfig
from tolka.model_directory.combine import quantise_model
from tolka.model_directory.read import load_state, restoring
from tolka.model_directory.verify import MANIFEST, TrainingSources, write_manifest
from tolka.models.transformer.config import TransformerConfig
from tolka.search.options import BeamConfig, GreedyConfig, SearchConfig
from tolka.system.resumable import resumable_file
from tolka.terminology.glossary import Glossary, read_banned, read_glossary
from tolka.text.characters import CharacterForm
from tolka.text.direction import Direction
from tolka.tokenizer.tokenizer import TokenizerConfig
from tolka.training.run_folder import RunFolder
from tolka.training.saved_settings import begun_settings
from tolka.training.snapshots import read_last_state
from tolka.training.state import TrainState
from tolka.translation.opening import open_model

GREEDY = GreedyConfig(max_length_factor=1.0, max_length_extra=3)
BEAM = BeamConfig(beam_size=3, max_length_factor=1.0, max_length_extra=3)
CONFIG = TransformerConfig(d_model=32, heads=4, layers=1, share_embeddings="none")
TBX = """<?xml version="1.0"?><tbx type="TBX-Basic"><text><body><conceptEntry id="c1"><langSec xml:lang="en"><termSec>
<term>engine</term></termSec></langSec><langSec xml:lang="de"><termSec><term>Motor</term></termSec></langSec>
</conceptEntry></body></text></tbx>"""


@dataclass(frozen=True)
class Reader:
    """make: writes a folder of valid files. read: reads it, and uses what was read. is_ours: it may have a manifest."""

    make: Callable[[Path], object]
    read: Callable[[Path], object]


def translating(search: SearchConfig, backend: str = "torch") -> Callable[[Path], object]:
    decoding = DecodingConfig(device="cpu", threads=1, split="never", backend=backend)
    return lambda folder: open_model(folder, search, decoding)(TEXTS[:2])


def write_int8(folder: Path) -> None:
    write_model(folder.parent / "fp32", CONFIG)
    quantise_model(folder.parent / "fp32", folder)


def write_exported(folder: Path, dtype: str) -> None:
    pytest.importorskip("ctranslate2")
    from tolka.interchange.export_ctranslate2 import export_checked

    write_model(folder.parent / "model", CONFIG)
    export_checked(folder.parent / "model", folder, dtype)


def write_marian(folder: Path) -> None:
    from tolka.interchange.marian import export_marian

    write_student(folder.parent / "model")
    export_marian(folder.parent / "model", folder, "int8", [], lambda remark: None)


def write_pickled(folder: Path) -> None:
    write_by_hand(folder)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def write_run(folder: Path) -> None:
    assert guarded(train.run, arguments_of(write_corpus(folder.parent / "corpus"), folder)) == 0
    shutil.rmtree(folder / "best")
    shutil.rmtree(folder / "samples", ignore_errors=True)


def read_run(folder: Path) -> None:
    """Resume it, but for the training."""
    begun_settings(folder)
    run = RunFolder(folder)
    run.claim({}, override=True)
    run.forget_after(3)
    facts = read_last_state(folder, str(load_state(folder / "last").facts.get("store"))).facts
    with restoring(folder / "last"):
        TrainState(**facts["train"])


def write_record(folder: Path) -> None:
    """An interrupted job of mt-translate."""
    folder.mkdir()
    with suppress(KeyboardInterrupt), resumable_file(folder / "out", {"model": "a", "search.beam_size": 5}) as out:
        out.write(b"one\n")
        out.record({"lines": 1, "digest": "0" * 64, "tally": {"lines": 1}})
        raise KeyboardInterrupt


def read_record(folder: Path) -> None:
    with resumable_file(folder / "out", {"model": "a", "search.beam_size": 5}) as out:
        assert out.state in ({}, {"lines": 1, "digest": "0" * 64, "tally": {"lines": 1}})


def write_terms(folder: Path) -> None:
    folder.mkdir()
    (folder / "terms.tsv").write_text("engine\tMotor\ngear | gears\tGetriebe\n")
    (folder / "terms.tbx").write_text(TBX)
    (folder / "banned.txt").write_text("Hund\nrote Katze\n")


def read_terms(folder: Path) -> None:
    for name in ("terms.tsv", "terms.tbx"):
        Glossary(read_glossary(folder / name, Direction("en", "de")), CharacterForm("nfc")).matches(
            "an engine has gears"
        )
    read_banned(folder / "banned.txt")


def write_tokenizer(folder: Path) -> None:
    write_by_hand(folder)
    for path in folder.iterdir():
        if path.name != "source.spm":
            path.unlink()


def read_tokenizer(folder: Path) -> None:
    tokenizer = TokenizerConfig(model=[str(folder / "source.spm")]).load_given()
    assert tokenizer is not None
    tokenizer.decode_target(tokenizer.encode_source(TEXTS))


READERS = {
    "model": Reader(lambda folder: write_model(folder, CONFIG), translating(GREEDY)),
    "model, CTranslate2": Reader(lambda folder: write_model(folder, CONFIG), translating(BEAM, "ctranslate2")),
    "int8": Reader(write_int8, translating(GREEDY)),
    "marian": Reader(write_by_hand, translating(GREEDY)),
    "marian, pickled": Reader(write_pickled, translating(GREEDY)),
    "marian's own": Reader(write_marian, translating(GREEDY)),
    "zip of opus-mt": Reader(lambda folder: write_zip_of_opus_mt(folder, folder.parent / "hf"), translating(GREEDY)),
    "exported": Reader(lambda folder: write_exported(folder, "float32"), translating(GREEDY)),
    "exported in int8": Reader(lambda folder: write_exported(folder, "int8"), translating(BEAM)),
    "run": Reader(write_run, read_run),
    "interrupted translation": Reader(write_record, read_record),
    "terms": Reader(write_terms, read_terms),
    "tokenizer": Reader(write_tokenizer, read_tokenizer),
}


@pytest.fixture(scope="module", params=READERS)
def reader(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Reader, Path]:
    found, folder = READERS[request.param], tmp_path_factory.mktemp("valid") / "folder"
    in_a_fork(partial(found.make, folder))
    return found, folder


def in_a_fork(function: Callable[[], object]) -> None:
    """Call it in another process: the tests fork this one, whose threads of CTranslate2 a fork would wait for."""
    if not (child := os.fork()):
        code = 1
        try:
            function()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def files_of(folder: Path) -> list[Path]:
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.stat().st_size)


def copied(folder: Path, place: Path) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    return Path(shutil.copytree(folder, place))


def vouch(folder: Path, changed: Path) -> None:
    """Write the manifests with the checksums of the files that are there, as an attacker would."""
    for manifest in folder.rglob(MANIFEST):
        if manifest != changed and manifest.is_file():
            int8 = '"weights": "int8"' in manifest.read_text()
            write_manifest(manifest.parent, TrainingSources(40, 0.0), int8)


@pytest.mark.slow
def test_whatever_is_in_a_file(reader: tuple[Reader, Path]) -> None:
    """It is read, or refused in one line; -rP shows the most that one of 500 damaged copies took."""
    found, valid = reader

    def read(seed: int) -> None:
        folder, draw = copied(valid, valid.parent / "damaged"), random.Random(seed)
        path = folder / draw.choice([name for name in files_of(folder) if name.suffix not in (".md", ".html", ".log")])
        path.write_bytes(damaged(path.read_bytes(), path.name, draw))
        vouch(folder, path)
        found.read(folder)

    results = list(outcomes(read, range(500)))
    print(f"{max(each.seconds for each in results):.2f} s, {max(each.bytes for each in results) / 2**20:.0f} MiB")
    assert (len(results), [each.fault for each in results if each.fault]) == (500, [])


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_pipe_in_place_of_a_file(reader: tuple[Reader, Path]) -> None:
    """It is refused, or not read: nothing waits for somebody to write into it."""
    found, valid = reader
    for name in [*files_of(valid), Path("vocabulary.json"), Path(".lock")]:
        folder = copied(valid, valid.parent / "piped")
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)
        in_a_fork(partial(complaint, partial(found.read, folder)))


def not_utf8(content: bytes) -> bytes:
    return content.replace("\u2581".encode(), b"\xff\x96\x81", 1)


def with_a_large_scale(content: bytes) -> bytes:
    tensors = load(content)
    tensors["decoder.0.cross.query.weight_scale"][0] = 1e38  # any layer's; of an embedding, row 0 is never read
    return save(tensors)


def with_record(**edited: object) -> Callable[[bytes], bytes]:
    return lambda content: json.dumps({**json.loads(content), **edited}).encode()


@pytest.mark.parametrize(
    ("name", "file", "change", "words"),
    [
        (
            "marian",
            "source.spm",
            lambda content: content.replace(b"\xe2\x96\x81", b"\xff\x96\x81", 1),
            "is not a Sentence",
        ),
        ("tokenizer", "source.spm", not_utf8, "is not a SentencePiece model"),
        ("exported", "model.bin", lambda content: bytes(len(content)), "CTranslate2 cannot load it"),
        ("exported", "config.json", lambda content: content.replace(b"true", b"1"), "has other settings than tolka"),
        ("int8", "model.safetensors", with_a_large_scale, "scores are not finite"),
        ("interrupted translation", ".out.partial.json", with_record(state={"lines": "x"}), "it was changed"),
        ("interrupted translation", ".out.partial.json", with_record(state={"lines": 1, "tally": {"x": 1}}), "changed"),
        ("interrupted translation", ".out.partial.json", with_record(state={"lines": 1, "tally": 3}), "it was changed"),
        ("interrupted translation", ".out.partial.json", with_record(bytes=-1), "it was changed); remove it"),
        ("interrupted translation", ".out.partial.json", lambda content: b"[]", "is damaged"),
    ],
)
def test_what_gave_tracebacks(
    tmp_path: Path, name: str, file: str, change: Callable[[bytes], bytes], words: str
) -> None:
    folder = tmp_path / "folder"
    READERS[name].make(folder)
    (folder / file).write_bytes(change((folder / file).read_bytes()))
    vouch(folder, folder / file)
    assert words in complaint(partial(READERS[name].read, folder))
