"""A small English-Korean grammar that writes the sample corpus in ``data/sample``."""
