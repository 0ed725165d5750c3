"""A SentencePiece model in memory: to segment texts with, or to change."""

from importlib import import_module
from typing import Any


def processor_of(model: bytes) -> Any:
    """Load a SentencePiece model; RuntimeError, as SentencePiece raises it, also for a subword that is not UTF-8."""
    from sentencepiece import SentencePieceProcessor

    if not model:
        raise RuntimeError("it is empty")
    processor = SentencePieceProcessor(model_proto=model)
    # Loading accepts any bytes as subwords; only reading them fails, later and with a traceback.
    try:
        processor.id_to_piece(list(range(processor.get_piece_size())))
    except UnicodeDecodeError:
        raise RuntimeError("a subword is not UTF-8") from None
    return processor


def model_proto(model: bytes = b"") -> Any:
    """Parse a SentencePiece model as its protobuf message, which can be changed; by default it is empty."""
    return import_module("sentencepiece.sentencepiece_model_pb2").ModelProto.FromString(model)
