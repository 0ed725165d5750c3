"""The ids of the special tokens, the same in every vocabulary."""

PAD, BOS, EOS, UNK = 0, 1, 2, 3
"""`<pad>`, `<s>`, `</s>`, `<unk>`."""
