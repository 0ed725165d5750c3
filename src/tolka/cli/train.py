"""mt-train: from parallel text to a translator and its score."""

import argparse
import sys
from collections.abc import Sequence

from tolka import __version__
from tolka.cli.common import DONE, Parser, guarded, settings_help
from tolka.errors import ConfigError

_EXAMPLES = """examples:
  mt-train                                      train on the embedded English-Korean sample
  mt-train corpus=files corpus.source=en corpus.target=de corpus.train=data/train corpus.valid=data/valid \\
           corpus.test=data/test run.name=mine   train on data/train.en and data/train.de, and so on
  mt-train experiment=multi30k corpus.root=DIR  a recipe of configs/experiment
  mt-train run.name=mine trainer.find_lr=true   recommend a learning rate; without it, the same command trains
The same command again goes on where the run stopped.

settings (key=value; a list is [a,b]):
"""


def main() -> None:
    """The console script."""
    sys.exit(guarded(run, sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Parse, train, show the result and the next command."""
    parser = Parser(
        prog="mt-train",
        description="Train a translator on parallel text, keep the best model, test it.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("settings", nargs="*", metavar="key=value", help="settings, listed below")
    parser.add_argument("--print-config", action="store_true", help="show the settings that would be used, and stop")
    parser.add_argument("--version", action="version", version=__version__)
    if {"-h", "--help"} & set(arguments):
        parser.epilog = _EXAMPLES + settings_help("train")
    options = parser.parse_intermixed_args(arguments)

    from tolka.config import train_config

    config = train_config(with_sample(options.settings))
    if options.print_config:
        import yaml

        print(yaml.safe_dump(config.as_dict(), allow_unicode=True, sort_keys=False), end="")
        return DONE

    from tolka.api import find_lr, train
    from tolka.progress import say

    if config.trainer.find_lr:
        find_lr(config)
        return DONE
    say(train(config).summary())
    return DONE


def with_sample(settings: Sequence[str]) -> list[str]:
    """`mt-train` without a corpus or an experiment means the embedded sample with the recipe that suits it."""
    given = {setting.split("=")[0] for setting in settings}
    own = sorted(given & {"corpus.train", "corpus.valid", "corpus.test"})
    if own and not given & {"corpus", "experiment", "corpus.root"}:
        raise ConfigError(f"{own[0]} needs to know the kind of corpus: add corpus=files (or corpus=hub)")
    return list(settings) if given & {"corpus", "experiment"} else ["experiment=sample", *settings]
