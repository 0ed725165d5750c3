"""mt-serve: HTTP over a model, as LibreTranslate's clients speak it, and the page; never the network beyond."""
