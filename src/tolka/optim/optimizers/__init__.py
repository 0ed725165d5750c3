"""Optimizers by name."""
