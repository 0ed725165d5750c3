"""The plain loop over nn.RNN, nn.LSTM or nn.GRU, frozen like plain.py: one layer each, attention W ("general").

What anyone would write: the encoder runs on into the padding, the target's padding has logits too. nn.GRU lets its
reset gate act behind the matrix, where Cho et al. and tolka have it before.

    python benchmarks/plain_recurrent.py WORK UPDATES WINDOW fp32|bf16 rnn|lstm|gru
"""

import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from plain import PAD, VOCABULARY, WIDTH, loop

CELLS = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}


class PlainRecurrent(nn.Module):
    """Encoder, decoder, attention between them (Luong et al. 2015), one matrix for source, target and output."""

    def __init__(self, cell: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=WIDTH**-0.5)
        self.encoder, self.decoder = (CELLS[cell](WIDTH, WIDTH, batch_first=True) for _ in range(2))
        self.key = nn.Linear(WIDTH, WIDTH, bias=False)
        self.readout = nn.Linear(2 * WIDTH, WIDTH, bias=False)
        self.bias = nn.Parameter(torch.zeros(VOCABULARY))
        self.dropout = nn.Dropout(0.1)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """(B, S), (B, T) -> logits (B, T, V)."""
        encoded, last = self.encoder(self.dropout(self.embedding(source)))
        states, _ = self.decoder(self.dropout(self.embedding(target)), last)
        scores = states @ self.key(encoded).transpose(1, 2)
        weights = scores.masked_fill((source == PAD)[:, None], float("-inf")).softmax(-1)
        features = self.readout(self.dropout(torch.cat([states, weights @ encoded], dim=-1)))
        return F.linear(features, self.embedding.weight, self.bias)


if __name__ == "__main__":
    torch.manual_seed(1)
    model = PlainRecurrent(sys.argv[5])
    loop(model, model, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
