"""Cleaning of parallel text: what is changed in a pair, and which pairs are dropped, counted by reason."""
