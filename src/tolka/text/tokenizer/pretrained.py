"""SentencePiece models trained elsewhere, renumbered so that special symbols have tolka's ids."""

from importlib import import_module
from pathlib import Path
from typing import Any

from tolka.errors import DataError
from tolka.system.whole_files import read_whole
from tolka.text.tokenizer.coders import processor_of
from tolka.text.tokenizer.special_tokens import BOS, EOS, PAD, UNK
from tolka.text.tokenizer.vocabulary import MOST_BYTES

_NAMES = {PAD: "<pad>", BOS: "<s>", EOS: "</s>", UNK: "<unk>"}


def load_pretrained(path: Path) -> bytes:
    """Return the serialised model, renumbered: `<pad>`, `<s>`, `</s>` and `<unk>` first, the other subwords in order.

    Its segmentations do not change. DataError when the file is not a SentencePiece model.
    """
    protobuf: Any = import_module("sentencepiece.sentencepiece_model_pb2")
    try:
        content = read_whole(path, MOST_BYTES)
        processor = processor_of(content)
    except (OSError, ValueError) as error:
        raise DataError(f"tokenizer.model: {path} cannot be read ({getattr(error, 'strerror', error)})") from None
    except RuntimeError:
        raise DataError(
            f"tokenizer.model: {path} is no SentencePiece model (as spm_train writes, NAME.model)"
        ) from None
    model = protobuf.ModelProto.FromString(content)
    ids = processor.pad_id(), processor.bos_id(), processor.eos_id(), processor.unk_id()
    if ids == (PAD, BOS, EOS, UNK):
        return content
    others = [piece for number, piece in enumerate(model.pieces) if number not in ids]
    kinds = protobuf.ModelProto.SentencePiece
    del model.pieces[:]
    for number, name in sorted(_NAMES.items()):
        model.pieces.add(piece=name, score=0.0, type=kinds.UNKNOWN if number == UNK else kinds.CONTROL)
    model.pieces.extend(others)
    spec = model.trainer_spec
    spec.pad_id, spec.bos_id, spec.eos_id, spec.unk_id = PAD, BOS, EOS, UNK
    spec.pad_piece, spec.bos_piece, spec.eos_piece, spec.unk_piece = (_NAMES[number] for number in (PAD, BOS, EOS, UNK))
    return bytes(model.SerializeToString())
