"""Architectures: each one file or sub-package with one registered name; `base.Seq2Seq` is the contract."""
