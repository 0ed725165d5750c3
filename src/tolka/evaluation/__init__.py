"""Evaluation of a model: perplexity, scores of its translations, and the verdict on a training."""
