"""Export models as one HTML file that translates, and compare it with tolka, through Node, before it appears."""

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np

from tolka.engines.options import resolved_split
from tolka.errors import CheckpointError, ConfigError
from tolka.formats.html.model import (
    DTYPES,
    about_characters,
    about_splitter,
    about_tokenizer,
    check_expressible,
    pack_weights,
)
from tolka.formats.html.page import join_page
from tolka.interchange.export_ctranslate2 import THRESHOLDS
from tolka.interchange.parity import FP32, LIMIT, Logits, Pairs, Threshold, TolkaSide, compare, sample_of
from tolka.model_directory.card import facts_of, model_card
from tolka.model_directory.file_names import WEIGHTS
from tolka.model_directory.read import SavedModel, load_model
from tolka.model_directory.settings import find_model_folder, read_settings
from tolka.model_directory.weights import read_finite
from tolka.models.options import resolved_options
from tolka.search.options import BeamConfig, GreedyConfig, SearchConfig
from tolka.system.atomic import whole_file
from tolka.system.progress import Say, silent
from tolka.text.direction import Direction, is_named
from tolka.tokenizer.special_tokens import EOS

_OLDEST_NODE = 18  # a version that has all that the page needs of a browser
_LARGEST = 60_000_000  # bytes of weights: a page of more takes a phone's memory
_FEW_LINES = 8  # that are compared in each of several directions, if there are so many
_THRESHOLDS = {
    "fp32": FP32,
    "int8": replace(THRESHOLDS["int8"], advice="; compare lines of your own (--sample FILE), or take --dtype fp32"),
}


class NodeSide:
    """The runtime of an HTML file, run by Node."""

    def __init__(self, node: str, page: Path, number: int, saved: SavedModel, direction: Direction) -> None:
        """number: of the model in the page."""
        self.name, self.direction = "the page", direction
        self._node, self._page, self._tokenizer = node, page, saved.tokenizer
        self._request = {"model": number, "direction": direction._asdict()}
        self._tags = saved.tokenizer.tags(direction)

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Return the greedy translation of each line, as a whole."""
        search = GreedyConfig(max_length_factor=0.0, max_length_extra=LIMIT - 1)
        return [result["text"] for result in self.results(lines, search=settings_of(search))]

    def results(self, lines: Sequence[str], **options: Any) -> list[dict[str, Any]]:
        """Return what `Translator.steps` of model.js returns with these options for each line."""
        results: list[dict[str, Any]] = json.loads(self.run({"lines": list(lines), "options": options}))
        return results

    def logits(self, pairs: Pairs) -> list[Logits] | None:
        """Return the logits of forced decoding; see `Side`."""
        targets = self._tokenizer.encode_target([target for _, target in pairs])
        sources = [source for source, _ in pairs]
        content = self.run({"forced": list(zip(sources, targets, strict=True))})
        logits = np.frombuffer(content, dtype="<f4").reshape(-1, self._tokenizer.target_size)[:, EOS:]
        ends = np.cumsum([len(self._tags.target) + len(row) + 1 for row in targets])[:-1]
        return list(np.split(logits, ends))

    def run(self, request: Mapping[str, Any]) -> bytes:
        """Return what translate.mjs writes for a request."""
        with as_file(files("tolka").joinpath("page", "translate.mjs")) as script:
            content = json.dumps({**self._request, **request}).encode()
            result = subprocess.run([self._node, str(script), str(self._page)], input=content, capture_output=True)
        if result.returncode:
            reason = result.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {result.returncode}"]
            error = next((line for line in reason if "Error" in line), reason[-1])
            raise CheckpointError(f"the page's runtime fails in {self._node}: {error}")
        return result.stdout


def export_html(
    folders: Sequence[Path], out: Path, dtype: str = "", lines: Sequence[str] = (), say: Say = silent
) -> None:
    """Write models as one HTML file, all or nothing, after a comparison of what it and tolka translate.

    dtype: of `DTYPES`; "" is int8. lines: the sample to compare on; [] = made-up lines. Without Node on PATH
    nothing is compared. ConfigError for what a page cannot compute, or a page too large; CheckpointError, with the
    first line that differs, if it translates otherwise.
    """
    dtype = dtype or "int8"
    if dtype not in DTYPES:
        raise ConfigError(f"--dtype ({dtype}) is unknown to a page. Known: {', '.join(DTYPES)}")
    program = _node_program()
    for folder in folders:
        check_expressible(read_settings(find_model_folder(folder))[1], str(folder))
    models = [load_model(folder, or_int8=dtype == "int8") for folder in folders]
    packed = [pack_weights(read_finite(saved.folder / WEIGHTS), dtype) for saved in models]
    weights = [content for _, content in packed]
    if (size := sum(map(len, weights))) > _LARGEST:
        smaller = "; --dtype int8 takes a quarter" if dtype == "fp32" else ""
        raise ConfigError(
            f"the weights have {size / 1e6:.0f} MB in {dtype}, and a page has at most {_LARGEST / 1e6:.0f}{smaller}; "
            "larger models leave by --to ctranslate2, marian or huggingface"
        )
    abouts = [
        {**_about(saved, dtype), "tensors": tensors, "checksum": hashlib.sha256(content).hexdigest()}
        for saved, (tensors, content) in zip(models, packed, strict=True)
    ]
    title = f"Translate {', '.join(dict.fromkeys(str(each) for saved in models for each in _directions(saved)))}"
    with whole_file(out) as stream:
        stream.write(join_page(title, abouts, weights).encode())
        stream.flush()
        for number, (saved, about) in enumerate(zip(models, abouts, strict=True)):
            if not program:
                say(f"note: Node {_OLDEST_NODE} is not found: nothing was compared; PATH must name its folder")
                break
            sides = [NodeSide(program, Path(stream.name), number, saved, each) for each in _directions(saved)]
            for side in sides:
                side.name = f"model {number + 1} of the page ({about['title']})" if len(models) > 1 else side.name
                side.name += f" from {side.direction}" if len(sides) > 1 else ""
            about["card"] += f"\n{_compare(saved, sides, _THRESHOLDS[dtype], lines, say)}"
        stream.seek(0)
        stream.truncate()
        stream.write(join_page(title, abouts, weights).encode())


def _compare(saved: SavedModel, sides: Sequence[NodeSide], threshold: Threshold, lines: Sequence[str], say: Say) -> str:
    """Compare a model in each of its directions, on a share of the lines; return the section of its card."""
    ours, sample, sections = TolkaSide(saved), sample_of(saved, lines, say), list[str]()
    step = max(1, min(len(sides), len(sample) // _FEW_LINES))
    for side in sides:
        ours.direction = side.direction
        sections.append(compare(ours, side, sample[::step]).check(threshold, say))
    return "\n".join([sections[0], *(each.split("\n", 2)[2] for each in sections[1:])])  # under one heading


def _node_program() -> str:
    """Return the path of Node; "" where PATH has none that is new enough."""
    path = shutil.which("node") or ""
    version = subprocess.run([path, "--version"], capture_output=True, text=True).stdout if path else ""
    found = re.match(r"v(\d+)\.", version)
    return path if found and int(found[1]) >= _OLDEST_NODE else ""


def _about(saved: SavedModel, dtype: str) -> dict[str, Any]:
    """Return what the page and its runtime need of a model, beside its weights."""
    facts, directions = saved.facts, _directions(saved)
    split = resolved_split("auto", facts.sources.several_sentences)
    on_card = {**facts_of(saved.folder, saved.scores), "exported for": f"a page of HTML, in {dtype}"}
    return {
        "title": saved.config["run"]["name"] or saved.folder.name,
        "directions": [each._asdict() for each in directions],
        "verdict": facts.verdict["sentences"][0] if facts.verdict else "",
        "card": model_card(saved.config, on_card, saved.scores, has_config=False, marks_lines=False, is_folder=False),
        "search": settings_of(BeamConfig()),  # as mt-translate searches unless another search is typed
        "model": asdict(resolved_options(saved.config["model"], saved.tokenizer.shared)),
        "tokenizer": about_tokenizer(saved.tokenizer, directions),
        "characters": about_characters(facts.characters, directions),
        "splitter": about_splitter(directions, split, facts.sources.longest),
    }


def _directions(saved: SavedModel) -> Sequence[Direction]:
    """Return the directions that a page offers; ConfigError for a model of many languages that names none."""
    directions = [each for each in saved.facts.directions if all(map(is_named, each))]
    if saved.tokenizer.languages and not directions:
        raise ConfigError(
            f"{saved.folder} has {len(saved.tokenizer.languages)} languages, and names no direction for a page: import "
            "it again with corpus.source=CODE corpus.target=CODE"
        )
    return directions or saved.facts.directions[:1]


def settings_of(search: SearchConfig) -> dict[str, Any]:
    """Return the settings of a search that search.js reads."""
    names = ("beam_size", "length_penalty", "max_length_factor", "max_length_extra")
    return {name: value for name, value in asdict(search).items() if name in names}
