"""Training losses, as sums with their token counts."""
