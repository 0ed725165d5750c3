"""Kinds of files with texts to translate, one module each."""
