"""A user's own family of foreign models in one file: a Transformer whose tensors have another name."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from tolka.formats.huggingface.family import CONFIG, FAMILIES, Family, Fill, Foreign, whole_number
from tolka.formats.huggingface.folder import ModelFolder
from tolka.model_directory.read import SavedModel
from tolka.model_directory.weights import unique_tensors
from tolka.models.options import ModelConfig
from tolka.models.transformer import TransformerConfig
from tolka.text.direction import Direction
from tolka.tokenizer.tokenizer import Tokenizer

_SIZES = ("d_model", "heads", "layers")


@FAMILIES.register("toy")
class Toy(Family):
    """Pre-norm, with one vocabulary, which is that of its SentencePiece model."""

    NAME = "Toy"

    def read(self, folder: ModelFolder, config: Mapping[str, Any], about: Mapping[str, Any]) -> Foreign:
        """Read sizes, tokenizer and languages."""
        sizes = {key: whole_number(config, key, str(folder.path / CONFIG)) for key in _SIZES}
        tokenizer = Tokenizer([folder.sentencepiece_model("toy.model")])
        longest = whole_number(config, "longest", str(folder.path / CONFIG))
        return Foreign(
            self, folder, config, about, TransformerConfig(**sizes), tokenizer, longest, Direction("xa", "xb")
        )

    def weights(self, foreign: Foreign) -> Fill:
        """Return what reads the tensors by their names here."""
        model = foreign.options.build(foreign.tokenizer.source_size, foreign.tokenizer.target_size, True)
        names = {f"toy.{name}": tuple(tensor.shape) for name, tensor in unique_tensors(model.state_dict()).items()}
        theirs = foreign.folder.weights(names, ())

        def fill(ours: Mapping[str, Tensor]) -> None:
            for name, tensor in ours.items():
                tensor.copy_(theirs[f"toy.{name}"]())

        return fill

    def files(self, saved: SavedModel, options: ModelConfig) -> dict[str, Any]:
        """Return the configuration and the tokenizer."""
        sizes = {key: getattr(options, key) for key in _SIZES}
        config = {"model_type": "toy", "longest": saved.sources.longest, **sizes}
        return {CONFIG: config, "toy.model": saved.tokenizer.models[0]}

    def tensors(self, saved: SavedModel, options: ModelConfig) -> dict[str, Tensor]:
        """Return the tensors under the names there."""
        return {f"toy.{name}": tensor for name, tensor in unique_tensors(saved.model.state_dict()).items()}
