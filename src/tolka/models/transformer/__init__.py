"""The Transformer (Vaswani et al. 2017): options.py, layers.py and model.py are the fast one."""

from tolka.models.transformer.model import Transformer, TransformerConfig

__all__ = ["Transformer", "TransformerConfig"]
