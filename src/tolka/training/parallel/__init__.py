"""How several processes make one update together."""
