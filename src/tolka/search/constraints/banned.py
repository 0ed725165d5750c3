"""Banned phrases: which tokens may not follow, looked up by the last token, whatever the length of the list.

Shapes: B active sentences, k hypotheses a sentence, V vocabulary, t tokens so far, P phrases of m tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from tolka.errors import DataError
from tolka.search.base import NEVER
from tolka.search.hypothesis import Ids, Wish, check_subwords

# Lists whose tables are kept for the next batch.
_LISTS_CACHED = 4


@dataclass(frozen=True)
class BannedPhrases:
    """Banned phrases of one length m, sorted by their last token but one.

    ids (P, m); where (all sentences,): whether they are banned there; None where they are in all.
    """

    ids: Tensor
    where: Tensor | None = None

    def ban(self, log_p: Tensor, tokens: Tensor, sentences: Tensor) -> None:
        """Set log_p (B, k, V) to -inf at the last token of each phrase whose other tokens end a hypothesis.

        tokens (B, k, t). sentences (B,): the number of each sentence in the batch at the start.
        """
        length = self.ids.size(1)
        # Single tokens that are banned everywhere need no look at the hypotheses.
        if length == 1 and self.where is None:
            log_p.index_fill_(2, self.ids[:, 0], NEVER)
            return
        if tokens.size(2) < length - 1:
            return
        # Few phrases share their last token but one with a hypothesis's end: only those are compared further.
        rows, phrases = self._rows(tokens)
        matches = torch.ones_like(rows, dtype=torch.bool)
        for place in range(length - 2):
            others = tokens[..., tokens.size(2) - length + 1 + place].flatten()
            matches &= others[rows] == self.ids[phrases, place]
        if self.where is not None:
            matches &= self.where[sentences[rows // tokens.size(1)]]
        rows, phrases = rows[matches], phrases[matches]
        log_p[rows // tokens.size(1), rows % tokens.size(1), self.ids[phrases, -1]] = NEVER

    def _rows(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return the pairs of a hypothesis, as a row of B * k, and a phrase whose last token but one ends it."""
        count = tokens.size(0) * tokens.size(1)
        if self.ids.size(1) == 1:
            first = torch.zeros(count, dtype=torch.long, device=tokens.device)
            end = first + len(self.ids)
        else:
            known, last = self.ids[:, -2].contiguous(), tokens[..., -1].flatten().contiguous()
            first, end = torch.searchsorted(known, last), torch.searchsorted(known, last, right=True)
        # Row r has the phrases first[r] .. end[r] - 1: all pairs side by side, without a loop over rows.
        counts = end - first
        rows = torch.arange(count, device=tokens.device).repeat_interleave(counts)
        offset = first - (counts.cumsum(0) - counts)
        return rows, torch.arange(len(rows), device=tokens.device) + offset[rows]


def banned_phrases(wishes: Sequence[Wish], device: torch.device) -> list[BannedPhrases]:
    """Return the phrases that the wishes ban, those of one list and length together.

    DataError for a phrase without subwords or with a special symbol.
    """
    # As a rule all sentences have one list: its tables are made once.
    tables = []
    for banned in {id(wish.banned): wish.banned for wish in wishes}.values():
        is_banned = torch.tensor([wish.banned is banned for wish in wishes], device=device)
        where = None if bool(is_banned.all()) else is_banned
        tables += [BannedPhrases(ids.to(device), where) for ids in _cached_tables(banned)]
    return tables


@lru_cache(_LISTS_CACHED)
def _cached_tables(banned: tuple[Ids, ...]) -> list[Tensor]:
    """Return the ids of the phrases, those of one length together, by their last token but one."""
    # Found again by the hash of all ids: 0.15 ms a batch for 10000 phrases.
    of_length: dict[int, list[Ids]] = {}
    for phrase in set(banned):
        check_subwords(phrase, "a banned phrase")
        if not phrase:
            raise DataError("a banned phrase has no subwords: leave it out")
        of_length.setdefault(len(phrase), []).append(phrase)
    with torch.inference_mode(False):  # the next call may not be in that mode
        return [torch.tensor(sorted(each, key=lambda phrase: phrase[-2:])) for _, each in sorted(of_length.items())]
