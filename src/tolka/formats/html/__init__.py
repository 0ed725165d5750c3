"""A page that translates: one HTML file with models, and a runtime of src/tolka/page/ that needs no server."""
