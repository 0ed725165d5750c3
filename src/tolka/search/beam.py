"""Beam search with a length penalty.

Shapes: B sentences still at work, k beam size, V vocabulary, t tokens so far.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from tolka.batch import EOS
from tolka.checks import at_least, zero_or_more
from tolka.models.base import Seq2Seq
from tolka.search.base import SEARCHES, Hypothesis, SearchConfig, first_tokens, next_log_probabilities


@SEARCHES.register("beam")
@dataclass(frozen=True)
class BeamConfig(SearchConfig):
    """Options of beam search."""

    name: str = "beam"
    """the kind of search: beam"""
    beam_size: int = 5
    """hypotheses kept for each sentence"""
    length_penalty: float = 1.0
    """a of ((5 + length) / 6) ** a, which log-probabilities are divided by; 0 = off, more = longer translations"""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, "search", 1, "beam_size")
        zero_or_more(self, "search", "off", "length_penalty")

    @property
    def width(self) -> int:
        """See SearchConfig.width."""
        return self.beam_size

    def penalty(self, length: float) -> float:
        """lp(Y) = ((5 + |Y|) / 6) ** a (Wu et al. 2016, section 7), `</s>` counted in |Y|."""
        return float(((5.0 + length) / 6.0) ** self.length_penalty)

    def search(self, model: Seq2Seq, source: Tensor, lengths: Tensor) -> list[list[Hypothesis]]:
        """See SearchConfig.search; up to beam_size finished hypotheses a sentence.

        A sentence is done when beam_size hypotheses have ended, or when no open one can still beat the best that
        has: its log-probability only falls, so log p / lp(limit) bounds every score it can reach.
        """
        work = _Beam(self, model, source, lengths)
        while len(work.alive):
            work.advance()
        return [sorted(pool, key=lambda h: -h.score) for pool in work.finished]


class _Beam:
    """The search's state: k open hypotheses for each sentence at work, and the finished ones of all sentences."""

    def __init__(self, config: BeamConfig, model: Seq2Seq, source: Tensor, lengths: Tensor) -> None:
        self.config = config
        self.model = model
        self.state = model.start(source, lengths)
        self.token = first_tokens(len(source), source.device)  # (B, k): one hypothesis to begin with
        self.tokens = self.token.new_empty(len(source), 1, 0)  # (B, k, t)
        self.total = torch.zeros(len(source), 1, device=source.device)  # (B, k) log-probabilities
        self.alive = torch.arange(len(source), device=source.device)  # (B,): which input each row is
        self.limits = config.limits(lengths)
        self.finished: list[list[Hypothesis]] = [[] for _ in range(len(source))]
        self.step = 0

    def advance(self) -> None:
        """One token more for every open hypothesis; sentences that are done leave."""
        features, self.state = self.model.step(self.token, self.state)
        log_p = next_log_probabilities(self.model, features) + self.total[..., None]  # (B, k, V)
        vocabulary = log_p.size(-1)
        self.step += 1
        # 2k candidates: even when each of the k open hypotheses could end, k that go on are among them.
        best = log_p.flatten(1).topk(min(2 * self.config.beam_size, log_p[0].numel()), dim=1)  # (B, 2k)
        parent, token = best.indices // vocabulary, best.indices % vocabulary
        ends = token == EOS
        self._collect(best.values, parent, ends)
        # Order is kept: topk of the rest, with those that ended (or are impossible) pushed to the back.
        open_scores = best.values.masked_fill(ends, float("-inf"))
        kept = open_scores.topk(min(self.config.beam_size, open_scores.size(1)), dim=1)
        self._go_on(kept.values, parent.gather(1, kept.indices), token.gather(1, kept.indices))

    def _collect(self, scores: Tensor, parent: Tensor, ends: Tensor) -> None:
        """Put aside the hypotheses that end among their sentence's best k candidates; all (B, 2k)."""
        among_best = ends & (scores > float("-inf"))
        among_best[:, self.config.beam_size :] = False
        rows, columns = among_best.nonzero(as_tuple=True)
        if not len(rows):
            return
        prefixes = self.tokens[rows, parent[rows, columns]].tolist()
        for number, tokens, log_p in zip(
            self.alive[rows].tolist(), prefixes, scores[rows, columns].tolist(), strict=True
        ):
            score = log_p / self.config.penalty(self.step)
            self.finished[number].append(Hypothesis(tokens, log_p, score, finished=True))

    def _go_on(self, total: Tensor, parent: Tensor, token: Tensor) -> None:
        """Extend the open hypotheses by `token`, all (B, k), and let sentences go that are done."""
        sentence = torch.arange(len(total), device=total.device)[:, None]
        tokens = torch.cat([self.tokens[sentence, parent], token[..., None]], dim=2)
        rows = sentence * self.tokens.size(1) + parent
        stays = [
            self._worth_going_on(*row)
            for row in zip(self.alive.tolist(), total[:, 0].tolist(), self.limits.tolist(), strict=True)
        ]
        for row, stay in enumerate(stays):
            if not stay and not self.finished[int(self.alive[row])]:
                self._take_unfinished(int(self.alive[row]), tokens[row], total[row])
        if not all(stays):
            keep = torch.tensor(stays, device=total.device).nonzero().squeeze(1)
            tokens, rows, token, total = tokens[keep], rows[keep], token[keep], total[keep]
            self.alive, self.limits = self.alive[keep], self.limits[keep]
        self.tokens, self.token, self.total = tokens, token, total
        if len(self.alive):
            self.state = self.state.select(rows)

    def _worth_going_on(self, number: int, best_open: float, limit: int) -> bool:
        """Whether an open hypothesis may still matter to this sentence's result."""
        pool = self.finished[number]
        if self.step >= limit or len(pool) >= self.config.beam_size or best_open == float("-inf"):
            return False
        reachable = best_open / self.config.penalty(limit)
        return not pool or reachable > max(hypothesis.score for hypothesis in pool)

    def _take_unfinished(self, number: int, tokens: Tensor, total: Tensor) -> None:
        """At the length limit with nothing finished: what there is, (k, t) tokens, is the translation."""
        for ids, log_p in zip(tokens.tolist(), total.tolist(), strict=True):
            if log_p > float("-inf"):
                score = log_p / self.config.penalty(self.step)
                self.finished[number].append(Hypothesis(ids, log_p, score, finished=False))
