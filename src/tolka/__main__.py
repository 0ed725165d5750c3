"""`python -m tolka` names the commands, and `python -m tolka train ...` runs one of them."""

import sys

from tolka.cli import mt_eval, mt_serve, mt_train, mt_translate
from tolka.version import __version__

_COMMANDS = {"train": mt_train, "translate": mt_translate, "eval": mt_eval, "serve": mt_serve}

if __name__ == "__main__":
    name = sys.argv[1].removeprefix("mt-") if len(sys.argv) > 1 else ""
    if name in _COMMANDS:
        # The command reads what is left, as its console script would.
        del sys.argv[1]
        _COMMANDS[name]()
    print(
        f"tolka {__version__} has four commands, each with --help:\n"
        "  mt-train      train a translator on parallel text\n"
        "  mt-translate  translate text line by line\n"
        "  mt-eval       score translations, or a model\n"
        "  mt-serve      translate at an address, for programs and people"
    )
    if name not in ("", "-h", "--help", "--version"):
        sys.exit(f"error: '{name}' is no command: type python -m tolka train, translate, eval or serve")
