"""Searches written out: one sentence, one hypothesis at a time, in Python lists, by teacher forcing.

Nothing of tolka.search is used, except the options: no state, no batch, no device, no early end of a search.
"""

import hashlib
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from tolka.data.batch import BOS, EOS, PAD, collate
from tolka.models.base import Seq2Seq
from tolka.search.hypothesis import NO_WISH, Wish

NEVER = -math.inf
Found = tuple[list[int], float, bool]
"""Tokens, log-probability, whether `</s>` was reached."""


class PlainSearch:
    """A model's next-token log-probabilities after any prefix, and searches over them."""

    def __init__(self, model: Seq2Seq) -> None:
        self.model = model
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...]], list[float]] = {}

    def log_p(self, source: Sequence[int], prefix: Sequence[int]) -> list[float]:
        """Log-probabilities of the token after the prefix; `<pad>` and `<s>` are impossible."""
        key = tuple(source), tuple(prefix)
        if key not in self._known:
            with torch.no_grad():
                last = self.model(collate([list(source)], [list(prefix)]))[-1]
                values = self.model.logits(last[None])[0].log_softmax(dim=0).tolist()
            values[PAD] = values[BOS] = NEVER
            self._known[key] = values
        return list(self._known[key])

    def compute(self, source: Sequence[int], targets: Sequence[Sequence[int]]) -> None:
        """Compute `log_p` after every beginning of the targets, in one pass, so that it is known afterwards."""
        with torch.no_grad():
            features = self.model(collate([list(source)] * len(targets), [list(target) for target in targets]))
            rows = iter(self.model.logits(features).log_softmax(dim=-1).tolist())
        for target in targets:
            for length in range(len(target) + 1):
                values = next(rows)
                values[PAD] = values[BOS] = NEVER
                self._known[tuple(source), tuple(target[:length])] = values

    def next_log_p(self, config: Any, source: Sequence[int], prefix: list[int], wish: Wish) -> list[float]:
        """Apply the rules of the options and the wish, as their help lines say."""
        given = self.log_p(source, prefix)
        if len(prefix) < len(wish.prefix):
            forced = wish.prefix[len(prefix)]
            return [value if token == forced else NEVER for token, value in enumerate(given)]
        found = list(given)
        for token in range(len(found)):
            longer = [*prefix, token]
            n = config.no_repeat_ngram
            earlier = [longer[start : start + n] for start in range(len(longer) - n)] if n else []
            if longer[len(longer) - n :] in earlier and n:
                found[token] = NEVER
            if any(longer[len(longer) - len(phrase) :] == list(phrase) for phrase in wish.banned):
                found[token] = NEVER
        fewest = min(config.min_length, limit(config, source) - 1)
        if len(prefix) < fewest:
            found[EOS] = NEVER
        if max(found) == NEVER:
            found[EOS] = given[EOS]
        return found

    def greedy(self, config: Any, source: Sequence[int], wish: Wish = NO_WISH) -> Found:
        """Take the most likely token until `</s>` or the limit."""
        tokens, total = list[int](), 0.0
        while len(tokens) < limit(config, source):
            log_p = self.next_log_p(config, source, tokens, wish)
            token = max(range(len(log_p)), key=lambda i: log_p[i])
            total += log_p[token]
            if token == EOS:
                return tokens, total, True
            tokens.append(token)
        return tokens, total, False

    def beam(self, config: Any, source: Sequence[int], wish: Wish = NO_WISH) -> list[Found]:
        """Beam search to its full end: until twice beam_size hypotheses are finished, or the limit is reached."""
        [found] = self.groups(config, source, config.beam_size, 1, 0.0, wish)
        return found

    def groups(
        self, config: Any, source: Sequence[int], beam_size: int, groups: int, diversity: float, wish: Wish = NO_WISH
    ) -> list[list[Found]]:
        """Diverse beam search: the hypotheses of each group; a group is a beam of beam_size / groups."""
        size = beam_size // groups
        active: list[list[tuple[list[int], float]]] = [[([], 0.0)] for _ in range(groups)]
        finished: list[list[Found]] = [[] for _ in range(groups)]
        for step in range(1, limit(config, source) + 1):
            taken: list[int] = []
            for group in range(groups):
                ranked = []
                for tokens, total in active[group]:
                    log_p = self.next_log_p(config, source, tokens, wish)
                    for token, value in enumerate(log_p):
                        if value > NEVER:
                            rank = total + value - diversity * taken.count(token)
                            ranked.append((rank, total + value, tokens, token))
                ranked.sort(key=lambda item: -item[0])
                ends = [item for item in ranked[:size] if item[3] == EOS]
                others = [item for item in ranked if item[3] != EOS][:size]
                finished[group] += [(tokens, value, True) for _, value, tokens, _ in ends]
                active[group] = [([*tokens, token], value) for _, value, tokens, token in others]
                taken += [EOS] * len(ends) + [token for *_, token in others]
                if len(finished[group]) >= (2 * size if size > 1 else 1) or step == limit(config, source):
                    finished[group] = finished[group] or [(tokens, value, False) for tokens, value in active[group]]
                    active[group] = []
        return finished

    def samples(self, config: Any, source: Sequence[int], wish: Wish = NO_WISH) -> list[Found]:
        """Draw each sample by itself, with the inverse of the cumulative distribution."""
        text = f"{config.seed} {list(source)} {list(wish.prefix)}"
        key = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")
        uniform = np.random.Generator(np.random.Philox(key=key)).random((config.n_best, limit(config, source)))
        found: list[Found] = []
        for row in uniform.tolist():
            tokens, total = list[int](), 0.0
            for number in row:
                log_p = self.next_log_p(config, source, tokens, wish)
                p = drawn_with(config, log_p)
                token, mass = 0, p[0]
                while mass <= number:
                    token += 1
                    mass += p[token]
                total += log_p[token]
                if token == EOS:
                    break
                tokens.append(token)
            found.append((tokens, total, token == EOS))
        return found


def drawn_with(config: Any, log_p: Sequence[float]) -> list[float]:
    """The probabilities that sampling draws the next token with."""
    weights = [math.exp(value / config.temperature) for value in log_p]
    p = [weight / math.fsum(weights) for weight in weights]
    order = sorted(range(len(p)), key=lambda token: -p[token])
    kept = set(order)
    if config.top_k:
        kept &= set(order[: config.top_k])
    nucleus, mass = set[int](), 0.0
    for token in order:
        if mass < config.top_p:
            nucleus.add(token)
        mass += p[token]
    kept &= nucleus
    kept &= {token for token in order if p[token] >= config.epsilon}
    kept.add(order[0])
    weights = [value if token in kept else 0.0 for token, value in enumerate(p)]
    return [weight / math.fsum(weights) for weight in weights]


def limit(config: Any, source: Sequence[int]) -> int:
    """Tokens that a translation may have, `</s>` included."""
    factor = Fraction(str(config.max_length_factor))
    return max(1, math.ceil(factor * (len(source) + 1))) + int(config.max_length_extra)


def scored(found: Found, penalty: float, normalization: str) -> float:
    """Log-probability divided by the length normalisation; the length counts `</s>`."""
    tokens, total, is_finished = found
    length = len(tokens) + is_finished
    base = {"gnmt": (5 + length) / 6, "plain": length, "none": 1}[normalization]
    return float(total / base**penalty)
