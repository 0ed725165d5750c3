"""Optimizers, schedules, the training loop, and the files of a run."""
