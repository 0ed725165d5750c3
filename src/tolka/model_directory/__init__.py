"""A model on disk: files, checksums, reading, writing, and conversion of what older versions wrote."""
