"""Faster ways to compute what `nn/` defines, with the same results. Readers of the models may skip this package."""
