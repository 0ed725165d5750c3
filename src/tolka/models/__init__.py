"""Architectures: one file or sub-package each, one registered name each; see `base.Seq2Seq` for the contract."""
