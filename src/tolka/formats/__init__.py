"""Models as other programs store them."""
