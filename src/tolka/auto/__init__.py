"""What a corpus and a machine call for: facts of both, and the rules that settings are chosen by."""
