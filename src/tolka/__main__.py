"""`python -m tolka` names the three commands, and `python -m tolka train ...` runs one of them."""

import sys

from tolka.cli import mt_eval, mt_train, mt_translate
from tolka.version import __version__

_COMMANDS = {"train": mt_train, "translate": mt_translate, "eval": mt_eval}

if __name__ == "__main__":
    name = sys.argv[1].removeprefix("mt-") if len(sys.argv) > 1 else ""
    if name in _COMMANDS:
        # The command reads what is left, as its console script would.
        del sys.argv[1]
        _COMMANDS[name]()
    print(
        f"tolka {__version__} has three commands, each with --help:\n"
        "  mt-train      train a translator on parallel text\n"
        "  mt-translate  translate text line by line\n"
        "  mt-eval       score translations, or a model"
    )
    if name not in ("", "-h", "--help", "--version"):
        sys.exit(f"error: '{name}' is no command: type python -m tolka train, translate or eval")
