"""The Transformer (Vaswani et al. 2017): options, layers, and the model that trains and translates.

To read it first, see plain.py: the whole model on one page.
"""

from tolka.models.transformer.model import Transformer, TransformerConfig

__all__ = ["Transformer", "TransformerConfig"]
