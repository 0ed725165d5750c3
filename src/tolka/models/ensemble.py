"""An ensemble of several models as one model.

Shapes: B sentences, k hypotheses a sentence, N valid target tokens, V vocabulary; D is the sum of the members' widths.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from tolka.data.batch import Batch
from tolka.models.base import DecoderState, Seq2Seq


@dataclass(frozen=True)
class EnsembleState(DecoderState):
    """The states of all members, for the same hypotheses."""

    states: list[DecoderState]

    def select(self, rows: Tensor) -> "EnsembleState":
        return EnsembleState([state.select(rows) for state in self.states])


class Ensemble(Seq2Seq):
    """The mean of several models' next-token probabilities (Sutskever et al. 2014, section 3.6).

    They may be of any architectures, but must have the same vocabulary. Features are the members' features side by
    side.
    """

    def __init__(self, members: Sequence[Seq2Seq]) -> None:
        super().__init__()
        # A set of one: the members' probabilities are of the same subwords.
        (self.vocabulary_size,) = {member.vocabulary_size for member in members}
        self.feature_size = sum(member.feature_size for member in members)
        self.members = cast(Sequence[Seq2Seq], nn.ModuleList(members))

    def forward(self, batch: Batch) -> Tensor:
        return torch.cat([member(batch) for member in self.members], dim=-1)

    def logits(self, features: Tensor) -> Tensor:
        """Return the logarithm of the mean of probabilities."""
        per_member = torch.split(features, [member.feature_size for member in self.members], dim=-1)
        log_p = [member.logits(part).log_softmax(dim=-1) for member, part in zip(self.members, per_member, strict=True)]
        # log((p_1 + ... + p_M) / M), without leaving the logarithm, where small p would become 0. The subtraction comes
        # last: its result may be overwritten, as `Seq2Seq.logits` promises, and that of logsumexp may not.
        return torch.stack(log_p).logsumexp(dim=0) - math.log(len(log_p))

    def logits_parameters(self) -> list[nn.Parameter]:
        return [parameter for member in self.members for parameter in member.logits_parameters()]

    def start(self, source: Tensor, lengths: Tensor) -> DecoderState:
        return EnsembleState([member.start(source, lengths) for member in self.members])

    def step(self, token: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        assert isinstance(state, EnsembleState)
        features, states = zip(
            *(member.step(token, own) for member, own in zip(self.members, state.states, strict=True)), strict=True
        )
        return torch.cat(features, dim=-1), EnsembleState(list(states))
