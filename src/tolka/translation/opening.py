"""Open a model, whatever made it, with what can compute fastest: CTranslate2, or torch."""

import shlex
import tempfile
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from tolka.engines.ctranslate2_engine import CTranslate2Engine, has_gpu
from tolka.engines.ctranslate2_search import Vocabularies, unsupported_reason
from tolka.engines.gate import difference, draw_sample, here, kept_difference
from tolka.engines.options import DecodingConfig
from tolka.errors import CheckpointError, ConfigError, DataError
from tolka.formats.ctranslate2.exported import POSITIONS, Exported, ExportedFolder, read_exported, vocabularies
from tolka.formats.ctranslate2.folder import import_failure, write_folder_apart
from tolka.formats.ctranslate2.plain_model import inexpressible_reason, read_plain_model
from tolka.formats.hub import local_folder
from tolka.model_directory.facts import ModelFacts
from tolka.model_directory.file_names import EXPORTED, WEIGHTS
from tolka.model_directory.settings import Folders, digest, find_model_folder, is_foreign, listed_folders, read_settings
from tolka.model_directory.verify import MANIFEST, as_written, read_json
from tolka.search.options import BeamConfig, GreedyConfig, SamplingConfig, SearchConfig
from tolka.system import interrupts
from tolka.system.progress import Say, silent
from tolka.translation.request import Request
from tolka.translation.translator import Translator

# Of weights that are converted at each start for decoding.backend=auto: with 177 million parameters that takes as long
# as importing torch, and several times the memory.
_MOST_BYTES = 2**29


def open_model(
    models: Folders, search: SearchConfig | None = None, decoding: DecodingConfig | None = None, say: Say = silent
) -> Translator[Any]:
    """Open a model, or several as an ensemble, with the engine that decoding.backend names.

    models: a model or run directory, a folder of one of `FAMILIES` or one exported for CTranslate2, or
    `hub:OWNER/NAME`. say: receives notes. ConfigError if the engine does not support the search or the model;
    CheckpointError if a model is damaged.
    """
    search, decoding = search or BeamConfig(), decoding or DecodingConfig()
    translator = _open_translator(models, search, decoding, say)
    interrupts.check()  # an import in C, as of CTranslate2, may turn a signal into an ImportError
    # Without `say`: a callback of this process may not be picklable, and the model is loaded again without notes.
    translator.loaded_by = partial(open_model, models, search, decoding)
    return translator


def _open_translator(folders: Folders, search: SearchConfig, decoding: DecodingConfig, say: Say) -> Translator[Any]:
    """Choose the engine, and return a translator that computes with it."""
    listed = list(map(local_folder, listed_folders(folders)))
    exported = next((folder for folder in listed if (folder / EXPORTED).is_file()), None)
    if exported is not None:
        # Only CTranslate2 reads such a folder, whatever decoding.backend is.
        if reason := _unsuitable(listed, search):
            raise ConfigError(f"{exported} was exported for CTranslate2, and {reason}")
        return translator_of(read_exported(exported), search, decoding, say)
    if decoding.backend == "torch":
        return _with_torch(listed, search, decoding, say)
    if decoding.backend == "ctranslate2":
        if reason := _unsuitable(listed, search) or _unsuitable_model(listed[0]):
            raise ConfigError(f"decoding.backend=ctranslate2: {reason}; decoding.backend=auto takes torch then")
        return _convert(listed[0], search, decoding, say)
    # Of a damaged model, or a device or dtype that CTranslate2 lacks: torch names what is wrong with them, if anything.
    with suppress(CheckpointError, FileNotFoundError, ConfigError):
        if translator := _open_compared(listed, search, decoding, say):
            return translator
    return _with_torch(listed, search, decoding, say)


def _open_compared(
    folders: list[Path], search: SearchConfig, decoding: DecodingConfig, say: Say
) -> Translator[CTranslate2Engine] | None:
    """Load a model directory with CTranslate2, which must have translated a sample as torch does; None to take torch.

    With torch a seed gives the same samples whatever else is translated, and large models start faster.
    """
    folder = folders[0]
    if _unsuitable(folders, search) or _unsuitable_model(folder) or isinstance(search, SamplingConfig):
        return None
    is_large = (find_model_folder(folder) / WEIGHTS).stat().st_size > _MOST_BYTES
    if is_large or (decoding.device != "cpu" and has_gpu()):
        return None
    convert = cache(partial(_convert, folder, search, decoding, say))

    def compare() -> str:
        engine = convert().engine
        fp32 = _with_torch(folders, GreedyConfig(), replace(decoding, device="cpu", precision="fp32"), silent)
        sample = draw_sample(fp32.engine, fp32.engine, fp32.tokenizer)
        return difference(engine, fp32.tokenizer, sample, "float32")

    with as_written(str(folder / MANIFEST)):
        model = digest(folder)
    try:
        if not (reason := kept_difference(model, decoding.precision, compare)):
            translator = convert()
            translator.with_torch = cache(partial(_with_torch, folders, search, decoding, say))
            return translator
    except DataError as error:  # no space for the conversion
        reason = str(error)
    say(f"note: translating with torch, and not with CTranslate2: {reason}")
    return None


def _unsuitable(folders: list[Path], search: SearchConfig) -> str:
    """Return why CTranslate2 cannot serve the request; "" if it can."""
    if reason := import_failure():
        return reason
    if len(folders) > 1:
        return "CTranslate2 translates with one model at a time"
    return unsupported_reason(search)


def _unsuitable_model(name: Path) -> str:
    """Return why CTranslate2 cannot translate with a model; "" if it can. CheckpointError if it is damaged."""
    if is_foreign(name):
        return f"{name} is a folder of another program, which takes torch, or mt-train import first"
    folder = find_model_folder(name)
    if read_json(folder / MANIFEST).get("weights") == "int8":
        return f"the weights of {folder} are stored in int8, as torch computes with them"
    return inexpressible_reason(read_settings(folder)[1])


def _with_torch(folders: list[Path], search: SearchConfig, decoding: DecodingConfig, say: Say) -> Translator[Any]:
    try:
        from tolka.formats.any_model import load_any
        from tolka.system.memory import keep_freed_memory
    except ModuleNotFoundError as error:
        find_model_folder(folders[0])  # a misspelt name is no matter of torch
        advice = "mt-train export --to ctranslate2 writes a folder that does without"
        raise ConfigError(f"{folders[0]} takes {error.name}, which is not installed: {advice}") from None

    keep_freed_memory()
    return Translator.of(load_any(folders, to_translate=True), search, decoding, say)


def translator_of(
    exported: ExportedFolder,
    search: SearchConfig,
    decoding: DecodingConfig,
    say: Say = silent,
    name: Path | None = None,
) -> Translator[CTranslate2Engine]:
    """Build a translator on a folder that was exported for CTranslate2. name: of its model, for messages.

    CheckpointError if it translates its sample otherwise on this processor than where it was exported.
    """
    about = exported.facts
    # CTranslate2 would quantise by itself, with sums that overflow 16 bits on some processors; see _MAX_INT8.
    if decoding.precision == "int8" and about.dtype != "int8":
        raise ConfigError(
            f"decoding.precision=int8: {exported.folder} has its weights in {about.dtype}; export the model with "
            "--dtype int8, which measures what that costs, or translate with the model itself"
        )
    positions = POSITIONS - bool(exported.tokenizer.languages or exported.tokenizer.typed_tags)  # a tag takes one
    vocabulary = Vocabularies(*vocabularies(exported.tokenizer), positions, about.attention)
    engine = CTranslate2Engine.of(exported.folder, vocabulary, about.dtype, decoding, name or exported.folder, say)
    if about.sample and about.sample.get("where") != here() and engine.cpu_threads:  # no GPU was measured
        with as_written(str(exported.folder / EXPORTED)):
            reason = difference(engine, exported.tokenizer, about.sample, about.dtype)
        if reason:
            raise CheckpointError(
                f"{exported.folder} translates otherwise here ({here()}) than where it was exported "
                f"({about.sample.get('where')}): {reason}; export the model here, or translate with the model itself"
            )
    directions = exported.sources.directions or (about.direction,)
    facts = ModelFacts(exported.tokenizer, exported.sources, about.characters, directions, about.quality, about.verdict)
    request = Request.of(search, facts.direction(decoding.source, decoding.target))
    return Translator(engine, facts, request, decoding, say)


def _convert(folder: Path, search: SearchConfig, decoding: DecodingConfig, say: Say) -> Translator[CTranslate2Engine]:
    """Convert a model directory in a temporary folder, which is deleted once the model is loaded."""
    model = read_plain_model(folder)
    dtype = "int8" if decoding.precision == "int8" else "float32"
    if dtype == "int8" and decoding.backend == "ctranslate2":
        say(
            f"note: the weights are rounded to int8, and not compared with fp32: mt-train export "
            f"{shlex.quote(str(folder))} --to ctranslate2 --dtype int8 -o OUT does that, and refuses too great a loss"
        )
    facts = Exported.of(model, dtype)
    try:
        with tempfile.TemporaryDirectory(prefix="tolka-") as work:
            write_folder_apart(folder, Path(work), dtype)
            exported = ExportedFolder(Path(work), facts, model.tokenizer, model.sources)
            return translator_of(exported, search, decoding, say, model.folder)
    except OSError as error:  # a full disk above all
        raise DataError(
            f"{model.folder} cannot be converted in {tempfile.tempdir or 'a temporary folder'} "
            f"({error.strerror or error}): set TMPDIR to a folder with space for it"
        ) from None
