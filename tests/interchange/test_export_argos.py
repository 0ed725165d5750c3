"""Packages of Argos Translate: what is in them, what is refused, and the program itself where it is installed."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rows import each_row

pytest.importorskip("ctranslate2")

from marian_folder import mixed_lines, write_by_hand
from random_model import TEXTS, write_model
from random_page_model import write_random_model
from safetensors.torch import load_file, save_file

import tolka.interchange.export_argos as argos
import write_argos_splitter as splitter
from conftest import Command
from tolka.errors import CheckpointError, ConfigError
from tolka.formats.ctranslate2.folder import write_folder
from tolka.formats.ctranslate2.plain_model import read_plain_model
from tolka.interchange.export_argos import export_argos
from tolka.interchange.huggingface import import_huggingface
from tolka.model_directory.file_names import WEIGHTS
from tolka.model_directory.read import load_model
from tolka.model_directory.verify import MANIFEST, TrainingSources, write_manifest
from tolka.models.rnn import RnnConfig
from tolka.models.transformer.config import TransformerConfig
from tolka.search.options import GreedyConfig
from tolka.text.direction import Direction
from tolka.text.languages import english_name
from tolka.tokenizer.sentencepiece_model import processor_of
from tolka.tokenizer.special_tokens import EOS
from tolka.translation.opening import open_model

CONFIG = TransformerConfig(d_model=32, heads=4, layers=1, share_embeddings="none", output_bias=True)
BYTES = slice(4, 260)  # ids of the subwords that are bytes
PROGRAM = shutil.which("argos-translate")


@pytest.fixture(autouse=True)
def no_program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "installed" not in request.fixturenames:
        monkeypatch.setattr(argos, "_PROGRAM", "argos-translate that is nowhere")


@pytest.fixture
def installed() -> str:
    """The program argos-translate."""
    if not PROGRAM:
        pytest.skip("argos-translate is not on PATH")
    return PROGRAM


def without_bytes(folder: Path) -> Path:
    """Change a model so that its translations end, and are text."""
    tensors = load_file(folder / WEIGHTS)
    for rows in (BYTES, slice(EOS)):  # and <pad> and <s>
        tensors["output_bias"][rows] -= 50.0
    tensors["output_bias"][EOS] += 2.0
    save_file(tensors, folder / WEIGHTS)
    (folder / MANIFEST).unlink()
    write_manifest(folder, TrainingSources(40, 0.0))
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return without_bytes(write_model(tmp_path_factory.mktemp("made") / "model", CONFIG))


def unpacked(package: Path, out: Path) -> Path:
    """The folder of a package."""
    with zipfile.ZipFile(package) as opened:
        opened.extractall(out)
    (folder,) = out.iterdir()
    return folder


def test_what_is_in_a_package(made: Path, tmp_path: Path) -> None:
    said = list[str]()
    export_argos(made, tmp_path / "x.argosmodel", lines=TEXTS, say=said.append)
    folder = unpacked(tmp_path / "x.argosmodel", tmp_path / "packages")
    assert folder.name == "xa_xb"
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    model = ["model/config.json", "model/model.bin", "model/shared_vocabulary.json"]
    assert files == ["README.md", "metadata.json", "minisbd/splitter.onnx", *model, "sentencepiece.model"]
    facts = json.loads((folder / "metadata.json").read_text())
    assert (facts["from_code"], facts["to_code"], facts["target_prefix"]) == ("xa", "xb", "")
    assert [facts["from_name"], *map(english_name, ("ko", "el", "gem"))] == ["xa", "Korean", "Greek", "gem"]
    card = (folder / "README.md").read_text()
    assert "Argos Translate, in float32" in card
    assert "mt-translate THIS_FOLDER" not in card
    assert card.count("## Parity") == 1
    assert "what Argos Translate computes and CTranslate2" in card
    assert any("argos-translate that is nowhere is not on PATH" in line for line in said)


def test_what_one_model_decodes_of_two_vocabularies(tmp_path: Path) -> None:
    """The target's subwords, which are in capitals, are unknown to the source's SentencePiece model."""
    config = replace(CONFIG, share_embeddings="target_output")
    made = without_bytes(write_model(tmp_path / "model", config, shared=False))
    export_argos(made, tmp_path / "x", lines=TEXTS)
    folder = unpacked(tmp_path / "x", tmp_path / "packages")
    assert sorted(path.name for path in (folder / "model").glob("*vocabulary.json")) == [
        "source_vocabulary.json",
        "target_vocabulary.json",
    ]
    tokenizer = load_model(made).tokenizer
    text = "LANTERN FERRY ."
    pieces = tokenizer.target_pieces(tokenizer.encode_target([text])[0])
    processor = processor_of((folder / "sentencepiece.model").read_bytes())
    assert "▁LANTERN" in pieces
    assert processor.decode_pieces(pieces).replace("▁", " ").strip() == text


def test_a_damaged_package_is_refused(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a weight that changed between the model and what Argos reads."""
    write, other = argos._write_package, tmp_path / "other"
    other.mkdir()
    write_folder(read_plain_model(write_model(tmp_path / "model", CONFIG)), other)

    def damage(saved: Any, exported: Path, folder: Path, direction: Direction) -> None:
        write(saved, exported, folder, direction)
        shutil.copy(other / "model.bin", folder / "model")

    out = tmp_path / "out" / "x"
    out.parent.mkdir()
    monkeypatch.setattr(argos, "_write_package", damage)
    with pytest.raises(CheckpointError, match="what Argos Translate computes does not translate like CTranslate2"):
        export_argos(made, out, lines=TEXTS)
    assert list(out.parent.iterdir()) == []


def test_tags_of_languages(tmp_path: Path) -> None:
    """One before the source, and one at the beginning of the target; a model of two directions has to name one."""
    xa_xb, made = Direction("xa", "xb"), tmp_path / "both"
    write_random_model(made, 30, (xa_xb, xa_xb.swapped))  # tokenizer.tags=both
    assert load_model(made).tokenizer.tag_form == "both"
    with pytest.raises(ConfigError, match=r"name it, as in source=xa target=xb"):
        export_argos(made, tmp_path / "x")
    export_argos(made, tmp_path / "x", source="xb", target="xa")
    folder = unpacked(tmp_path / "x", tmp_path / "packages")
    settings = json.loads((folder / "model" / "config.json").read_text())
    assert (settings["add_source_bos"], settings["bos_token"]) == (True, "__xb__")
    assert json.loads((folder / "metadata.json").read_text())["target_prefix"] == "__xa__"
    assert processor_of((folder / "sentencepiece.model").read_bytes()).decode_pieces(["__xa__"]) == ""


@pytest.mark.slow
def test_tags_that_are_typed(tmp_path: Path) -> None:
    write_by_hand(tmp_path / "marian", tags=True)
    import_huggingface(tmp_path / "marian", tmp_path / "in", Direction("en", "gem"), mixed_lines(3), print)
    with pytest.raises(ConfigError, match=r"has one target language: name it with target=CODE; known: deu, fra"):
        export_argos(tmp_path / "in", tmp_path / "x")
    export_argos(tmp_path / "in", tmp_path / "x", lines=mixed_lines(9), target="deu")
    folder = unpacked(tmp_path / "x", tmp_path / "packages")
    assert folder.name == "en_de"
    assert json.loads((folder / "model" / "config.json").read_text())["bos_token"] == ">>deu<<"


@each_row(
    ("words", "said"),
    [
        (["source=../a"], "source ('../a') is not a language code"),
        (
            ["corpus.source=en"],
            "corpus.source=en: mt-train export takes no settings but plugins",
        ),
        (["--dtype", "int4"], "--dtype (int4) is unknown to CTranslate2's format"),
        (["other"], "other: --to argos takes one model"),
    ],
)
def test_what_is_refused(command: Command, made: Path, tmp_path: Path, words: list[str], said: str) -> None:
    outcome = command("mt-train", "export", made, "--to", "argos", *words, "-o", tmp_path / "x")
    assert (outcome.code, said in outcome.error) == (2, True), outcome.error
    assert list(tmp_path.iterdir()) == []


def test_a_recurrent_model_is_refused_with_what_to_type(command: Command, tmp_path: Path) -> None:
    assert isinstance(write_random_model(tmp_path / "model", 0), RnnConfig)
    outcome = command("mt-train", "export", tmp_path / "model", "--to", "argos", "-o", tmp_path / "x")
    assert f"mt-train recipe=distillation teacher={tmp_path / 'model'} model.leaves_to=ctranslate2" in outcome.error
    assert not (tmp_path / "x").exists()


SENTENCES = [
    ("en", ["Mr. Smith came at 3.50 p.m. on time.", 'He said "No!"', "Then (too late.)", "We left."]),
    ("en", ["J. S. Bach wrote it in 1740.", "2000 people heard it… and slept.", "Really?!"]),
    ("de", ["Am 3. Oktober kam Dr. Maier, z. B. mit Nr. 55.", "Er blieb bzw. ging."]),
    ("ko", ["안녕하세요.", "2010년에 시작했다!", "끝."]),
]


def lexicon(language: str) -> list[str]:
    content = argos._splitter(language)
    listed = re.search(rb"\[[^]]*\]", content[content.index(b"lexicon") :])
    assert listed
    return json.loads(listed[0])  # type: ignore[no-any-return]


def test_where_a_sentence_ends() -> None:
    """The rules of the splitter, computed here without its file: the ends of each sentence and no others."""
    ends, no_ends = splitter.rules()
    kinds = {character: kind for kind, each in splitter.CHARACTERS.items() for character in each}
    for language, parts in SENTENCES:
        text, words = " ".join(parts), lexicon(language)

        def channels(place: int, text: str = text, words: list[str] = words) -> set[int]:
            if not 0 <= place < len(text):
                return set()
            found = {kinds.get(text[place], 1)} | ({splitter.CAPITAL} if text[place].isupper() else set())
            found |= {splitter.FIRST} if place == 0 else set()
            lengths = range(1, splitter.LONGEST + 1)
            return found | {
                splitter.WORDS + n - 1 for n in lengths if text[max(place - n, 0) : place + 1].lower() in words
            }

        def holds(rule: Any, place: int) -> bool:
            needed, forbidden = rule
            has = [bool(channels(place + shift) & {*kinds}) for shift, kinds in needed]
            return all(has) and not any(channels(place + shift) & {*kinds} for shift, kinds in forbidden)

        found = [
            n for n in range(len(text)) if any(holds(r, n) for r in ends) and not any(holds(r, n) for r in no_ends)
        ]
        expected = np.cumsum([len(part) + 1 for part in parts]) - 2
        assert found == [*map(int, expected[:-1])], (language, [text[: n + 1][-9:] for n in found])


def test_the_file_of_the_splitter_is_that_of_its_script() -> None:
    assert splitter.OUT.read_bytes() == splitter.model()
    assert b'"mr."' in argos._splitter("en")
    assert len(argos._splitter("en")) == len(splitter.model())


def test_what_the_program_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Argos leaves out line feeds at the beginning, for translations that are empty."""
    program = tmp_path / "argos"
    monkeypatch.setattr(argos, "_PROGRAM", str(program))
    for script, expected in (("cat > /dev/null; echo a; echo b_c", ["", "a", "b_c"]), ("exit 3", "exit code 3")):
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        side = argos.ArgosSide(tmp_path / "packages" / "xa_xb", ("xa", "xb"))
        if isinstance(expected, list):
            assert side.translate(["x", "y", "z"]) == expected
            continue
        with pytest.raises(CheckpointError, match=f"argos cannot translate with the package: {expected}"):
            side.translate(["x"])


@pytest.mark.slow
def test_the_program_itself(installed: str, made: Path, tmp_path: Path) -> None:
    """Installed and used in a home of its own, whose proxies lead nowhere."""
    said = list[str]()
    export_argos(made, tmp_path / "x.argosmodel", lines=TEXTS, say=said.append)
    assert any("Argos Translate and CTranslate2" in line for line in said)
    unpacked(tmp_path / "x.argosmodel", tmp_path / "packages")
    home = {"HOME": str(tmp_path / "home"), "ARGOS_PACKAGES_DIR": str(tmp_path / "packages"), "ARGOS_BEAM_SIZE": "1"}
    nowhere = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    done = subprocess.run(
        [installed, "--from-lang", "xa", "--to-lang", "xb", "\n".join(TEXTS)],
        env={**{key: each for key, each in os.environ.items() if not key.startswith("XDG_")}, **home, **nowhere},
        capture_output=True,
        text=True,
    )
    expected = open_model(made, GreedyConfig(max_length_factor=0.0, max_length_extra=255))(TEXTS)
    assert done.stdout.splitlines() == [text.replace("_", " ").strip() for text in expected], done.stderr


@pytest.mark.slow
def test_the_splitter_in_the_program(installed: str, tmp_path: Path) -> None:
    for language, parts in SENTENCES:
        (tmp_path / "x.onnx").write_bytes(argos._splitter(language))
        code = "import json, minisbd, sys; print(json.dumps(minisbd.SBDetect(sys.argv[1]).sentences(sys.argv[2])))"
        python = Path(installed).with_name("python")
        done = subprocess.run(
            [python if python.exists() else sys.executable, "-c", code, tmp_path / "x.onnx", " ".join(parts)],
            capture_output=True,
            text=True,
        )
        assert json.loads(done.stdout) == parts, done.stderr
