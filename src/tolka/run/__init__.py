"""`mt-train` from the first file read to the last score: inputs, training, testing, provenance."""
