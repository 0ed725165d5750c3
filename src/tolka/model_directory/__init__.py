"""A model on disk: files, checksums, reading and writing."""
