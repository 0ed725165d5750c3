"""mt-eval: BLEU, chrF, TER and perplexity, each with its signature and interval."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tolka.cli import common
from tolka.cli.common import DONE, MODEL_HELP, Parser, models_of, print_json, separate_files, settings_help
from tolka.errors import ConfigError, DataError
from tolka.system.atomic import check_output, is_among, whole_file
from tolka.system.progress import say
from tolka.text.lines import user_path
from tolka.version import __version__

_EXAMPLES = """examples:
  mt-eval runs/sample source=test.en reference=test.ko    translate and score
  mt-eval hypothesis=mine.de reference=test.de language=de only score
  mt-eval compare a.de b.de reference=test.de             is b better than a? a paired test
  mt-eval calibrate runs/sample source=valid.en reference=valid.ko search.n_best=5
                                                          let mt-translate estimate the quality of each line
source, hypothesis, reference and language are short for files.source and so on.

settings (key=value):
"""


def main() -> None:
    """Run `mt-eval` as a console script."""
    common.main(run)


def run(arguments: Sequence[str]) -> int:
    """Parse the arguments, score, and print a table or JSON on stdout."""
    options = _parse_arguments(arguments)
    plain, settings = separate_files(options.inputs)
    word = str(plain[0]) if plain else ""
    if word in _SUBCOMMANDS:
        if options.output:
            raise ConfigError(f"-o OUT takes a model's translations, and {word} writes none")
        _SUBCOMMANDS[word](plain[1:], settings, options.json)
        return DONE
    # As in `sacrebleu` and other scorers, whose arguments are files.
    if len(plain) == 2 and all(map(Path.is_file, plain)):
        raise ConfigError(f"files have names: mt-eval hypothesis={plain[0]} reference={plain[1]}")
    if len(plain) > 1:
        raise ConfigError(
            f"one model at most, not {len(plain)}: {' '.join(map(str, plain))}. Settings are key=value; "
            "models that translate together are joined by commas"
        )
    models = models_of(word) if plain else []
    if options.output and not models:
        raise ConfigError("-o OUT takes a model's translations; without a model there are none to write")
    _score(models, settings, options.output, options.json)
    return DONE


def _parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of mt-eval."""
    parser = Parser(
        prog="mt-eval",
        description="Score translations against references, or a model on a test set.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("inputs", nargs="*", metavar="[MODEL] key=value", help=f"{MODEL_HELP}; and settings")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("-o", "--output", type=Path, metavar="OUT", help="write the model's translations there")
    parser.add_argument("--version", action="version", version=__version__)
    if {"-h", "--help"} & set(arguments):
        parser.epilog = _EXAMPLES + settings_help("evaluate")
    return parser.parse_intermixed_args(arguments)


def _score(models: Sequence[Path], settings: Sequence[str], output: Path | None, as_json: bool) -> None:
    """Print the scores of models, or of a file of translations. output: where to write the models' translations."""
    from tolka.api.evaluate import evaluate
    from tolka.config.command_line import evaluate_config

    config = evaluate_config(settings)
    if output:  # before the translation, which may take hours
        check_output(output)
        if is_among(output, [user_path(config.files.source), user_path(config.files.reference)]):
            raise DataError(f"{output} is read, too, and its text would be lost: name another file to write")
    result = evaluate(config, models)
    if output:
        with whole_file(output) as stream:
            stream.writelines(f"{line}\n".encode() for line in result.hypotheses)
    for note in result.notes:
        say(f"note: {note}")
    if as_json:
        report: dict[str, Any] = {"metrics": [score.as_dict() for score in result.scores]}
        if result.perplexity:
            report["perplexity"] = result.perplexity.as_dict()
        print_json(report)
    else:
        print(replace(result, notes=[]))


def _compare(systems: Sequence[Path], settings: Sequence[str], as_json: bool) -> None:
    """Print whether the second file of translations is better than the first."""
    if len(systems) != 2:
        raise ConfigError("compare takes two files of translations: mt-eval compare A B reference=FILE")

    from tolka.api.evaluate import compare_files
    from tolka.config.command_line import evaluate_config

    results = compare_files(systems[0], systems[1], evaluate_config(settings))
    if as_json:
        keys = ("difference", "p_value", "signature")
        rows = [{"a": r.a.as_dict(), "b": r.b.as_dict()} | {key: getattr(r, key) for key in keys} for r in results]
        print_json({"comparisons": rows})
        return
    from tolka.metrics.significance import paired_test
    from tolka.metrics.tables import table

    cells = [
        [r.name, f"{r.a.value:.2f}", f"{r.b.value:.2f}", f"{r.difference:+.2f}", f"{r.p_value:.4f}"] for r in results
    ]
    print(table(cells, ["metric", "A", "B", "B - A", "p"], "lrrrr"))
    test = paired_test(results[0].signature)
    print(f"\np: how often so large a difference comes by chance ({test}); below 0.05 is taken as real")
    for result in results:
        print(f"{result.name}: {result.signature}")


def _calibrate(model: Sequence[Path], settings: Sequence[str], as_json: bool) -> None:
    """Fit the quality estimates of a model, write them into its directory, and print how good they are."""
    if len(model) != 1:
        raise ConfigError("calibrate takes one model: mt-eval calibrate MODEL source=FILE reference=FILE")

    from tolka.api.evaluate import calibrate
    from tolka.config.command_line import evaluate_config

    result = calibrate(models_of(str(model[0])), evaluate_config(settings))
    if as_json:
        print_json(result.as_dict())
    else:
        print(result)
    if result.calibration.with_agreement is None:
        say("note: with several translations of each line (search.n_best=5), estimates also use how alike they are")


# A model's folder of such a name is ./compare.
_SUBCOMMANDS = {"compare": _compare, "calibrate": _calibrate}
