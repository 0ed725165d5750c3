"""The length penalty, by which a hypothesis's log-probability is divided."""

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

NORMALIZATIONS = ("gnmt", "plain", "none")
Length = TypeVar("Length", float, "Tensor")


def length_penalty(length: Length, normalization: str, exponent: float) -> Length:
    """Return lp(Y), of one length or of several; |Y| includes `</s>`. It never falls as |Y| grows.

    gnmt: ((5 + |Y|) / 6) ** a (Wu et al. 2016, section 7). plain: |Y| ** a. none: 1.
    """
    # Every token lowers log p: undivided, short translations would win. gnmt begins at 1 and grows slowly at first.
    base: Length = (5.0 + length) / 6.0 if normalization == "gnmt" else length
    result: Length = base ** (0.0 if normalization == "none" else exponent)
    return result
