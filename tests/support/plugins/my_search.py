"""A user's own search, in one file: the most likely first token, and nothing after it."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from tolka.data.batch import EOS
from tolka.models.base import Seq2Seq
from tolka.search.base import first_tokens, next_log_probabilities
from tolka.search.hypothesis import Hypothesis, Wish
from tolka.search.options import SEARCHES, Search, SearchConfig


@SEARCHES.register("first_word")
@dataclass(frozen=True)
class FirstWordConfig(SearchConfig):
    """Options of the search, which are those of every search."""

    name: str = "first_word"
    """the kind of search: first_word"""

    @property
    def width(self) -> int:
        """One hypothesis a sentence."""
        return 1

    def build(self) -> "FirstWordSearch":
        """Return the search."""
        return FirstWordSearch()


class FirstWordSearch(Search):
    """One step of the model."""

    def search(
        self, model: Seq2Seq, source: Tensor, lengths: Tensor, wishes: Sequence[Wish] = ()
    ) -> list[list[Hypothesis]]:
        """Return translations of at most one token."""
        features, _ = model.step(first_tokens(len(source), source.device), model.start(source, lengths))
        best = next_log_probabilities(model, features)[:, 0].max(dim=-1)
        return [
            [Hypothesis([] if token == EOS else [token], log_p, log_p, finished=token == EOS)]
            for log_p, token in zip(best.values.tolist(), best.indices.tolist(), strict=True)
        ]
