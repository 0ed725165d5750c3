"""Token ids on disk, and batches of similar length."""
