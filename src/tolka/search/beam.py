"""Beam search with a length penalty.

Shapes: B active sentences, k beam size, c = 2k candidates a sentence, t tokens so far.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from tolka.errors import ConfigError
from tolka.models.base import Seq2Seq
from tolka.options.checks import at_least, at_most, one_of, zero_or_more
from tolka.options.settings import setting
from tolka.search.base import (
    SEARCHES,
    Search,
    SearchConfig,
    active_rows,
    extensions,
    first_tokens,
    next_log_probabilities,
)
from tolka.search.constrained import TermOptions, search_with_terms
from tolka.search.coverage import check_attention, covered
from tolka.search.finished import Finished, extend, results_of
from tolka.search.hypothesis import Hypothesis, Wish
from tolka.search.rules import Rules

_MAX_BEAM_SIZE, _MAX_LENGTH_PENALTY = 10**6, 20.0  # beyond, memory or floats overflow
_NEVER = float("-inf")
_MAX_BONUS = 1000.0
_NORMALIZATIONS = ("gnmt", "plain", "none")
_GLOSSARY_MODES = ("hard", "soft")
_NEEDS_GLOSSARY = ("search.glossary", "a glossary (search.glossary)")


@SEARCHES.register("beam")
@dataclass(frozen=True)
class BeamConfig(SearchConfig):
    """Options of beam search."""

    MEETS_TERMS: ClassVar[bool] = True

    name: str = "beam"
    """the kind of search: beam"""
    beam_size: int = 5
    """hypotheses kept for each sentence"""
    length_normalization: str = "gnmt"
    """what log-probabilities are divided by: gnmt ((5 + length) / 6) ** a, plain length ** a, none 1"""
    length_penalty: float = 1.0
    """a, the exponent above; 0 = off, more = longer translations"""
    coverage_penalty: float = 0.0
    """ranks translations lower whose attention leaves source subwords out (Wu et al. 2016, equation 14); 0 = off"""
    n_best: int = 1
    """translations returned for each sentence, at most beam_size"""
    glossary_mode: str = setting("hard", needs=_NEEDS_GLOSSARY)
    """hard: a translation contains the glossary's terms; soft: terms are made more likely, by glossary_bonus"""
    glossary_bonus: float = setting(1.0, needs=_NEEDS_GLOSSARY)
    """soft: added to a hypothesis's log-probability for each subword of a glossary's term, in nats"""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, "search", 1, "beam_size", "n_best")
        at_most(self, "search", _MAX_BEAM_SIZE, "beam_size")
        one_of(self, "search", "length_normalization", _NORMALIZATIONS)
        one_of(self, "search", "glossary_mode", _GLOSSARY_MODES)
        zero_or_more(self, "search", "off", "length_penalty", "coverage_penalty", "glossary_bonus")
        at_most(self, "search", _MAX_BONUS, "glossary_bonus")
        at_most(self, "search", _MAX_LENGTH_PENALTY, "length_penalty", "coverage_penalty")
        if self.n_best > self.beam_size:
            raise ConfigError(
                f"search.n_best ({self.n_best}) must be at most search.beam_size ({self.beam_size}): raise that too"
            )

    @property
    def width(self) -> int:
        return self.beam_size

    @property
    def returned(self) -> int:
        return self.n_best

    @property
    def compared(self) -> int:
        """Number of finished hypotheses that no active one may be able to beat before the search of a sentence ends."""
        return self.beam_size if self.coverage_penalty else self.n_best

    def penalty(self, length: float) -> float:
        """Return lp(Y), by which log-probabilities are divided; |Y| includes `</s>`.

        gnmt: ((5 + |Y|) / 6) ** a (Wu et al. 2016, section 7). plain: |Y| ** a.
        """
        if self.length_normalization == "none":
            return 1.0
        base = (5.0 + length) / 6.0 if self.length_normalization == "gnmt" else length
        return float(base**self.length_penalty)

    def penalties(self, lengths: Tensor) -> Tensor:
        """Return `penalty` of each length; it never falls as the length grows."""
        if self.length_normalization == "none":
            return torch.ones(lengths.shape, device=lengths.device)
        base = (5.0 + lengths) / 6.0 if self.length_normalization == "gnmt" else lengths.float()
        return base**self.length_penalty

    @property
    def term_options(self) -> TermOptions:
        """The options as `search_with_terms` takes them."""
        bonus = self.glossary_bonus if self.glossary_mode == "soft" else None
        return TermOptions(self, self.beam_size, self.compared, self.penalty, self.penalties, bonus)

    def build(self) -> Search:
        return BeamSearch(self)


class BeamSearch(Search):
    """Extend the beam_size most likely hypotheses of each sentence, token by token."""

    def __init__(self, config: BeamConfig) -> None:
        self.config = config

    def search(
        self, model: Seq2Seq, source: Tensor, lengths: Tensor, scored: bool = True, wishes: Sequence[Wish] = ()
    ) -> list[list[Hypothesis]]:
        """Return the finished hypotheses of each sentence, about beam_size of them, best first.

        A sentence is finished when beam_size hypotheses are, or when no active one can still beat the n_best best
        finished ones: its log-probability only falls, so log p / lp(limit) bounds every score it can reach. With a
        coverage penalty, which is known of finished hypotheses only, beam_size of them are compared.
        """
        if self.config.coverage_penalty:
            check_attention(model, source.device)
        if any(wish.terms for wish in wishes):
            results = search_with_terms(
                self.config.term_options, model, source, lengths, wishes, self._search_without_terms
            )
        else:
            results = self._search_without_terms(model, source, lengths, wishes)
        if self.config.coverage_penalty:
            return covered(model, source, results, self.config.coverage_penalty)
        return results

    def _search_without_terms(
        self, model: Seq2Seq, source: Tensor, lengths: Tensor, wishes: Sequence[Wish]
    ) -> list[list[Hypothesis]]:
        """Return the finished hypotheses of each sentence, best first."""
        beam = _Beam(self.config, model, source, lengths, wishes)
        while len(beam.active):
            beam.advance()
        return beam.results


class _Beam:
    """State of the search: k active hypotheses for each active sentence, and the results of finished sentences."""

    def __init__(
        self, config: BeamConfig, model: Seq2Seq, source: Tensor, lengths: Tensor, wishes: Sequence[Wish]
    ) -> None:
        self.config = config
        self.model = model
        self.rules = Rules(config, lengths, wishes)
        self.state = model.start(source, lengths)
        self.token = first_tokens(len(source), source.device)  # (B, k), with k = 1 at first
        self.tokens = self.token.new_empty(len(source), 1, 0)  # (B, k, t)
        self.total = torch.zeros(len(source), 1, device=source.device)  # (B, k) log-probabilities
        self.active = torch.arange(len(source), device=source.device)  # (B,): the number of each sentence in `source`
        self.limits = config.limits(lengths)
        self.last_penalty = config.penalties(self.limits)
        self.finished = Finished.empty(config.beam_size, config.compared, self.limits)
        self.results: list[list[Hypothesis]] = [[] for _ in range(len(source))]
        self.step = 0

    def advance(self) -> None:
        """Extend every active hypothesis by one token; remove finished sentences from the batch."""
        beam_size = self.config.beam_size
        features, self.state = self.model.step(self.token, self.state)
        log_p = next_log_probabilities(self.model, features)
        if self.rules:
            self.rules.apply(log_p, self.tokens, self.active)
        # 2k candidates: at most k of them end in </s>, so that at least k do not.
        candidates = extensions(log_p, self.total, 2 * beam_size)
        self.step += 1
        found = extend(self.tokens, candidates, beam_size)
        penalty = self.config.penalty(self.step)
        self.finished = self.finished.add(found.is_finished, found.prefixes, candidates.log_probability, penalty)

        total, token, tokens = found.rank, found.token, found.tokens
        sentence = torch.arange(len(tokens), device=tokens.device)[:, None]
        rows = sentence * self.tokens.size(1) + candidates.parent.gather(1, found.chosen)  # of the state's hypotheses

        finished = self._is_finished(total[:, 0])
        if bool(finished.any()):
            done = finished.nonzero()[:, 0]
            results = results_of(self.finished.select(done), tokens[done], total[done], self.step, self.config.penalty)
            for number, result in zip(self.active[done].tolist(), results, strict=True):
                self.results[number] = result
            left = active_rows(~finished)
            self.finished = self.finished.select(left)
            total, token, tokens, rows = total[left], token[left], tokens[left], rows[left]
            self.active, self.limits, self.last_penalty = self.active[left], self.limits[left], self.last_penalty[left]
        self.total, self.token, self.tokens = total, token, tokens
        if len(self.active):
            self.state = self.state.select(rows)

    def _is_finished(self, best_active: Tensor) -> Tensor:
        """Return (B,): whether no active hypothesis can change a sentence's result. best_active: (B,) log p."""
        full = (self.limits <= self.step) | (self.finished.count >= self.config.beam_size)
        return full | (best_active == _NEVER) | (best_active / self.last_penalty <= self.finished.best[:, -1])
