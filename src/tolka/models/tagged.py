"""A model with the tags of one direction, which a search then knows nothing of.

Shapes: B sentences, k hypotheses a sentence, S source tokens, D width.
"""

import torch
from torch import Tensor, nn

from tolka.data.batch import BOS, Batch
from tolka.models.seq2seq import DecoderState, Seq2Seq
from tolka.tokenizer.language_tags import Tags


class Tagged(Seq2Seq):
    """Puts the tags before each source, and has the decoder read those of the target before the first step.

    So hypotheses are without tags: these count neither for their scores nor for the limits of their lengths. A search
    chooses none of `Tags.never`.
    """

    def __init__(self, model: Seq2Seq, tags: Tags) -> None:
        super().__init__()
        self.model, self.tags = model, tags
        self.vocabulary_size, self.feature_size = model.vocabulary_size, model.feature_size

    def forward(self, batch: Batch) -> Tensor:
        """Return the features of a batch, whose rows have their tags from `collate`."""
        return self.model(batch)

    def logits(self, features: Tensor) -> Tensor:
        return self.model.logits(features)

    def logits_parameters(self) -> list[nn.Parameter]:
        return self.model.logits_parameters()

    def start(self, source: Tensor, lengths: Tensor) -> DecoderState:
        self.without_text = source.new_tensor(self.tags.never) if self.tags.never else None
        before = source.new_tensor(self.tags.source).expand(len(source), -1)
        state = self.model.start(torch.cat([before, source], dim=1), lengths + before.size(1))
        for token in (BOS, *self.tags.target)[:-1]:
            _, state = self.model.step(source.new_full((len(source), 1), token), state)
        return state

    def step(self, token: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        # The search begins from <s>, and from the last of the tags, which the decoder has yet to read.
        return self.model.step(token.masked_fill(token == BOS, (BOS, *self.tags.target)[-1]), state)
