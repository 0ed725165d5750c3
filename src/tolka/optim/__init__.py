"""Optimizers and learning-rate schedules, which know nothing of the training loop."""
