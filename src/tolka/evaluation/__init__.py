"""Evaluation of models: validation, test sets, perplexity, and what attention and gradients show."""
