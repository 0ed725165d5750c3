"""Whole jobs, called alike by the commands, by programs and by a server: files translated, with formats and notes."""
