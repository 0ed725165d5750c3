"""What a search may be told to write, to begin with, or to avoid."""
