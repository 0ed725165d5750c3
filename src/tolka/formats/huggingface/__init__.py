"""Folders of Hugging Face, and the families of models in them."""
