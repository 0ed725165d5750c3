"""Layers that know no model."""
