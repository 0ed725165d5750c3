"""Folders of Marian: a model file, vocabularies, and a decoder.yml or config.yml that names them.

A vocabulary is a SentencePiece model (.spm), or, as in OPUS-MT's zips (Tiedemann and Thottingal 2020), a YAML file of
subwords and ids beside source.spm and target.spm.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from torch import Tensor

from tolka.data.batch import BOS, PAD
from tolka.errors import CheckpointError, ConfigError
from tolka.formats.huggingface.bart_layers import fill_rows
from tolka.formats.huggingface.family import LANGUAGE, Family, Fill, Foreign
from tolka.formats.huggingface.folder import ModelFolder, Shape, in_order
from tolka.formats.marian.layout import BIAS, OF_VOCABULARY, TRANSPOSED, layer_tensors, read_options, written_options
from tolka.formats.marian.model_file import OPTIONS, read_items, write_bin
from tolka.model_directory.read import SavedModel
from tolka.model_directory.settings import MARIAN_CONFIGS, direction_of, marian_files
from tolka.models.options import ModelConfig
from tolka.models.transformer.options import TransformerOptions
from tolka.system.whole_files import read_text
from tolka.text.direction import Direction
from tolka.tokenizer.sentencepiece_model import model_proto
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.tokenizer.vocabulary import Vocabulary

MODEL, MODEL_INFO = "model.bin", "model_info.json"
"""The model file that is written, and translateLocally's facts of a model."""
_MOST_YAML, _MOST_VOCABULARY = 2**16, 2**23  # bytes; a model's options have some thousands, 60 000 subwords a million
_MOST_BRACKETS, _LONGEST_LINE = 100, 1000  # of options: the parser is quadratic in the one, numbers in the other
_LONGEST = 512  # subwords of a source, for which Marian's files have no limit
_NEVER = -1e4  # bias of the logit of a row that no translation has
_STEP = 8  # that the engine wants a vocabulary in int8 to be a multiple of


class MarianFolder(ModelFolder):
    """The files of a folder of Marian; the items of its model file are its tensors."""

    FORM = "its options"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._config = next((name for name in MARIAN_CONFIGS if self.has(name)), "")
        self._named = dict[str, Any]()
        if self._config:
            with self.file(self._config).open("rb") as stream:
                self._named = _yaml(stream.read(_MOST_YAML + 1), path / self._config)
        self.model, *others = self.named_files("models", marian_files(path)[0])
        if others:
            raise CheckpointError(f"{path} has several models, {self.model} and {others[0]}: name one in decoder.yml")
        self._items = read_items(self.file(self.model))
        if OPTIONS not in self._items:
            raise CheckpointError(f"{path / self.model} lacks its options ({OPTIONS})")
        text = self._items.pop(OPTIONS).read().tobytes().rstrip(b"\0")
        self.options = _yaml(text, f"{path / self.model}, {OPTIONS},")

    def named_files(self, key: str, otherwise: list[Path]) -> list[str]:
        """Return the names that decoder.yml or config.yml has under a key, those of `otherwise` if it has none."""
        named = self._named.get(key)
        names = named if isinstance(named, list) else sorted(path.name for path in otherwise)
        if not names:
            missing = f"{self._config} does not name" if self._config else "there is no decoder.yml, which must name"
            raise CheckpointError(f"{self.path}: {missing} its {key}")
        # Other programs write paths, which may be those of another machine.
        return list(dict.fromkeys(Path(str(name)).name for name in names))

    def _open_weights(self) -> tuple[Path, dict[str, Shape], dict[str, Any]]:
        # Without the multipliers of activations in int8: in tolka activations are fp32.
        items = {name: item for name, item in self._items.items() if not name.endswith("_QuantMultA")}
        return (
            self.path / self.model,
            {name: item.shape for name, item in items.items()},
            {name: item.read for name, item in items.items()},
        )

    def tensors(self) -> dict[str, Tensor]:
        """Return all tensors in fp32, by Marian's names."""
        return {name: read() for name, read in self.weights(self._open_weights()[1], ()).items()}


class MarianFiles(Family):
    """Marian itself, whose folders OPUS-MT's zips, Firefox and translateLocally have."""

    NAME, PROGRAM = "Marian", ""

    def read(self, folder: ModelFolder, config: Mapping[str, Any], about: Mapping[str, Any]) -> Foreign:
        assert isinstance(folder, MarianFolder)
        tokenizer = _read_tokenizer(folder)
        options = read_options(config, f"{folder.path / folder.model}, {OPTIONS}")
        if options.share_embeddings in ("all", "source_target") and not tokenizer.shared:
            raise CheckpointError(f"{folder.path}: embeddings are shared, and each side has its own vocabulary")
        tags = about.get("srcTags")
        direction = Direction(str(next(iter(tags), "")) if isinstance(tags, dict) else "", str(about.get("trgTag")))
        is_told = all(map(LANGUAGE.fullmatch, direction))
        return Foreign(self, folder, config, about, options, tokenizer, _LONGEST, direction if is_told else None)

    def weights(self, foreign: Foreign) -> Fill:
        tokenizer, options = foreign.tokenizer, foreign.options
        assert isinstance(options, TransformerOptions)
        sizes = tokenizer.source_size, tokenizer.target_size
        ours = options.shapes(*sizes, tokenizer.shared).state_dict()
        shapes: dict[str, Shape] = {name: tuple(view.shape) for name, view in layer_tensors(ours, options).items()}
        for name, each in OF_VOCABULARY[options.share_embeddings].items():
            # Marian has neither our <pad> nor our <s>.
            shape = sizes[_side(name)] - 2, ours[name][0].numel()
            shapes[each] = shape[::-1] if each in TRANSPOSED else shape
        theirs = foreign.folder.weights(shapes, ())

        def fill(weights: Mapping[str, Tensor]) -> None:
            for name, view in layer_tensors(weights, options).items():
                view.copy_(theirs[name]())
            for name, each in OF_VOCABULARY[options.share_embeddings].items():
                rows = theirs[each]().T if each in TRANSPOSED else theirs[each]()
                # The last one is of the <pad> that makes our <s>: the decoder starts from zeros.
                rows = torch.cat([rows, torch.zeros(1, rows.size(1))])
                fill_rows(weights[name].view(len(weights[name]), -1), rows, tokenizer.vocabularies[_side(name)])
            weights["output_bias"][[PAD, BOS]] = _NEVER

        return fill

    def files(self, saved: SavedModel, options: ModelConfig) -> dict[str, Any]:
        is_of_several = bool(saved.tokenizer.languages or saved.tokenizer.typed_tags)
        if is_of_several or not isinstance(options, TransformerOptions):
            reason = "of several directions" if is_of_several else f"model.name={vars(options)['name']}"
            raise ConfigError(
                f"{saved.folder} is {reason}, and Marian's programs translate with Transformers of one direction: "
                f"teach one by it, mt-train recipe=distillation teacher={saved.folder} model.leaves_to=marian with the "
                "corpus=... of its training, one direction at a time (without corpus.both_directions)"
            )
        written = written_options(options)
        if options.decoder_start == "bos" and saved.model.state_dict()["target_embedding.weight"][BOS].any():
            raise ConfigError(
                f"Marian's decoder starts from zeros, and that of {saved.folder} from the row of <s> "
                "(model.decoder_start=bos): train with model.decoder_start=zero, as model=transformer_student has it"
            )
        source, target = direction_of(saved.config)
        pair = f"{source}-{target}"
        info = {"modelName": pair, "shortName": pair, "src": source, "trg": target, "type": "tolka"}
        tags = {"srcTags": {source: source}, "trgTag": target, "version": 1, "API": 1}
        return {OPTIONS: written, MODEL_INFO: {**info, **tags}}

    def tensors(self, saved: SavedModel, options: ModelConfig) -> dict[str, Tensor]:
        assert isinstance(options, TransformerOptions)
        weights, vocabularies = saved.model.state_dict(), saved.tokenizer.vocabularies
        tensors = layer_tensors(weights, options)
        for name, each in OF_VOCABULARY[options.share_embeddings].items():
            order = [number for number in vocabularies[_side(name)].ids_in_original_order() if number != BOS]
            rows = weights[name][order] if name in weights else torch.zeros(len(order))  # without output_bias
            rows = rows.view(len(order), -1)
            tensors[each] = rows.T if each in TRANSPOSED else rows
        return tensors


def read_marian(path: Path) -> Foreign:
    """Read a folder of Marian but for its weights; CheckpointError for what is missing or does not fit."""
    folder = MarianFolder(path)
    return MarianFiles().read(folder, folder.options, folder.json(MODEL_INFO) if folder.has(MODEL_INFO) else {})


def write_files(
    folder: Path,
    options: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    vocabularies: Sequence[Vocabulary],
    models: Sequence[bytes],
    int8: bool,
) -> list[str]:
    """Write model.bin, and SentencePiece models with the subwords in its order; return the names of the latter.

    Then come those that a model alone has, unknown to the vocabulary, and unused ones up to a multiple of `_STEP`: they
    have the row of <unk>, and no translation has them.
    """
    protos = list(map(model_proto, models))
    sides = [[v.subwords[number] for number in v.ids_in_original_order() if number != BOS] for v in vocabularies]
    of_models = [sides[: side + 1][-1] for side in range(len(models))]
    for proto, names in zip(protos, of_models, strict=True):
        known = {*names}
        names += [each.piece for each in proto.pieces if each.piece not in known and each.type != each.CONTROL]
    for names in sides:
        names += [f"<unused{number}>" for number in range(-len(names) % _STEP)]
    files = ["vocab.spm"] if len(models) == 1 else ["source.spm", "target.spm"]
    for file, proto, names in zip(files, protos, of_models, strict=True):
        own, kind = {each.piece: each for each in proto.pieces}, proto.SentencePiece
        pieces = [own.get(name) or kind(piece=name, type=kind.UNUSED) for name in names]
        del proto.pieces[:]
        proto.pieces.extend(pieces)
        (folder / file).write_bytes(proto.SerializeToString())
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    for name in {"Wemb", "encoder_Wemb", "decoder_Wemb", *TRANSPOSED} & arrays.keys():
        names, axis = sides[0 if name.startswith("encoder") else -1], int(name in TRANSPOSED)
        unknown = arrays[name].take([names.index("<unk>")], axis)
        more = np.repeat(unknown, len(names) - arrays[name].shape[axis], axis)
        more[...] = _NEVER if name == BIAS else more
        arrays[name] = np.concatenate([arrays[name], more], axis)
    text = yaml.safe_dump({**options, "dim-vocabs": [len(sides[0]), len(sides[-1])]})
    write_bin(folder / MODEL, text.encode(), arrays, int8)
    return files


def _yaml(content: bytes, where: Path | str) -> dict[str, Any]:
    """Return the mapping in a YAML text; CheckpointError for something else, and for aliases."""
    brackets, longest = content.count(b"[") + content.count(b"{"), max(map(len, content.splitlines()), default=0)
    is_sound = len(content) <= _MOST_YAML and brackets <= _MOST_BRACKETS and longest <= _LONGEST_LINE
    try:
        # By aliases a few bytes stand for any number of values, in every message that shows them.
        events = yaml.parse(content, yaml.SafeLoader) if is_sound else ()
        has_aliases = any(isinstance(event, yaml.AliasEvent) for event in events)
        values = yaml.safe_load(content) if is_sound and not has_aliases else None
    except (yaml.YAMLError, ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise CheckpointError(f"{where} is damaged, or is no list of settings as Marian writes it")
    return values


def _side(name: str) -> int:
    """Return which vocabulary a tensor of ours has rows for."""
    return 0 if name.startswith("source") else -1


def _read_tokenizer(folder: MarianFolder) -> Tokenizer:
    """Read the vocabularies; CheckpointError for what is missing or damaged."""
    _, found = marian_files(folder.path)
    # Beside YAML files, .spm files have no ids.
    names = folder.named_files("vocabs", [] if any(path.suffix == ".yml" for path in found) else found)
    is_spm = all(name.endswith(".spm") for name in names)
    models = [folder.sentencepiece_model(name) for name in (names if is_spm else ("source.spm", "target.spm"))]
    vocabularies = []
    for name, model in zip(names, models, strict=False):
        subwords = [str(each.piece) for each in model_proto(model).pieces] if is_spm else _yaml_vocabulary(folder, name)
        if len(names) > 2 or not {"</s>", "<unk>"} <= {*subwords}:
            raise CheckpointError(f"{folder.path / name} lacks </s> or <unk>, or is one of more than two vocabularies")
        places = subwords.index("</s>"), subwords.index("<unk>"), len(subwords)
        vocabularies.append(Vocabulary.of([*subwords, "<pad>"], places))
    return Tokenizer(models, vocabularies[:1] if vocabularies[0] == vocabularies[-1] else vocabularies)


def _yaml_vocabulary(folder: MarianFolder, name: str) -> list[str]:
    """Return the subwords of a file with a line `subword: id` for each, in the order of their ids."""
    path, listed = folder.file(name), list[tuple[str, int]]()
    try:
        # Line by line: no other YAML is read, whatever is in the file.
        for line in filter(None, read_text(path, _MOST_VOCABULARY).split("\n")):
            subword, _, number = line.rpartition(": ")
            listed.append((yaml.safe_load(subword) if subword[:1] in ("'", '"') else subword, int(number)))
        ids = dict(listed)
    except (OSError, ValueError, TypeError, yaml.YAMLError, RecursionError):
        raise CheckpointError(f"{path} must have a line 'subword: id' for each subword") from None
    if len(ids) < len(listed):
        raise CheckpointError(f"{path} has a subword twice")
    return in_order(ids, path)
