"""Architectures: one file each, one registered name each; see `base.Seq2Seq` for the contract."""
