"""Rules for the next token: what every search may forbid or force.

Shapes: B active sentences, k hypotheses a sentence, V vocabulary, t tokens so far.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from tolka.data.batch import EOS, PAD
from tolka.search.base import NEVER, SearchConfig
from tolka.search.constraints.banned import banned_phrases
from tolka.search.hypothesis import Wish, check_prefix


class Rules:
    """The rules for the sentences of one batch; true if there are any.

    They are functions of a hypothesis's tokens and of its sentence's number, and keep nothing in between: search may
    re-order hypotheses and remove sentences as it likes.
    """

    def __init__(self, config: SearchConfig, lengths: Tensor, wishes: Sequence[Wish] = ()) -> None:
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
        return self._ngram > 0 or self._min_length > 0 or self._prefixes is not None or bool(self._banned)

    def apply(self, log_p: Tensor, tokens: Tensor, sentences: Tensor) -> None:
        """Change the next tokens' log-probabilities (B, k, V) in place; they are not normalised again.

        tokens (B, k, t): the hypotheses so far. sentences (B,): the number of each sentence in the batch at the start.
        A forced prefix goes before all other rules. If they forbid every token, `</s>` is allowed.
        """
        length = tokens.size(2)
        # Read before the rules change them: what `</s>` gets back, and what the prefix's token keeps.
        end = log_p[..., EOS].clone()
        forced = self._forced(length, sentences, tokens.size(1))
        forced_log_p = None if forced is None else log_p.gather(2, forced)
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
        if forced is not None and forced_log_p is not None:
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

    def _forced(self, length: int, sentences: Tensor, hypotheses: int) -> Tensor | None:
        """Return (B, k, 1): the prefix's token at this place, `<pad>` where there is none; None if no sentence has."""
        if self._prefixes is None or length >= self._prefixes.size(1):
            return None
        return self._prefixes[sentences, length][:, None, None].expand(-1, hypotheses, 1)


def _prefix_table(wishes: Sequence[Wish], limits: Tensor) -> Tensor | None:
    """Return the prefixes (B, longest), padded; None if there are none."""
    longest = max((len(wish.prefix) for wish in wishes), default=0)
    if not longest:
        return None
    for wish, limit in zip(wishes, limits.tolist(), strict=True):
        check_prefix(wish.prefix, limit)
    rows = [[*wish.prefix, *[PAD] * (longest - len(wish.prefix))] for wish in wishes]
    return torch.tensor(rows, device=limits.device)
