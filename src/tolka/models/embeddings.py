"""Source, target and output embeddings, and which of them share a matrix (Press and Wolf 2017)."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from tolka.data.batch import PAD
from tolka.errors import ConfigError
from tolka.kernels.matmul import matmul

SHARING = ("auto", "all", "source_target", "target_output", "source_output", "none")


def resolved_sharing(sharing: str, shared: bool) -> str:
    """Return `sharing` with auto resolved. shared: whether source and target have one vocabulary.

    ConfigError when two vocabularies are to share a matrix.
    """
    if sharing == "auto":
        return "all" if shared else "target_output"
    if not shared and sharing not in ("target_output", "none"):
        raise ConfigError(
            f"model.share_embeddings={sharing} needs one vocabulary: set tokenizer.shared=true, or target_output"
        )
    return sharing


class TokenEmbedding(nn.Embedding):
    """One vector per subword, used as input embedding, output layer or both."""

    @property
    def dtype(self) -> torch.dtype:
        """Of the vectors."""
        return self.weight.dtype

    def scores(self, features: Tensor, bias: Tensor | None = None) -> Tensor:
        """(..., D) -> (..., V): the dot products with all vectors, plus a bias (V,)."""
        return matmul(features, self.weight, bias)


class OutputLayer(Protocol):
    """The interface that `logits` needs: a `TokenEmbedding`, or its int8 copy."""

    def scores(self, features: Tensor, bias: Tensor | None = None) -> Tensor:
        """(..., D) -> (..., V)."""

    def parameters(self) -> Iterator[nn.Parameter]:
        """Return the parameters of this layer, which training may freeze."""


class Embeddings(NamedTuple):
    """Embeddings (V, width); a shared matrix is one module, saved under the first of its names."""

    target: TokenEmbedding
    source: TokenEmbedding
    output: TokenEmbedding


def make_embeddings(sharing: str, source_vocabulary: int, target_vocabulary: int, width: int) -> Embeddings:
    """Create the embeddings. sharing: from `resolved_sharing`."""
    target = TokenEmbedding(target_vocabulary, width, padding_idx=PAD)
    source = target
    if sharing not in ("all", "source_target"):
        source = TokenEmbedding(source_vocabulary, width, padding_idx=PAD)
    if sharing in ("all", "target_output"):
        return Embeddings(target, source, target)
    if sharing == "source_output":
        return Embeddings(target, source, source)
    return Embeddings(target, source, TokenEmbedding(target_vocabulary, width))
