"""Embeddings of source, target and output pieces, and which of them have one matrix (Press and Wolf 2017)."""

from typing import NamedTuple

from torch import Tensor, nn

from tolka.batch import PAD
from tolka.errors import ConfigError
from tolka.nn.products import product

SHARING = ("auto", "all", "source_target", "target_output", "source_output", "none")


def settled_sharing(sharing: str, shared: bool) -> str:
    """What auto stands for; all else as it is. shared: whether source and target ids mean the same pieces.

    ConfigError when source pieces would share a matrix with other target pieces.
    """
    if sharing == "auto":
        return "all" if shared else "target_output"
    if not shared and sharing not in ("target_output", "none"):
        raise ConfigError(
            f"model.share_embeddings={sharing} needs one vocabulary: set tokenizer.shared=true, or target_output"
        )
    return sharing


class Pieces(nn.Embedding):
    """A vector of each piece: what goes in as it, or what features are measured against to come out as it."""

    def scores(self, features: Tensor, bias: Tensor | None = None) -> Tensor:
        """(..., D) -> (..., V): the products with all vectors, and a bias (V,)."""
        return product(features, self.weight, bias)


class Embeddings(NamedTuple):
    """Each (V, width); the same module where a matrix is shared, which is saved under the first of its names."""

    target: Pieces
    source: Pieces
    output: Pieces


def make_embeddings(sharing: str, source_vocabulary: int, target_vocabulary: int, width: int) -> Embeddings:
    """sharing: settled."""
    target = Pieces(target_vocabulary, width, padding_idx=PAD)
    source = target
    if sharing not in ("all", "source_target"):
        source = Pieces(source_vocabulary, width, padding_idx=PAD)
    if sharing in ("all", "target_output"):
        return Embeddings(target, source, target)
    if sharing == "source_output":
        return Embeddings(target, source, source)
    return Embeddings(target, source, Pieces(target_vocabulary, width))
