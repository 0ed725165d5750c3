"""A copy of a model directory for everybody: without resume state, and without the folders of the machine it is from.

A path becomes its last name: /home/ann/texts/train becomes train. config.yaml has them in its settings, scores.json in
its facts and the names of test sets.
"""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tolka.errors import CheckpointError
from tolka.model_directory.card import REPOSITORY, model_card
from tolka.model_directory.file_names import CARD, CONFIG, SCORES, STATE_FACTS
from tolka.model_directory.manifest import read_json, verified_manifest
from tolka.model_directory.settings import find_model_folder
from tolka.model_directory.write import finish

_STATE = Path(STATE_FACTS).parts[0]
_MADE_OF = "made of"  # the fact of a combined model
_WRITTEN = {CONFIG, SCORES, CARD}
_PATHS = {
    *("dir", "init_from", "prepared", "root", "path", "train", "valid", "test", "root_train", "root_valid"),
    *("root_test", "model", "glossary", "banned"),
}
"""Settings that name files. Whether a text with a slash in it is a path cannot be seen elsewhere, as in km/h."""
_PATH = r"(?:~[\w.-]*|[A-Za-z]:)?[/\\]+(?:[^/\\\s,;'\"]+[/\\]+)*(?P<last>[^/\\\s,;'\"]+)[/\\]*"
_ABSOLUTE = re.compile(rf"(?<![^\s'\"(,;=]){_PATH}")  # in any text


@dataclass
class PublicCopy:
    """What differs from the model directory. shortened: the settings and facts whose paths were; left_out: files."""

    shortened: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def without_folders(self, value: Any, place: str) -> Any:
        """Return the value with its paths shortened; add the places where there were any to `shortened`."""
        if isinstance(value, Mapping):
            names = [self._shortened(key, f"{place}.{key}") if isinstance(key, str) else key for key in value]
            if len(set(names)) < len(names):  # test sets of one name in several folders
                names = [f"{name} ({number})" for number, name in enumerate(names, 1)]
            pairs = zip(names, value.items(), strict=True)
            return {name: self.without_folders(each, f"{place}.{key}") for name, (key, each) in pairs}
        if isinstance(value, list):
            return [self.without_folders(each, place) for each in value]
        return self._shortened(value, place) if isinstance(value, str) else value

    def _shortened(self, text: str, place: str) -> str:
        key = place.rpartition(".")[2]
        if key in _PATHS and not _is_of_the_hub(key, text):
            short = re.split(r"[/\\]", text.rstrip("/\\"))[-1]
        elif key == _MADE_OF:
            short = re.sub(r"[^\s,]*[/\\]([^\s,/\\]+)[/\\]*", r"\1", text)
        else:
            short = _ABSOLUTE.sub(r"\g<last>", text)
        if short != text and place.lstrip(".") not in self.shortened:
            self.shortened.append(place.lstrip("."))
        return short


def write_public_copy(folder: Path, out: Path, repository: str, licence: str = "") -> PublicCopy:
    """Verify a model directory, or the `best/` of a run, and write its copy into the empty folder `out`.

    repository: OWNER/NAME, for the card. licence: in place of run.licence, if given.
    """
    folder = find_model_folder(folder)
    manifest = verified_manifest(folder)
    config, scores, made = _read_config(folder / CONFIG), read_json(folder / SCORES), PublicCopy()
    for name in sorted(manifest.files):
        if Path(name).parts[0] == _STATE:
            made.left_out.append(name)
        elif name not in _WRITTEN:
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            _link(folder / name, out / name)
    config = made.without_folders(config, "")
    if licence:
        config["run"]["licence"] = licence
    scores = made.without_folders(scores, "scores")
    (out / CONFIG).write_text(yaml.safe_dump(config, allow_unicode=True, sort_keys=False), encoding="utf-8")
    card = model_card(config, scores.get("facts", {}), scores, repository)
    finish(out, scores, card, manifest.sources, manifest.int8)
    return made


def _is_of_the_hub(key: str, text: str) -> bool:
    return key == "path" and bool(REPOSITORY.fullmatch(text)) and not Path(text).exists()


def _read_config(path: Path) -> dict[str, Any]:
    """Read config.yaml as it is: a plugin's model need not be importable to be copied."""
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read ({' '.join(str(error).split())})") from None
    if not isinstance(config, dict) or not all(isinstance(config.get(group), dict) for group in ("run", "corpus")):
        raise CheckpointError(f"{path} does not describe a training (run, corpus)")
    return config


def _link(source: Path, target: Path) -> None:
    """Let the file stand in the other folder, too; copy it on another file system."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)
