"""A stand-in for ctranslate2.Translator, whose answers are written by hand."""

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from tolka.engines.ctranslate2_search import Vocabularies

PIECES = ["<pad>", "<s>", "</s>", "<unk>", "▁a", "▁b", "▁c"]
VOCABULARY = Vocabularies(PIECES, PIECES, positions=10)


class FakeTranslator:
    """Returns the next of its answers for each call; `calls` has the options of each.

    answers: of each call, for each sentence its hypotheses, as (text, log-probability). token_scores: of `score_batch`.
    """

    device, compute_type = "cpu", "float32"

    def __init__(self, *answers: Sequence[Sequence[tuple[str, float]]], token_scores: Sequence[float] = ()) -> None:
        self.answers, self.token_scores = list(answers), list(token_scores)
        self.calls: list[dict[str, Any]] = []
        self.scored = 0

    def translate_batch(self, sources: list[list[str]], **options: Any) -> list[Any]:
        self.calls.append({"sources": sources, **options})
        return [
            SimpleNamespace(
                hypotheses=[text.split() for text, _ in pool],
                scores=[value for _, value in pool] if options["return_scores"] else [],
            )
            for pool in self.answers.pop(0)
        ]

    def score_batch(self, sources: list[list[str]], targets: list[list[str]], max_input_length: int) -> list[Any]:
        self.scored += 1
        scores = self.token_scores or [math.nan]
        return [SimpleNamespace(log_probs=scores[: len(target) + 1]) for target in targets]
