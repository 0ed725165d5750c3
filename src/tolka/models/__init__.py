"""Architectures, one module or sub-package each; `base.Seq2Seq` is their contract."""
