"""Import a folder of Hugging Face's format as a model directory, and compare what both translate before it appears."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tolka.errors import CheckpointError, ConfigError
from tolka.formats.huggingface.family import CONFIG, GENERATION_CONFIG, LANGUAGE, TOKENIZER_CONFIG, read_foreign
from tolka.interchange.parity import FP32, LIMIT, TolkaSide, compare, direction_to_compare, sample_of
from tolka.interchange.transformers_side import (
    TransformersSide,
    checked_copy,
    reason_not_to_compare,
    uncompared_section,
)
from tolka.interchange.trim import check_languages, trim
from tolka.model_directory.card import model_card
from tolka.model_directory.file_names import EXPORTED
from tolka.model_directory.verify import MANIFEST
from tolka.model_directory.write import snapshot
from tolka.system.progress import Say
from tolka.text.direction import Direction

_NOTED = ("num_beams", "length_penalty", "no_repeat_ngram_size", "repetition_penalty", "max_length", "bad_words_ids")


def import_huggingface(
    path: Path,
    out: Path,
    direction: Direction | None,
    lines: list[str],
    say: Say,
    languages: Sequence[str] = (),
    texts: Sequence[Path] = (),
) -> None:
    """Write a folder of one of `FAMILIES` as a model directory; the parity gate compares it if `transformers` is there.

    direction: None = the folder's. lines: the sample to compare; [] = made-up lines. languages, texts: those that the
    model is trimmed to, see `trim`. ConfigError if neither names the languages, or a code is invalid.
    """
    for key, code in zip(("corpus.source", "corpus.target"), direction or (), strict=False):
        if not LANGUAGE.fullmatch(code):
            raise ConfigError(f"{key}={code!r:.60} must be the code of a language, as en: letters, digits, _, + and -")
    if (path / EXPORTED).is_file():
        raise CheckpointError(f"{path} was exported for CTranslate2: give the model that it was made from")
    if any((folder / MANIFEST).is_file() for folder in (path, path / "best")):
        raise CheckpointError(f"{path} is a model directory of tolka already: use it as it is")
    foreign = read_foreign(path)
    foreign = replace(foreign, direction=direction or foreign.direction)
    if not foreign.direction and not foreign.tokenizer.languages:
        raise ConfigError(
            f"{path / TOKENIZER_CONFIG} does not say the languages: add them, as in corpus.source=en corpus.target=de"
        )
    if direction:
        foreign.tokenizer.tags(direction)
    saved = foreign.load()
    if languages:
        check_languages(saved, languages)  # before the comparison, which may take minutes
    if reason := reason_not_to_compare(foreign.family):
        section = uncompared_section(reason, say)
    else:
        # The other side has as many positions as its folder says: translations are limited to these.
        sample, limit = sample_of(saved, lines, say), min(LIMIT, foreign.longest)
        positions = max(LIMIT, *map(len, saved.tokenizer.encode_source(sample))) + 1
        with checked_copy(foreign, positions) as copy:
            ours, vocabulary = TolkaSide(saved, limit), saved.tokenizer.vocabularies[-1]
            compared = direction_to_compare(saved)
            side = TransformersSide(copy, foreign.family, vocabulary, limit, path, compared)
        section = compare(ours, side, sample, ours.beginning).check_and_report(FP32, say)
    for name in (CONFIG, GENERATION_CONFIG):
        values = foreign.folder.json(name) if foreign.folder.has(name) else {}
        if noted := ", ".join(f"{key}={values[key]!r:.40}" for key in _NOTED if values.get(key) is not None):
            say(f"note: {name} asks for {noted}; tolka searches as search=... says")
    if languages:
        saved, trimmed = trim(saved, languages, texts, lines, say)
        section += f"\n{trimmed}"
    card = f"{model_card(saved.config, saved.scores['facts'], saved.scores)}\n{section}"
    snapshot(saved.model, saved.tokenizer, saved.config, saved.sources, saved.scores, card).write(out)
