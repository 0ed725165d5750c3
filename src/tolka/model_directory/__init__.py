"""A model on disk: files, checksums, reading, writing, and conversion of older versions' settings."""
