"""A folder of Hugging Face's Marian as a model of ours, in memory or as a model directory."""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tolka.data.batch import PAD
from tolka.errors import CheckpointError, ConfigError
from tolka.formats.huggingface.folder import ModelFolder
from tolka.formats.huggingface.marian import (
    BIAS,
    CONFIG,
    GENERATION_CONFIG,
    MODEL_TYPE,
    OUTPUT,
    POSITIONS,
    SHARED,
    SOURCE,
    SOURCE_SPM,
    TARGET,
    TARGET_SPM,
    TARGET_VOCAB,
    TOKENIZER_CONFIG,
    VOCAB,
    options_of,
    shapes_of,
    tensor_names,
    whole,
)
from tolka.interchange.parity import FP32, LIMIT, TolkaSide, compare, sample_of
from tolka.interchange.transformers_side import TransformersSide, checked_copy, has_transformers, not_compared
from tolka.model_directory.card import model_card
from tolka.model_directory.file_names import EXPORTED
from tolka.model_directory.manifest import MANIFEST, TrainingSources
from tolka.model_directory.read import SavedModel
from tolka.model_directory.write import snapshot
from tolka.models.transformer.config import TransformerConfig
from tolka.nn.initialization import SkipInitialization
from tolka.nn.positions import sinusoids
from tolka.system.surrogates import is_utf8, printable
from tolka.text.cleaning.steps import CleaningConfig
from tolka.text.direction import Direction
from tolka.tokenizer.coders import processor_of
from tolka.tokenizer.tokenizer import Tokenizer, TokenizerConfig
from tolka.tokenizer.vocabulary import Vocabulary
from tolka.version import __version__

_FEWEST_POSITIONS = 8  # below, hardly any sentence fits that could be compared
_NEVER = -30.0  # bias of the logit of our <pad>, which Marian does not have: exp(-30) adds nothing to a softmax
_SAME_POSITIONS = 2e-3  # greatest difference from the sinusoids that rounding to half precision makes
_UNKNOWN_LANGUAGE = "und"
_LANGUAGE = re.compile(r"[\w+-]{1,40}")
_NOTED = ("num_beams", "length_penalty", "no_repeat_ngram_size", "repetition_penalty", "max_length", "bad_words_ids")


@dataclass(frozen=True)
class _Described:
    """What a folder says of its model besides the weights. about: of tokenizer_config.json."""

    folder: ModelFolder
    config: dict[str, Any]
    about: dict[str, Any]
    options: TransformerConfig
    tokenizer: Tokenizer
    settings: dict[str, Any]
    longest: int
    languages_known: bool

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of subwords in Marian's vocabularies."""
        return self.tokenizer.source_size - 1, self.tokenizer.target_size - 1


def load_marian(path: Path) -> SavedModel:
    """Load a folder of Marian; the folder is only read. CheckpointError for what is missing or does not fit."""
    return _load(_described(path, None))


def marian_settings(path: Path) -> dict[str, Any]:
    """Return the settings of a folder of Marian as a model directory's config.yaml would have them."""
    return _described(path, None).settings


def import_marian(
    path: Path, out: Path, direction: Direction | None, lines: list[str], say: Callable[[str], None]
) -> None:
    """Write a folder of Marian as a model directory, after the parity gate where `transformers` is installed.

    languages: the codes of source and target; None for those of the folder. lines: the sample to compare. ConfigError
    if nobody says which languages they are, or a code is none.
    """
    for key, code in zip(("corpus.source", "corpus.target"), direction or (), strict=False):
        if not _LANGUAGE.fullmatch(code):
            raise ConfigError(f"{key}={code!r:.60} must be the code of a language, as en: letters, digits, _, + and -")
    if (path / EXPORTED).is_file():
        raise CheckpointError(f"{path} was exported for CTranslate2: give the model that it was made from")
    if any((folder / MANIFEST).is_file() for folder in (path, path / "best")):
        raise CheckpointError(f"{path} is a model directory of tolka already: use it as it is")
    described = _described(path, direction)
    if not described.languages_known:
        raise ConfigError(
            f"{path / TOKENIZER_CONFIG} does not say the languages: add them, as in corpus.source=en corpus.target=de"
        )
    saved = _load(described)
    if has_transformers():
        sample, limit = sample_of(saved, lines, say), min(LIMIT, described.longest)
        config = _with_positions(described, max(LIMIT, *map(len, saved.tokenizer.encode_source(sample))) + 1)
        with checked_copy(described.folder, config, described.about) as copy:
            ours, side = TolkaSide(saved, limit), TransformersSide(copy, saved.tokenizer.vocabularies[-1], limit, path)
        section = compare(ours, side, sample, ours.beginning).passed(FP32, say)
    else:
        section = not_compared(say)
    for name in (CONFIG, GENERATION_CONFIG):
        if noted := _noted(described.folder, name):
            say(f"note: {name} asks for {noted}; tolka searches as search=... says")
    card = f"{model_card(saved.config, saved.scores['facts'], saved.scores)}\n{section}"
    snapshot(saved.model, saved.tokenizer, saved.config, saved.sources, saved.scores, card).write(out)


def _with_positions(described: _Described, most: int) -> dict[str, Any]:
    """Return config.json with at most this many positions: transformers computes one after the other in Python."""
    if not described.folder.tensor_names().isdisjoint(POSITIONS):  # which have the number that config.json says
        return described.config
    return {**described.config, "max_position_embeddings": min(described.longest + 1, most)}


def _described(path: Path, direction: Direction | None) -> _Described:
    """Read everything but the weights."""
    folder = ModelFolder(path)
    config, where = folder.json(CONFIG), str(path / CONFIG)
    if config.get("model_type") != MODEL_TYPE:
        raise CheckpointError(
            f"{where}: the architecture is {config.get('model_type')!r:.80} (model_type), and only Hugging Face's "
            f"{MODEL_TYPE} (MarianMTModel, as of OPUS-MT) can be imported"
        )
    options = options_of(config, where)
    about = folder.json(TOKENIZER_CONFIG) if folder.has(TOKENIZER_CONFIG) else {}
    tokenizer = _tokenizer(folder, config, bool(about.get("separate_vocabs")))
    if options.share_embeddings in ("all", "source_target") and not tokenizer.shared:
        raise CheckpointError(f"{where}: embeddings are shared, but {TOKENIZER_CONFIG} has separate vocabularies")
    named = direction or (about.get("source_lang"), about.get("target_lang"))
    known = all(isinstance(each, str) and _LANGUAGE.fullmatch(each) for each in named)
    source, target = named if known else (_UNKNOWN_LANGUAGE, _UNKNOWN_LANGUAGE)
    positions = whole(config, "max_position_embeddings", where)
    if positions < _FEWEST_POSITIONS:
        raise CheckpointError(
            f"{where}: max_position_embeddings ({positions}) must be at least {_FEWEST_POSITIONS}, for a sentence"
        )
    settings = {
        "run": {"name": folder.name},
        "corpus": {"source": source, "target": target},
        "cleaning": asdict(CleaningConfig()),
        "tokenizer": asdict(_tokenizer_options(tokenizer)),
        "model": asdict(options),
    }
    return _Described(folder, config, about, options, tokenizer, settings, positions - 1, known)


def _load(described: _Described) -> SavedModel:
    """Read the weights, and build the model that they are of."""
    options, tokenizer, sizes = described.options, described.tokenizer, described.sizes
    shapes, optional = shapes_of(options, sizes), {BIAS, *POSITIONS, OUTPUT, SHARED, SOURCE, TARGET}
    positions = described.longest + 1, options.d_model
    shapes |= dict.fromkeys(POSITIONS, positions)
    if options.share_embeddings in ("target_output", "none"):
        optional -= {SOURCE, TARGET}
        del shapes[SHARED]
    if options.share_embeddings in ("source_target", "none"):
        optional -= {OUTPUT}
    theirs = described.folder.weights(shapes, optional)
    _check_positions(theirs, described.folder.path)
    weights = {
        ours: torch.cat([theirs[name] for name in fused]) if len(fused) > 1 else theirs[fused[0]]
        for ours, fused in tensor_names(options.layers, options.decoder_layers).items()
    }
    places = tokenizer.vocabularies[0], tokenizer.vocabularies[-1]
    weights |= _embeddings(theirs, options.share_embeddings, places, described.folder.path)
    bias = theirs.get(BIAS, torch.zeros(1, sizes[1]))[0]
    weights["output_bias"] = _in_our_order(bias, places[1])
    weights["output_bias"][PAD] = _NEVER
    with SkipInitialization():
        model = options.build(tokenizer.source_size, tokenizer.target_size, tokenizer.shared)
    differing = model.load_state_dict(weights, strict=False)
    assert not differing.unexpected_keys
    facts = {
        "languages": " to ".join(described.settings["corpus"].values()),
        "architecture": f"Marian's Transformer, {model.parameter_count():,} parameters",
        "imported from": f"a folder of Hugging Face's Marian, {described.folder.name}",
        "tolka": __version__,
    }
    sources = TrainingSources(described.longest)
    return SavedModel(described.folder.path, model.eval(), tokenizer, described.settings, sources, {"facts": facts})


def _embeddings(
    theirs: Mapping[str, Tensor], sharing: str, vocabularies: tuple[Vocabulary, Vocabulary], path: Path
) -> dict[str, Tensor]:
    """Return our embeddings; CheckpointError if matrices differ that are one by config.json."""
    ties_output = sharing in ("all", "target_output")
    if sharing in ("all", "source_target"):
        names = [name for name in (SHARED, SOURCE, TARGET) if name in theirs]
        if not names:
            raise CheckpointError(f"{path} has no embeddings: {SHARED} is missing")
        groups = [[*names, OUTPUT] if ties_output else names]
        source = target = theirs[names[0]]
    else:
        source, target = theirs[SOURCE], theirs[TARGET]
        groups = [[TARGET, OUTPUT]] if ties_output else []
    for group in groups:
        for name in group[1:]:
            if name in theirs and not torch.equal(theirs[name], theirs[group[0]]):
                raise CheckpointError(f"{path}: {name} and {group[0]} differ, and by {CONFIG} they are one matrix")
    found = {"target_embedding.weight": _in_our_order(target, vocabularies[1])}
    if source is not target:
        found["source_embedding.weight"] = _in_our_order(source, vocabularies[0])
    if not ties_output:
        found["output_embedding.weight"] = _in_our_order(theirs[OUTPUT], vocabularies[1])
    return found


def _in_our_order(rows: Tensor, vocabulary: Vocabulary) -> Tensor:
    """Return (V + 1, ...) of Marian's (V, ...): rows in the order of our ids, that of <pad> zero."""
    ordered = rows.new_zeros(len(vocabulary.subwords), *rows.shape[1:])
    ordered[torch.tensor(vocabulary.ids_in_original_order())] = rows
    return ordered


def _check_positions(theirs: Mapping[str, Tensor], path: Path) -> None:
    """Raise CheckpointError for positions that are not the sinusoids."""
    for name in POSITIONS:
        if name in theirs:
            table = sinusoids(torch.arange(len(theirs[name])), theirs[name].size(1), halves=True)
            if not torch.allclose(theirs[name], table, rtol=0, atol=_SAME_POSITIONS):
                raise CheckpointError(f"{path}: {name} is trained, and Marian's positions are sinusoids")


def _tokenizer(folder: ModelFolder, config: Mapping[str, Any], separate: bool) -> Tokenizer:
    """Return the tokenizer; CheckpointError if files are missing, damaged, or do not fit config.json."""
    where = str(folder.path / CONFIG)
    eos, start = whole(config, "eos_token_id", where), whole(config, "decoder_start_token_id", where)
    if not separate and config.get("pad_token_id") != start:
        raise CheckpointError(
            f"{where}: decoder_start_token_id ({start}) must be pad_token_id ({config.get('pad_token_id')!r:.80}), "
            "from which Marian's decoder starts"
        )
    names = [VOCAB, TARGET_VOCAB] if separate else [VOCAB]
    size = whole(config, "vocab_size", where)
    target_size = size if config.get("decoder_vocab_size") is None else whole(config, "decoder_vocab_size", where)
    vocabularies = [_vocabulary(folder, name, sized) for name, sized in zip(names, (size, target_size), strict=False)]
    if not separate and size != target_size:
        raise CheckpointError(f"{where}: decoder_vocab_size ({target_size}) and vocab_size ({size}) must be equal")
    if vocabularies[-1].places[0] != eos or vocabularies[-1].places[2] != start:
        raise CheckpointError(
            f"{folder.path / names[-1]}: </s> and <pad> are {vocabularies[-1].places[0::2]}, and in {CONFIG} "
            f"(eos_token_id, decoder_start_token_id) they are {(eos, start)}"
        )
    models = [folder.bytes(name) for name in (SOURCE_SPM, TARGET_SPM)]
    for name, model in zip((SOURCE_SPM, TARGET_SPM), models, strict=True):
        try:
            processor_of(model)
        except RuntimeError:
            raise CheckpointError(f"{folder.path / name} is no SentencePiece model") from None
    return Tokenizer(models, vocabularies)


def _vocabulary(folder: ModelFolder, name: str, size: int) -> Vocabulary:
    """Read a vocabulary: subword -> id, all ids from 0 on."""
    path, found = folder.path / name, folder.json(name)
    if not all(type(number) is int for number in found.values()) or sorted(found.values()) != list(range(len(found))):
        raise CheckpointError(f"{path} must number its {len(found)} subwords from 0 to {len(found) - 1}, each once")
    if broken := [subword for subword in found if not is_utf8(subword)]:
        raise CheckpointError(f"{path}: the subword {printable(broken[0]):.80} is not UTF-8: a lone surrogate is in it")
    if missing := [special for special in ("</s>", "<unk>", "<pad>") if special not in found]:
        raise CheckpointError(f"{path} lacks {' and '.join(missing)}")
    if len(found) != size:
        raise CheckpointError(f"{path} has {len(found)} subwords, and {CONFIG} says {size} (vocab_size)")
    return Vocabulary.of(sorted(found, key=found.__getitem__), found["</s>"], found["<unk>"], found["<pad>"])


def _tokenizer_options(tokenizer: Tokenizer) -> TokenizerConfig:
    """Return options that describe the tokenizer, for config.yaml."""
    protobuf: Any = import_module("sentencepiece.sentencepiece_model_pb2")
    spec = protobuf.ModelProto.FromString(tokenizer.models[0]).trainer_spec
    kinds = {spec.UNIGRAM: "unigram", spec.BPE: "bpe", spec.WORD: "word", spec.CHAR: "char"}
    fallback = bool(spec.byte_fallback)
    size = min(max(tokenizer.target_size, 300 if fallback else 50), 1_000_000)
    return TokenizerConfig(
        type=kinds[spec.model_type], vocab_size=size, shared=tokenizer.shared, byte_fallback=fallback
    )


def _noted(folder: ModelFolder, name: str) -> str:
    """Return what a folder asks of generation, for a note."""
    values = folder.json(name) if folder.has(name) else {}
    return ", ".join(f"{key}={values[key]!r:.40}" for key in _NOTED if values.get(key) is not None)
