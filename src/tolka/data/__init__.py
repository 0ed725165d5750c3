"""Token ids on disk, and batches of like length made of them."""
