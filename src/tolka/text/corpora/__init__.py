"""Kinds of corpus, one registered name each."""
