"""Layers, independent of any model."""
