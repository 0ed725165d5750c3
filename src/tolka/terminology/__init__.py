"""Glossaries and term bases, and where their terms stand in a text."""
