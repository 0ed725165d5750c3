"""Parallel text: reading, cleaning and checking."""
