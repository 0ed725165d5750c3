"""Layers that any architecture can use."""
