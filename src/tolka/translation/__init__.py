"""Text in, translations out: sentence splitting, batching, decoding and the original order."""
