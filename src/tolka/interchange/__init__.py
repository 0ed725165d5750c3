"""Models of other programs, in and out; one module for each format."""
