"""The Transformer (Vaswani et al. 2017): its options, its layers, and the model that trains and translates."""

from tolka.models.transformer.model import Transformer, TransformerConfig

__all__ = ["Transformer", "TransformerConfig"]
