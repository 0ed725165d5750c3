"""Export a Transformer as a package of Argos Translate, and compare what that translates with what tolka does.

A package is a zip with one folder: a model of CTranslate2, a SentencePiece model, facts, and a splitter of sentences.
"""

import json
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import regex

from tolka.errors import CheckpointError, ConfigError
from tolka.interchange.export_ctranslate2 import CTranslate2Side, export_checked
from tolka.interchange.parity import FP16, FP32, Side, compare, sample_of
from tolka.model_directory.card import facts_of, model_card
from tolka.model_directory.file_names import CARD
from tolka.model_directory.read import SavedModel, load_model
from tolka.model_directory.settings import character_form
from tolka.model_directory.verify import read_json
from tolka.options.suggestions import some_of
from tolka.system.atomic import whole_file
from tolka.system.progress import Say, silent
from tolka.text.abbreviations import spelt_abbreviations
from tolka.text.direction import Direction
from tolka.text.languages import english_name
from tolka.text.scripts import check_code, plain_code
from tolka.tokenizer.character_rules import with_rules
from tolka.tokenizer.sentencepiece_model import model_proto, processor_of

_PROGRAM = "argos-translate"
_VERSION = "100.0"  # above all of Argos's index, whose updates would take the place of the package
LEXICON_SIZE = 8192  # bytes of the abbreviations in the splitter, where it has blanks
_LIMIT = 256  # tokens of a translation: CTranslate2's default, which Argos leaves
_SENTENCES = regex.compile(r"[^\p{Sentence_Terminal}…\r]*+[\p{Sentence_Terminal}…]*")  # which no splitter splits


class _BlankingSide(CTranslate2Side):
    """A folder of CTranslate2; its translations have blanks in place of `_`, as Argos's have."""

    changed = 0  # translations

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Return the greedy translation of each line."""
        found = super().translate(lines)
        self.changed = sum("_" in text for text in found)
        return [text.replace("_", " ") for text in found]


class ArgosSide(Side):
    """A package in argos-translate, on the CPU; if that is not on PATH, in the libraries that it calls."""

    def __init__(self, package: Path, codes: Sequence[str]) -> None:
        """package: its folder, with no others beside it. codes: those of its languages."""
        self._package, self._codes, self.program = package, codes, shutil.which(_PROGRAM)
        self.name = "Argos Translate" if self.program else "what Argos Translate computes"

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Return the greedy translation of each line, which is one sentence."""
        found = self._by_program(lines) if self.program else self._by_libraries(lines)
        return [text.replace("\N{REPLACEMENT CHARACTER}", "") for text in found]  # as tolka: bytes of no character

    def _by_program(self, lines: Sequence[str]) -> list[str]:
        settings = dict.fromkeys(("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), f"{self._package.parent}-home")
        settings |= {"ARGOS_PACKAGES_DIR": str(self._package.parent), "ARGOS_DEVICE_TYPE": "cpu", "PYTHONUTF8": "1"}
        done = subprocess.run(
            [str(self.program), "--from-lang", self._codes[0], "--to-lang", self._codes[1]],
            input="\n".join(lines).encode(),
            capture_output=True,
            env={**os.environ, **settings, "ARGOS_BEAM_SIZE": "1"},
        )
        found = done.stdout.decode().removesuffix("\n").split("\n")
        if done.returncode or len(found) > len(lines):
            said = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
            raise CheckpointError(f"{self.program} cannot translate with the package: {said[-1]}")
        return [""] * (len(lines) - len(found)) + found  # it leaves out line feeds at the beginning

    def _by_libraries(self, lines: Sequence[str]) -> list[str]:
        """As `apply_packaged_translation` of argostranslate/translate.py, and `decode` of its tokenizer.py."""
        import ctranslate2

        processor = processor_of((self._package / "sentencepiece.model").read_bytes())
        prefix = read_json(self._package / "metadata.json")["target_prefix"]
        results: list[Any] = ctranslate2.Translator(str(self._package / "model")).translate_batch(
            [processor.encode(line, out_type=str) for line in lines],
            target_prefix=[[prefix]] * len(lines) if prefix else None,
            replace_unknowns=True,
            max_batch_size=32,
            batch_type="tokens",
            beam_size=1,
        )
        texts = [processor.decode_pieces(result.hypotheses[0]) for result in results]
        return [text.replace("▁", " ").replace("_", " ") for text in texts]


def export_argos(
    model: Path,
    out: Path,
    dtype: str = "",
    lines: Sequence[str] = (),
    say: Say = silent,
    source: str = "",
    target: str = "",
) -> None:
    """Write a model directory as a package of Argos Translate, all or nothing.

    dtype, lines: as for `export_checked`, which compares the model for CTranslate2 with tolka; Argos is compared with
    that. source, target: languages; "" = the model's, which one of several directions has to name. ConfigError for what
    cannot be expressed; CheckpointError, with the first line that differs, if a side translates otherwise.
    """
    saved = load_model(model)
    direction = saved.facts.direction(source, target)
    tags = saved.tokenizer.tags(direction)
    if saved.tokenizer.typed_tags and not tags.source:
        known = some_of(sorted(saved.tokenizer.typed_tags))
        raise ConfigError(f"a package of Argos has one target language: name it with target=CODE; known: {known}")
    codes = list(map(plain_code, direction))
    for side, code in zip(direction._fields, codes, strict=True):  # of which the folder's name is made
        check_code(side, code)
    exact = dtype in ("", "float32")
    with whole_file(out) as stream, TemporaryDirectory(prefix="tolka-argos-") as work:
        exported, folder = Path(work) / "ctranslate2", Path(work) / "packages" / "_".join(codes)
        parity = export_checked(model, exported, dtype, lines, say)
        _write_package(saved, exported, folder, direction)
        ours, argos = _BlankingSide(exported, direction, _LIMIT - len(tags.target)), ArgosSide(folder, codes)
        parts = [each.strip() for line in sample_of(saved, lines) for each in _SENTENCES.findall(line)]
        section = compare(ours, argos, [*filter(None, parts)]).check(FP32 if exact else FP16, say)
        if not argos.program:
            say(f"note: {_PROGRAM} is not on PATH: compared was what it has its libraries compute, and not itself")
        if ours.changed:
            say(f"note: Argos writes a blank for each _, which {ours.changed} of these translations have")
        facts = {**facts_of(saved.folder, saved.scores), "exported for": f"Argos Translate, in {dtype or 'float32'}"}
        card = model_card(saved.config, facts, saved.scores, has_config=False, marks_lines=False, is_folder=False)
        sections = [card, parity.as_markdown(), section.split("\n", 2)[2]]  # under one heading
        (folder / CARD).write_text("\n".join(sections), encoding="utf-8")
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as package:
            for path in sorted(folder.rglob("*")):
                package.write(path, path.relative_to(folder.parent))


def _write_package(saved: SavedModel, exported: Path, folder: Path, direction: Direction) -> None:
    """Write all of a package but its card. exported: the model for CTranslate2."""
    tokenizer, tags = saved.tokenizer, saved.tokenizer.tags(direction)
    before, prefix = tokenizer.source_pieces(tags.source), tokenizer.target_pieces(tags.target)
    (folder / "model").mkdir(parents=True)
    for path in [exported / "model.bin", *exported.glob("*vocabulary.json")]:
        shutil.copy(path, folder / "model")
    # Argos puts no tag before a source, but CTranslate2 can: as a token that begins each.
    settings = read_json(exported / "config.json")
    settings |= {"add_source_bos": True, "bos_token": before[0]} if before else {}
    (folder / "model" / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    # It decodes translations, too: subwords that it lacks as they are spelt, and control symbols to nothing.
    form = character_form(saved.config).of(direction)
    proto = model_proto(with_rules(tokenizer.models[0], form.source, direction.source))
    for tag in {*prefix} - {each.piece for each in proto.pieces}:
        proto.pieces.add(piece=tag, type=proto.SentencePiece.CONTROL)
    (folder / "sentencepiece.model").write_bytes(proto.SerializeToString())
    source, target = map(plain_code, direction)
    facts = {"from_code": source, "from_name": english_name(source), "to_code": target, "to_name": english_name(target)}
    facts |= {"package_version": _VERSION, "argos_version": "1.0", "target_prefix": "".join(prefix)}
    (folder / "metadata.json").write_text(json.dumps(facts), encoding="utf-8")
    (folder / "minisbd").mkdir()
    (folder / "minisbd" / "splitter.onnx").write_bytes(_splitter(source))


def _splitter(language: str) -> bytes:
    """Return the splitter that scripts/write_argos_splitter.py has written, with the abbreviations of a language."""
    spelt = spelt_abbreviations(language)
    spelt |= {each.replace(".", ". ").strip() for each in spelt}
    ends = {word[: match.end()] for word in spelt for match in re.finditer(r"\.", word)}  # in "z. B." both
    listed = ",".join(map(json.dumps, sorted(ends))).encode()
    assert len(listed) <= LEXICON_SIZE, "longer than its place in the file"
    content = Path(__file__).with_name("argos_splitter.onnx").read_bytes()
    return content.replace(b" " * LEXICON_SIZE, listed.ljust(LEXICON_SIZE))
