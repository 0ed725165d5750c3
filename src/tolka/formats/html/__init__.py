"""The HTML page that translates: what of a model directory is put into its file."""
