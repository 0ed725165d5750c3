"""The ids of the special tokens, the same in every vocabulary; the mark of a word's beginning."""

PAD, BOS, EOS, UNK = 0, 1, 2, 3
"""`<pad>`, `<s>`, `</s>`, `<unk>`."""
BLANK = "\u2581"
"""SentencePiece's word boundary; decoded text contains it only if it was spelt as bytes."""
