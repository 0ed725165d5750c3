"""Recipes: graphs of steps, each a training, a translation, or what lies between them."""
