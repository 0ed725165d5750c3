"""One HTML file that translates: a model, the runtime and the page of `tolka/page/`."""
