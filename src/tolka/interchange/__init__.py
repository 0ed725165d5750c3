"""Models of other programs, in and out: Hugging Face's Marian and CTranslate2, and the comparison of both sides."""
