"""Source, target and output embeddings, and which of them share a matrix (Press and Wolf 2017)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tolka.data.batch import PAD, UNK
from tolka.kernels.matmul import matmul

VOCABULARY_TENSORS = ("source_embedding.weight", "target_embedding.weight", "output_embedding.weight", "output_bias")
"""Names of the tensors with one row for each subword; the first is the source's."""
# Of rows that start as the mean of all, in standard deviations of the old rows.
_SPREAD = 0.1


class TokenEmbedding(nn.Embedding):
    """One vector per subword, used as input embedding, output layer or both; its int8 copy has the same methods."""

    def scores(self, features: Tensor, bias: Tensor | None = None) -> Tensor:
        """(..., D) -> (..., V): the dot products with all vectors, plus a bias (V,)."""
        return matmul(features, self.weight, bias)


class Embeddings(NamedTuple):
    """Embeddings (V, width); a shared matrix is one module, saved under the first of its names."""

    target: TokenEmbedding
    source: TokenEmbedding
    output: TokenEmbedding


def make_embeddings(sharing: str, source_vocabulary: int, target_vocabulary: int, width: int) -> Embeddings:
    """Create the embeddings. sharing: from `resolved_sharing` of options.py."""
    # One module under two names is one matrix: the gradients of both uses add up (Press and Wolf 2017).
    target = TokenEmbedding(target_vocabulary, width, padding_idx=PAD)
    source = target
    if sharing not in ("all", "source_target"):
        source = TokenEmbedding(source_vocabulary, width, padding_idx=PAD)
    if sharing in ("all", "target_output"):
        return Embeddings(target, source, target)
    if sharing == "source_output":
        return Embeddings(target, source, source)
    return Embeddings(target, source, TokenEmbedding(target_vocabulary, width))


def with_new_rows(
    state: Mapping[str, Tensor], source: Sequence[Sequence[int]], target: Sequence[Sequence[int]]
) -> dict[str, Tensor]:
    """Return a model's `state_dict` with rows for new subwords after the old ones; a shared matrix stays one.

    source, target: the old ids that spell each new subword. Its row, and its output bias, are the mean of theirs, the
    unknown ones left out.
    """
    return _with_matrices(state, lambda old, new: torch.cat([old, _new_rows(old, new)]) if new else old, source, target)


def with_rows(state: Mapping[str, Tensor], source: Sequence[int], target: Sequence[int]) -> dict[str, Tensor]:
    """Return a model's `state_dict` with some rows of its subwords alone; a shared matrix stays one.

    source, target: ids of the subwords that are left, in their new order.
    """
    return _with_matrices(state, lambda old, ids: old[torch.tensor(ids)], source, target)


def _with_matrices(
    state: Mapping[str, Tensor], change: Callable[[Tensor, Any], Tensor], source: Any, target: Any
) -> dict[str, Tensor]:
    """Return a `state_dict` with the matrices of its subwords changed. source, target: second argument of `change`."""
    changed = dict(state)
    # Two names with one memory are one shared matrix, which is changed once.
    of_memory: dict[int, Tensor] = {}
    for name in state.keys() & {*VOCABULARY_TENSORS}:
        memory = state[name].data_ptr()
        if memory not in of_memory:
            of_memory[memory] = change(state[name], source if name == VOCABULARY_TENSORS[0] else target)
        changed[name] = of_memory[memory]
    return changed


def _new_rows(old: Tensor, spelt: Sequence[Sequence[int]]) -> Tensor:
    """(V, ...) -> (number of new subwords, ...)."""
    # Without the special symbols, which come first.
    ordinary = old[UNK + 1 :]
    spread, mean = _SPREAD * ordinary.std(0), ordinary.mean(0)
    rows = []
    for ids in spelt:
        known = [number for number in ids if number != UNK]
        # Where all are unknown, near the mean of all subwords, so that the old ones keep most of their probability
        # (Hewitt 2021, https://nlp.stanford.edu/~johnhew/vocab-expansion.html).
        rows.append(old[known].mean(0) if known else mean + spread * torch.randn(mean.shape))
    return torch.stack(rows)
