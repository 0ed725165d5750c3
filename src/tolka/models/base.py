"""The contract of an architecture: its options, and what search, losses and the trainer know of a model."""

from tolka.models.options import MODELS, ModelConfig
from tolka.models.seq2seq import DecoderState, Inspection, Seq2Seq, remaining_sentences

__all__ = ["MODELS", "DecoderState", "Inspection", "ModelConfig", "Seq2Seq", "remaining_sentences"]
