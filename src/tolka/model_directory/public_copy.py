"""A copy of a model directory for everybody: without resume state and without paths of the machine it is from.

A path becomes its last name: /home/ann/texts/train becomes train. config.yaml has paths in its settings, scores.json in
the names of test sets, a SentencePiece model in its training options.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import yaml

from tolka.errors import CheckpointError
from tolka.metrics.command import without_folders
from tolka.model_directory.card import DATA_SET, REPOSITORY, facts_of, model_card, parity_section
from tolka.model_directory.file_names import CARD, CONFIG, SCORES, STATE_FACTS
from tolka.model_directory.settings import find_model_folder, read_yaml
from tolka.model_directory.verify import as_written, read_json, verified_manifest
from tolka.model_directory.write import finish
from tolka.system.atomic import link_or_copy
from tolka.tokenizer.sentencepiece_model import model_proto

_WRITTEN = {CONFIG, SCORES, CARD}
_PATHS = {
    *("dir", "init_from", "prepared", "root", "path", "train", "valid", "test", "root_train", "root_valid"),
    *("root_test", "model", "teacher", "glossary", "banned"),
}
"""Settings that name files. Whether a text with a slash in it is a path cannot be seen elsewhere, as in km/h."""
_ON_THE_HUB = re.compile(rf"hub:{REPOSITORY.pattern}", re.ASCII)  # a model on the Hub, not a folder
_FILES_OF_TRAINING = (
    *(("trainer_spec", key) for key in ("input", "model_prefix", "seed_sentencepieces_file")),
    *((group, "normalization_rule_tsv") for group in ("normalizer_spec", "denormalizer_spec")),
)
"""Fields of a SentencePiece model that name files, which segmenting does not read."""


@dataclass
class PublicCopy:
    """Differences from the model directory.

    data_set: the training text's name on the Hub, "" for files of one's own. shortened: settings and facts with
    shortened paths, and cleared fields. left_out: files.
    """

    data_set: str = ""
    shortened: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def without_folders(self, value: Any, place: str) -> Any:
        """Return settings with their paths shortened; add the changed ones to `shortened`. place: of `value`."""
        if isinstance(value, Mapping):
            return {key: self.without_folders(each, f"{place}.{key}".lstrip(".")) for key, each in value.items()}
        if isinstance(value, list):
            return [self.without_folders(each, place) for each in value]
        # The name of a data set on the Hub, OWNER/NAME, looks like a path.
        if not isinstance(value, str) or (place == "corpus.path" and value == self.data_set):
            return value
        # Or all of the text is a path that says where it begins: /home, ~/texts, C:\\texts.
        is_path = place.rpartition(".")[2] in _PATHS or value.startswith("~")
        is_path |= PurePosixPath(value).is_absolute() or PureWindowsPath(value).is_absolute()
        short = _last_name(value) if is_path else value
        if place == "metrics.command":
            short = without_folders(value)
        if short != value and place not in self.shortened:
            self.shortened.append(place)
        return short

    def with_numbered_tests(self, scores: dict[str, Any]) -> dict[str, Any]:
        """Return scores with numbers for the names of test sets, where these have folders in them."""
        tests = scores.get("test") or {}
        # As only those have of which two end alike.
        if len({name.rpartition("-")[2] for name in tests}) == len(tests):
            return scores
        self.shortened.append("scores.test")
        return {**scores, "test": {f"test {number}": each for number, each in enumerate(tests.values(), 1)}}

    def with_public_verdict(self, scores: dict[str, Any]) -> dict[str, Any]:
        """Return scores whose verdict is its level and sentences, without the folder of what the training began as."""
        verdict = scores.get("verdict")
        if not isinstance(verdict, dict):
            return scores
        parent = str(verdict["figures"]["began_as"])
        sentences = [each.replace(parent, _last_name(parent)) if parent else each for each in verdict["sentences"]]
        return {**scores, "verdict": {"level": verdict["level"], "sentences": sentences}}

    def without_files_of_training(self, content: bytes, name: str) -> bytes:
        """Return a SentencePiece model without the names and lines of its training text; it segments as before."""
        model = model_proto(content)
        size = model.ByteSize()
        model.DiscardUnknownFields()  # as of SentencePiece's self_test_data, lines of the training text
        for group, key in _FILES_OF_TRAINING:
            if model.HasField(group):
                getattr(model, group).ClearField(key)
        if model.ByteSize() == size:
            return content
        self.shortened.append(f"{name} (files and lines of its training text)")
        return bytes(model.SerializeToString())


def write_public_copy(folder: Path, out: Path, repository: str, licence: str = "") -> PublicCopy:
    """Verify a model directory, or the `best/` of a run, and write its copy into the empty folder `out`.

    repository: OWNER/NAME, for the card. licence: in place of run.licence, if given.
    """
    folder = find_model_folder(folder)
    manifest = verified_manifest(folder)
    # Without building its options: a plugin's model need not be importable to be copied.
    config = read_yaml(folder / CONFIG)
    if not isinstance(config, dict) or not all(isinstance(config.get(group), dict) for group in ("run", "corpus")):
        raise CheckpointError(f"{folder / CONFIG} does not describe a training (run, corpus)")
    scores = read_json(folder / SCORES)
    facts = facts_of(folder, scores)
    made = PublicCopy(facts.get(DATA_SET, ""))
    for name in sorted(manifest.files):
        if Path(name).parts[0] == Path(STATE_FACTS).parts[0]:
            made.left_out.append(name)
        elif name not in _WRITTEN:
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            if name.endswith(".model"):
                (out / name).write_bytes(made.without_files_of_training((folder / name).read_bytes(), name))
            else:
                link_or_copy(folder / name, out / name)
    with as_written(str(folder / SCORES)):
        scores = made.with_public_verdict(scores)
        scores = made.with_numbered_tests({**scores, "facts": facts})
    config, scores = made.without_folders(config, ""), made.without_folders(scores, "scores")
    if licence:
        config["run"]["licence"] = licence
    (out / CONFIG).write_text(yaml.safe_dump(config, allow_unicode=True, sort_keys=False), encoding="utf-8")
    card = model_card(config, scores["facts"], scores, repository, parity=parity_section(folder))
    finish(out, scores, card, manifest.sources, manifest.int8)
    return made


def _last_name(path: str) -> str:
    """Return the last name of a path; the whole name of a model on the Hub."""
    return path if _ON_THE_HUB.fullmatch(path) else re.split(r"[/\\]", path.strip('"').rstrip("/\\"))[-1]
