"""`python -m tolka` names the three commands."""

from tolka.version import __version__

if __name__ == "__main__":
    print(
        f"tolka {__version__} has three commands, each with --help:\n"
        "  mt-train      train a translator on parallel text\n"
        "  mt-translate  translate text line by line\n"
        "  mt-eval       score translations, or a model"
    )
