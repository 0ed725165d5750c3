"""Decoding; drives any `Seq2Seq` without knowing which."""
