"""Text: reading, cleaning, checking, tokenization."""
