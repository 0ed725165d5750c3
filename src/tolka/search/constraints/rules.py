"""Rules for the next token: what every search may forbid or force.

Which tokens banned phrases forbid is looked up by the last token, whatever the length of their list.

Shapes: B active sentences, k hypotheses a sentence, V vocabulary, t tokens so far, P phrases of m tokens.
"""

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from tolka.data.batch import EOS, PAD
from tolka.errors import DataError
from tolka.search.base import NEVER, SearchConfig
from tolka.search.hypothesis import Ids, Wishes, check_prefix, check_subwords

_LISTS_CACHED = 4  # lists of banned phrases whose tables are kept for the next batch


class Rules:
    """The rules for the sentences of one batch; true if there are any.

    They are functions of a hypothesis's tokens and of its sentence's number, and keep nothing in between: search may
    re-order hypotheses and remove sentences as it likes.
    """

    def __init__(self, config: SearchConfig, lengths: Tensor, wishes: Wishes = ()) -> None:
        """lengths: (B,) of the sources, `</s>` included. wishes: of each sentence, or none at all.

        DataError for a prefix or a phrase that cannot be.
        """
        self._ngram, self._min_length = config.no_repeat_ngram, config.min_length
        limits = config.limits(lengths)
        self._most = limits - 1  # </s> must have a place
        self._prefixes = _prefix_table(wishes, limits)
        self._banned = banned_phrases(wishes, lengths.device)

    def __bool__(self) -> bool:
        """Return whether any rule is on."""
        return self._ngram > 0 or self._min_length > 0 or self._prefixes.size(1) > 0 or bool(self._banned)

    def apply(self, log_p: Tensor, tokens: Tensor, sentences: Tensor) -> None:
        """Change the next tokens' log-probabilities (B, k, V) in place; they are not normalised again.

        tokens (B, k, t): the hypotheses so far. sentences (B,): the number of each sentence in the batch at the start.
        A forced prefix goes before all other rules. If they forbid every token, `</s>` is allowed.
        """
        length = tokens.size(2)
        # Read before the rules change them: what `</s>` gets back, and what the prefix's token keeps.
        end = log_p[..., EOS].clone()
        has_prefixes = length < self._prefixes.size(1)
        if has_prefixes:
            # (B, k, 1): the prefix's token at this place, `<pad>` where there is none.
            forced = self._prefixes[sentences, length][:, None, None].expand(-1, tokens.size(1), 1)
            forced_log_p = log_p.gather(2, forced)
        if 0 < self._ngram <= length:
            self._ban_repetition(log_p, tokens)
        for phrases in self._banned:
            phrases.ban(log_p, tokens, sentences)
        if length < self._min_length:
            # Only while another subword fits: at the limit `</s>` has to be possible.
            log_p[..., EOS].masked_fill_((length < self._most[sentences])[:, None], NEVER)
        # A hypothesis with every token forbidden ends, instead of vanishing from the beam.
        is_stuck = log_p.amax(dim=-1) == NEVER
        log_p[..., EOS] = torch.where(is_stuck, end, log_p[..., EOS])
        if has_prefixes:
            log_p.masked_fill_(forced != PAD, NEVER)
            # Sentences without a prefix here have `<pad>` in `forced`, which is -inf before and after.
            log_p.scatter_(2, forced, forced_log_p)

    def _ban_repetition(self, log_p: Tensor, tokens: Tensor) -> None:
        """Forbid each token that would complete an n-gram that the hypothesis has already."""
        ngrams = tokens.unfold(2, self._ngram, 1)  # (B, k, t - n + 1, n)
        # The last n - 1 tokens; where an n-gram begins with them, its own last token is forbidden.
        last = tokens[..., tokens.size(2) - self._ngram + 1 :]
        is_same = (ngrams[..., :-1] == last[:, :, None]).all(dim=-1)
        # By adding -inf or 0, so that a token that ends two n-grams, of which one begins with them, is forbidden.
        bans = torch.zeros(is_same.shape, device=log_p.device).masked_fill_(is_same, NEVER)
        log_p.scatter_add_(2, ngrams[..., -1], bans)


def _prefix_table(wishes: Wishes, limits: Tensor) -> Tensor:
    """Return the prefixes (B, longest), padded; (0, 0) if there are none."""
    longest = max((len(wish.prefix) for wish in wishes), default=0)
    if not longest:
        return limits.new_empty(0, 0)
    for wish, limit in zip(wishes, limits.tolist(), strict=True):
        check_prefix(wish.prefix, limit)
    rows = [[*wish.prefix, *[PAD] * (longest - len(wish.prefix))] for wish in wishes]
    return torch.tensor(rows, device=limits.device)


@dataclass(frozen=True)
class BannedPhrases:
    """Banned phrases of one length m.

    ids (P, m); where (all sentences,): whether they are banned there; None where they are in all.
    """

    ids: Tensor
    where: Tensor | None = None

    def ban(self, log_p: Tensor, tokens: Tensor, sentences: Tensor) -> None:
        """Set log_p (B, k, V) to -inf at the last token of each phrase whose other tokens end a hypothesis.

        tokens (B, k, t). sentences (B,): the number of each sentence in the batch at the start.
        """
        ids, before = self.ids, self.ids.size(1) - 1
        # Single tokens that are banned everywhere need no look at the hypotheses.
        if not before and self.where is None:
            log_p.index_fill_(2, ids[:, 0], NEVER)
            return
        if tokens.size(2) < before:
            return
        if before:
            # Few phrases of a long list have the last token of any hypothesis as their last but one.
            ends = torch.zeros_like(log_p[0, 0], dtype=torch.bool).index_fill_(0, tokens[..., -1].flatten(), True)
            ids = ids[ends[ids[:, -2]]]
        matches = (tokens[:, :, None, tokens.size(2) - before :] == ids[:, :-1]).all(dim=-1)  # (B, k, P)
        if self.where is not None:
            matches &= self.where[sentences][:, None, None]
        sentence, hypothesis, phrase = matches.nonzero(as_tuple=True)
        log_p[sentence, hypothesis, ids[phrase, -1]] = NEVER


def banned_phrases(wishes: Wishes, device: torch.device) -> list[BannedPhrases]:
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
    """Return the ids of the phrases, those of one length together."""
    # Found again by the hash of all ids: 0.15 ms a batch for 10000 phrases.
    of_length: dict[int, list[Ids]] = {}
    for phrase in set(banned):
        check_subwords(phrase, "a banned phrase")
        if not phrase:
            raise DataError("a banned phrase has no subwords: leave it out")
        of_length.setdefault(len(phrase), []).append(phrase)
    with torch.inference_mode(False):  # the next call may not be in that mode
        return [torch.tensor(each) for _, each in sorted(of_length.items())]
