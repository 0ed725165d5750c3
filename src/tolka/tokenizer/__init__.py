"""SentencePiece models: training, loading, and encoding of text as subword ids."""
