"""Evaluation of a model: perplexity, scores of its translations, attention maps, gradient flow."""
