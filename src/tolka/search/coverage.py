"""The coverage penalty: translations whose attention leaves source subwords out are ranked lower.

Shapes: N hypotheses, S source tokens, T target tokens, H heads.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from tolka.data.batch import EOS, UNK, collate
from tolka.errors import ConfigError
from tolka.models.base import Seq2Seq
from tolka.search.hypothesis import Hypothesis

_AT_ONCE = 2048  # source and target tokens whose attention maps, of all layers, are in memory
_LEAST = 1e-9  # attention that underflowed to 0 must not make a score infinite


def check_attention(model: Seq2Seq, device: torch.device) -> None:
    """Raise ConfigError if the model has no attention from target to source, as `covered` needs it."""
    try:
        _cross_attention(model, [[UNK]], [[UNK]], device)
    except ConfigError:
        raise ConfigError(
            f"search.coverage_penalty needs attention from target to source, which {model.architecture} does not show: "
            "set it to 0"
        ) from None


def covered(
    model: Seq2Seq, source: Tensor, pools: Sequence[Sequence[Hypothesis]], weight: float
) -> list[list[Hypothesis]]:
    """Add the coverage penalty to the scores of each sentence's hypotheses, and sort them again, best first.

    source (B, S), padded; pools: of each sentence. The penalty is weight * sum over source subwords i of
    log min(1, sum over target tokens j of p_ij) (Wu et al. 2016, equation 14), with the attention p of the last decoder
    layer, averaged over its heads, from a forward pass of each hypothesis; `</s>` is a target token, but no source
    subword.
    """
    sources = [ids[: ids.index(EOS)] for ids in source.tolist()]
    numbered = [(number, hypothesis) for number, pool in enumerate(pools) for hypothesis in pool]
    longest = max((len(hypothesis.tokens) for _, hypothesis in numbered), default=0)
    count = max(1, _AT_ONCE // (source.size(1) + longest + 1))
    results: list[list[Hypothesis]] = [[] for _ in pools]
    for start in range(0, len(numbered), count):
        part = numbered[start : start + count]
        attention = _cross_attention(
            model, [sources[number] for number, _ in part], [each.tokens for _, each in part], source.device
        )
        for (number, each), weights in zip(part, attention, strict=True):  # weights (T, S)
            attended = weights[: len(each.tokens) + each.finished, : len(sources[number])].sum(dim=0)
            penalty = weight * attended.clamp(min=_LEAST, max=1.0).log().sum().item()
            results[number].append(replace(each, score=each.score + penalty))
    return [sorted(pool, key=lambda hypothesis: -hypothesis.score) for pool in results]


def _cross_attention(
    model: Seq2Seq, sources: list[list[int]], targets: list[list[int]], device: torch.device
) -> Tensor:
    """Return the weights (N, T, S) of the last decoder layer's attention to the source, averaged over its heads."""
    attention = model.inspect(collate(sources, targets).to(device)).attention
    names = [name for name in attention if name.startswith("decoder") and name.endswith("cross")]
    if not names:
        raise ConfigError(f"{model.architecture} has no attention from target to source")
    return attention[names[-1]].float().mean(dim=1)
