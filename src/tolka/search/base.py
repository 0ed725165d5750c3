"""What searches share; `options.py` has the contract of a search.

Shapes: B sentences, k hypotheses a sentence, V vocabulary, c candidates a sentence.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from tolka.data.batch import BOS, PAD
from tolka.kernels.top_k import NEVER as NEVER
from tolka.kernels.top_k import largest_sums
from tolka.models.base import Seq2Seq
from tolka.search.options import Search as Search
from tolka.search.options import SearchConfig as SearchConfig


class Candidates(NamedTuple):
    """A sentence's most likely hypotheses that are one token longer, best first, (B, c) each.

    log_probability: of all tokens. parent: which of the k hypotheses is extended. token: by which token.
    """

    log_probability: Tensor
    parent: Tensor
    token: Tensor


def next_log_probabilities(model: Seq2Seq, features: Tensor) -> Tensor:
    """features (B, k, D) -> (B, k, V), the next token's log-probabilities in fp32; -inf for what stands for no text."""
    # In fp32 whatever the model's dtype: search compares sums of many log-probabilities.
    log_p = model.logits(features).log_softmax(dim=-1, dtype=torch.float32)
    # Training never has these as references after the first place, so that their small probabilities mean nothing.
    for symbol in (PAD, BOS):
        log_p[..., symbol] = NEVER
    return log_p if model.without_text is None else log_p.index_fill_(-1, model.without_text, NEVER)


def extensions(log_p: Tensor, total: Tensor, count: int) -> Candidates:
    """Return the `count` largest sums of the next tokens' log_p (B, k, V) and total (B, k), or all if fewer."""
    return Candidates(*largest_sums(log_p, total, count))


def first_tokens(sentences: int, device: torch.device) -> Tensor:
    """Return (B, 1): the `<s>` that every hypothesis starts with."""
    return torch.full((sentences, 1), BOS, dtype=torch.long, device=device)


def take(values: Tensor, indices: Tensor) -> Tensor:
    """values (B, n) or (B, n, t), indices (B, m) below n -> (B, m) or (B, m, t)."""
    if values.dim() == 2:
        return values.gather(1, indices)
    return values.gather(1, indices[..., None].expand(-1, -1, values.size(2)))
