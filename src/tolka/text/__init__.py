"""Text as people write it: reading, cleaning, SentencePiece."""
