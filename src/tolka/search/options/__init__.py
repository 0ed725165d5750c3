"""The options of every search, which can be read without torch; the searches themselves are in tolka.search."""
