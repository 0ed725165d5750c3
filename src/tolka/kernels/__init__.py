"""What is only there to be fast: the same results as `nn/` and `search/` define. Readers of the models may skip it."""
