"""Hugging Face's MarianMTModel, fresh, in the loop of plain.py; prints what that prints.

python benchmarks/marian_train.py WORK UPDATES WINDOW fp32|bf16     (its Python has transformers)
"""

import sys
from pathlib import Path

import torch
from torch import Tensor
from transformers import MarianConfig, MarianMTModel

from plain import loop
from work import BOS, DROPOUT, EOS, HEADS, INNER, LAYERS, PAD, VOCABULARY, WIDTH


def marian() -> MarianMTModel:
    """Of the sizes of all; its norms stand after the sub-layers."""
    config = MarianConfig(
        vocab_size=VOCABULARY,
        d_model=WIDTH,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_ffn_dim=INNER,
        decoder_ffn_dim=INNER,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        dropout=DROPOUT,
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation_function="relu",
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
        max_position_embeddings=512,
    )
    return MarianMTModel(config)


if __name__ == "__main__":
    torch.manual_seed(1)
    model = marian().train()

    def logits(source: Tensor, begin: Tensor) -> Tensor:
        """See plain.loop."""
        found: Tensor = model(input_ids=source, attention_mask=(source != PAD).long(), decoder_input_ids=begin).logits
        return found

    loop(model, logits, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
