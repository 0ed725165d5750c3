"""The parts of a beam, with numbers that can be checked by hand."""

import torch
from tolka.search.finished import Finished, extend, results_of

from tolka.data.batch import EOS
from tolka.search.base import NEVER, Candidates

TOKENS = torch.tensor([[[5], [6]]])  # one sentence, two hypotheses of one token


def test_the_best_candidates_finish_or_stay() -> None:
    """An end finishes only among the k best: the last one here is dropped."""
    candidates = Candidates(
        parent=torch.tensor([[0, 1, 0, 1]]),
        token=torch.tensor([[EOS, 7, 8, EOS]]),
        log_probability=torch.tensor([[-1.0, -2.0, -3.0, -4.0]]),
    )
    found = extend(TOKENS, candidates, 2)
    assert found.is_finished.tolist() == [[True, False, False, False]]
    assert found.tokens.tolist() == [[[6, 7], [5, 8]]]
    assert found.rank.tolist() == [[-2.0, -3.0]]


def test_results_are_ordered_by_score_and_active_ones_stand_in() -> None:
    finished = Finished.empty(2, 1, torch.tensor([4, 4]))
    prefixes = torch.tensor([[[5], [6]], [[5], [6]]])
    marks = torch.tensor([[True, True], [False, False]])
    finished = finished.add(marks, prefixes, torch.tensor([[-4.0, -1.0], [0.0, 0.0]]), penalty=2.0)
    assert (finished.count.tolist(), finished.best.tolist()) == ([2, 0], [[-0.5], [NEVER]])
    found = results_of(finished, prefixes, torch.tensor([[0.0, 0.0], [-3.0, NEVER]]), 1, lambda length: length)
    assert [(each.tokens, each.score, each.finished) for each in found[0]] == [([6], -0.5, True), ([5], -2.0, True)]
    assert [(each.tokens, each.score, each.finished) for each in found[1]] == [([5], -3.0, False)]
