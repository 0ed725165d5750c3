"""Kinds of corpora by name."""
