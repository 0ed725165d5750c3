"""The Transformer (Vaswani et al. 2017). To read it, begin with plain.py: the whole model on one page."""

from tolka.models.transformer.config import TransformerConfig

__all__ = ["TransformerConfig"]
