"""How good a model is: perplexity, translations scored against references."""
