"""Batches padded up to few shapes, so that `trainer.compile=reduce-overhead` captures few CUDA graphs."""

from tolka.data.batch import Batch

_FINENESS = 4  # bits of a number of tokens that are told apart
_LEAST = 16  # of what sizes are multiples


def padded_to_few_shapes(batch: Batch) -> Batch:
    """Return the batch, on the CPU, with padding pairs behind it, which count for nothing (see `Batch.filled`).

    At most an eighth is added to the tokens of either side, 5 % as a rule.
    """
    longest = _power_of_two(max(_LEAST, batch.source.size(1), batch.target_in.size(1)))
    sources, targets = int(batch.source_lengths.sum()), int(batch.target_lengths.sum())
    more = 1  # padding pairs of at least a token: as few as hold what either side is rounded up by
    while max(_rounded(tokens + more) - tokens for tokens in (sources, targets)) > more * longest:
        more += 1
    sentences = _power_of_two(len(batch.source) + more)
    return batch.filled(sentences, _rounded(sources + more), _rounded(targets + more), longest)


def _power_of_two(size: int) -> int:
    """Return the smallest power of two that is not below `size`."""
    return 1 << (size - 1).bit_length()


def _rounded(tokens: int) -> int:
    """Round a number of tokens up to one of 8 sizes per power of two."""
    step = max(_LEAST, 1 << max(0, tokens.bit_length() - _FINENESS))
    return -(-tokens // step) * step
