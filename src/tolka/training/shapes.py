"""Batches padded up to few shapes, so that `trainer.compile=reduce-overhead` captures few CUDA graphs."""

from tolka.data.batch import Batch

_BITS = 4  # leading bits of a number of tokens that rounding keeps
_MULTIPLE = 16  # of which all sizes are multiples


def padded_to_few_shapes(batch: Batch) -> Batch:
    """Return the batch, on the CPU, with padding pairs after it that have no effect (see `Batch.filled`).

    At most an eighth is added to the tokens of either side, 5 % as a rule.
    """
    longest = _power_of_two(max(_MULTIPLE, batch.source.size(1), batch.target_in.size(1)))
    sources, targets = int(batch.source_lengths.sum()), int(batch.target_lengths.sum())
    padding = 1  # pairs of at least a token each, as few as hold the tokens that rounding up adds to either side
    while max(_rounded(tokens + padding) - tokens for tokens in (sources, targets)) > padding * longest:
        padding += 1
    sentences = _power_of_two(len(batch.source) + padding)
    return batch.filled(sentences, _rounded(sources + padding), _rounded(targets + padding), longest)


def _power_of_two(size: int) -> int:
    """Return the smallest power of two that is not below `size`."""
    return 1 << (size - 1).bit_length()


def _rounded(tokens: int) -> int:
    """Round a number of tokens up to one of 8 sizes per power of two."""
    step = max(_MULTIPLE, 1 << max(0, tokens.bit_length() - _BITS))
    return -(-tokens // step) * step
