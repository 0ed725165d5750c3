"""Greedy search, beam search and sampling by CTranslate2, with the results of tolka's own searches.

Its beam search keeps and finishes hypotheses as tolka's does (`src/decoding.cc` of CTranslate2): twice beam_size
candidates a step, of which a hypothesis finishes among the first beam_size, until `BeamConfig.enough` have. Ranking
them, and finding those that it cuts off in the last step, are done here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tolka.search.hypothesis import Hypothesis, Wishes, check_prefix
from tolka.search.options import BeamConfig, GreedyConfig, SamplingConfig, SearchConfig
from tolka.tokenizer.language_tags import NO_TAGS, Tags
from tolka.tokenizer.special_tokens import BOS, EOS, PAD

# CTranslate2's length penalty only sorts the finished hypotheses, which `_ranked` does by tolka's rule. The power of
# this one is 1; with 0, CTranslate2 would end a search only once its best hypothesis is finished.
_UNRANKED = 1e-30
NEVER = -1e9  # hypotheses that leave a forced prefix have scores below this one
_RULES = ("min_length", "no_repeat_ngram", "glossary", "banned")


@dataclass(frozen=True)
class Vocabularies:
    """Subwords of both sides by id; the model's number of positions, and the name of its attention map, "" = none."""

    source: Sequence[str]
    target: Sequence[str]
    positions: int
    attention: str = ""

    @cached_property
    def target_ids(self) -> dict[str, int]:
        """The id of each target subword."""
        return {piece: number for number, piece in enumerate(self.target)}


def spell(vocabulary: Sequence[str], rows: Sequence[Sequence[int]], before: Sequence[int] = ()) -> list[list[str]]:
    """Return the subwords of each row of ids, with those of `before` at its beginning."""
    return [[vocabulary[number] for number in (*before, *row)] for row in rows]


def unsupported_reason(search: SearchConfig) -> str:
    """Return why CTranslate2 does not give tolka's results for a search; "" if it does."""
    # By exact type: a subclass may add options that CTranslate2 knows nothing of.
    if type(search) not in (GreedyConfig, BeamConfig, SamplingConfig):
        return f"CTranslate2 has no search={getattr(search, 'name', type(search).__name__)}"
    for key in _RULES:
        if getattr(search, key):
            return f"CTranslate2 is not used with search.{key}"
    if isinstance(search, SamplingConfig):
        if search.epsilon:
            return "CTranslate2 has no search.epsilon"
        if search.top_k == 1:
            return "CTranslate2 does not sample with search.top_k=1, which is search=greedy"
        if search.top_k and search.top_p < 1.0:
            return "CTranslate2 applies search.top_p to the search.top_k tokens, and tolka to all"
    return ""


class CTranslate2Search:
    """A search on a model of CTranslate2.

    Hypotheses and scores are those of the torch engine but for rounding, with two exceptions: a hypothesis that ends
    right after a forced prefix is only considered where it is the most likely one; and samples depend on what else is
    translated.
    """

    def __init__(
        self, translator: Any, vocabulary: Vocabularies, config: SearchConfig, batch_size: int, tags: Tags = NO_TAGS
    ) -> None:
        """translator: a ctranslate2.Translator. batch_size: sentences per batch, 0 = all at once. tags: of the call."""
        self.translator, self.vocabulary, self.config, self.tags = translator, vocabulary, config, tags
        self._batch_size = batch_size

    def __call__(
        self, sources: Sequence[Sequence[int]], limits: Sequence[int], wishes: Wishes, scored: bool
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each source, best first; none where scores are not finite.

        limits: tokens of each translation, `</s>` included. wishes, scored: as for `Engine.translate`.
        """
        prefixes = [wish.prefix for wish in wishes] or [()] * len(sources)
        for prefix, limit in zip(prefixes, limits, strict=True):
            check_prefix(prefix, limit)
        scored = scored or not isinstance(self.config, GreedyConfig)
        # CTranslate2 takes one limit for a batch: the longest. Those beyond their own are searched again below.
        pools = self._search(sources, prefixes, max(limits), scored)
        # Searches of tolka never choose what stands for no text; here that is forbidden once a result has some of it.
        never = {PAD, BOS, *self.tags.never}
        # Sentences with the same limit and rules are searched again together.
        again: dict[tuple[int, bool], list[int]] = {}
        for number, (pool, limit) in enumerate(zip(pools, limits, strict=True)):
            only_subwords = any(not never.isdisjoint(each.tokens) for each in pool)
            if only_subwords or not self._is_settled(pool, limit):
                longest = limit if only_subwords else min(limit, max(map(_length, pool)))
                again.setdefault((longest, only_subwords), []).append(number)
        for (limit, only_subwords), numbers in again.items():
            texts = [sources[number] for number in numbers], [prefixes[number] for number in numbers]
            repeated = self._search(*texts, limit, scored, only_subwords, complete=True)
            for number, pool in zip(numbers, repeated, strict=True):
                pools[number] = pool
        return [self._ranked(pool) for pool in pools]

    def _is_settled(self, pool: Sequence[Hypothesis], limit: int) -> bool:
        """Return whether a complete search would have the same result."""
        if any(_length(each) > limit for each in pool):
            return False
        if not isinstance(self.config, BeamConfig) or self.config.beam_size == 1 or len(pool) < self.config.enough:
            return True
        # Where the last hypotheses finish together, CTranslate2 returns the most likely ones, with those cut off at the
        # limit, and not the best by score. What it leaves out is at most as likely as the least likely one here and at
        # most as long as the longest, so that its score is at most:
        least = min(each.log_probability for each in pool) / self.config.penalty(max(map(_length, pool)))
        certain = [each.tokens for each in self._ranked(pool) if each.finished and each.score >= least]
        return len(set(map(self._spelling, certain))) >= self.config.n_best

    def _spelling(self, ids: Sequence[int]) -> str:
        """Return the text of subwords without bytes: where two spellings differ, so do the translations."""
        # n_best counts different texts, as `Different` in search/options.py does.
        return "".join(
            self.vocabulary.target[number] for number in ids if not self.vocabulary.target[number].startswith("<0x")
        )

    def _ranked(self, pool: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Return the best hypotheses, best first; of a beam, unfinished ones only if none is finished."""
        if isinstance(self.config, BeamConfig):
            pool = [each for each in pool if each.finished] or pool
        return sorted(pool, key=lambda each: -each.score)[: self.config.candidate_count]

    def _search(
        self,
        sources: Sequence[Sequence[int]],
        prefixes: Sequence[Sequence[int]],
        limit: int,
        scored: bool,
        only_subwords: bool = False,
        complete: bool = False,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each source, of at most `limit` tokens.

        scored: whether scores are needed. only_subwords: forbids what stands for no text. complete: of a beam, all that
        are finished at `limit`, instead of the most likely ones.
        """
        options: dict[str, Any] = {"beam_size": 1, "length_penalty": 0.0}
        if isinstance(self.config, BeamConfig):
            # Until patience * beam_size hypotheses are finished, or to `limit`, where the beam's own join them.
            beam_size, count = self.config.beam_size, self.config.enough
            count += beam_size if complete and beam_size > 1 else 0
            options = {"beam_size": beam_size, "num_hypotheses": count, "length_penalty": _UNRANKED}
            options["patience"] = count / beam_size
        elif isinstance(self.config, SamplingConfig):
            options |= {
                "num_hypotheses": self.config.n_best,
                "sampling_topk": self.config.top_k,
                "sampling_topp": self.config.top_p,
                "sampling_temperature": self.config.temperature,
            }
        tags = self.tags
        if any(prefixes) or tags.target:
            options["target_prefix"] = spell(self.vocabulary.target, prefixes, tags.target)
        if only_subwords:
            never = PAD, BOS, *tags.never
            options["suppress_sequences"] = [[self.vocabulary.target[number]] for number in never]
        results = self.translator.translate_batch(
            spell(self.vocabulary.source, sources, tags.source),
            max_decoding_length=limit + len(tags.target),
            min_decoding_length=0,
            max_input_length=0,  # no limit; the default cuts a source off without a word
            max_batch_size=self._batch_size,
            return_end_token=True,
            return_scores=scored,  # in greedy search they take a fifth to a third of the time
            **options,
        )
        begun = self._prefix_scores(sources, prefixes) if scored and any(prefixes) else [0.0] * len(sources)
        return [self._hypotheses(each, before) for each, before in zip(results, begun, strict=True)]

    def _hypotheses(self, result: Any, before: float) -> list[Hypothesis]:
        """Return the hypotheses of a sentence. before: log-probability of its prefix, in nats."""
        pool = []
        for pieces, value in zip(result.hypotheses, result.scores or [math.nan], strict=True):
            # Without scores all are taken: `CTranslate2Engine` has checked that they are finite.
            if not result.scores or (math.isfinite(value + before) and value >= NEVER):
                ids, log_p = [self.vocabulary.target_ids[piece] for piece in pieces], value + before
                ids = ids[len(self.tags.target) :]
                is_finished = ids[-1:] == [EOS]
                penalty = self.config.penalty(len(ids)) if isinstance(self.config, BeamConfig) else 1.0
                pool.append(Hypothesis(ids[:-1] if is_finished else ids, log_p, log_p / penalty, is_finished))
        return pool

    def _prefix_scores(self, sources: Sequence[Sequence[int]], prefixes: Sequence[Sequence[int]]) -> list[float]:
        """Return the log-probability of each prefix, which CTranslate2 leaves out of its scores."""
        scores = self.translator.score_batch(
            spell(self.vocabulary.source, sources, self.tags.source),
            spell(self.vocabulary.target, prefixes, self.tags.target),
            max_input_length=0,
        )
        first = len(self.tags.target)
        return [sum(each.log_probs[first : first + len(prefix)]) for each, prefix in zip(scores, prefixes, strict=True)]


def _length(hypothesis: Hypothesis) -> int:
    """Return the number of tokens, `</s>` included."""
    return len(hypothesis.tokens) + hypothesis.finished
