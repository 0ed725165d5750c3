"""Recurrent encoder-decoders: Elman, LSTM and GRU, deep, bidirectional, with and without attention."""

from tolka.models.rnn.config import RnnConfig

__all__ = ["RnnConfig"]
