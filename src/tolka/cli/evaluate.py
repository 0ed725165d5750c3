"""mt-eval: BLEU, chrF, TER and perplexity, each with its signature and interval."""

import argparse
import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tolka.cli.common import DONE, MODEL_HELP, Parser, print_json, separate_files
from tolka.errors import ConfigError
from tolka.model_directory.names import check_outside, models_of
from tolka.system.atomic import check_output, whole_file
from tolka.system.progress import say
from tolka.text.lines import user_path

_SUBCOMMANDS = ("compare", "calibrate", "robustness")


def run(arguments: Sequence[str]) -> int:
    """Parse the arguments, score, and print a table or JSON on stdout."""
    parser = Parser("mt-eval", "Score translations against references, or a model on a test set.")
    parser.add_argument("inputs", nargs="*", metavar="[MODEL] key=value", help=f"{MODEL_HELP}; and settings")
    forms = parser.add_mutually_exclusive_group()
    for form, words in (("json", "JSON"), ("markdown", "Markdown")):
        forms.add_argument(
            f"--{form}", dest="form", action="store_const", const=form, default="text", help=f"print {words} instead"
        )
    parser.add_argument(
        "--lines", type=Path, metavar="OUT", help="write the score of each line there, as OUT.tsv or OUT.jsonl"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="OUT", help="write the model's translations there")
    options = parser.parse_intermixed_args(arguments)

    plain, settings = separate_files(options.inputs)
    word = str(plain[0]) if plain else ""
    if word in _SUBCOMMANDS:  # a model's folder of such a name is ./compare
        if options.output or options.lines:
            raise ConfigError(f"-o and --lines take one system's translations, and not those of {word}")
        _run_subcommand(word, plain[1:], settings, options.form)
        return DONE
    if len(plain) > 1:
        raise ConfigError(
            f"one model at most, not {len(plain)}: {' '.join(map(str, plain))}. Files have names, as in "
            "hypothesis=FILE reference=FILE; models that translate together are joined by commas"
        )
    models = models_of(word) if plain else []
    if options.output and not models:
        raise ConfigError("-o OUT takes a model's translations; without a model there are none to write")
    _score(models, settings, options)
    return DONE


def _score(models: Sequence[Path], settings: Sequence[str], options: argparse.Namespace) -> None:
    """Print the scores of models, or of a file of translations; write the translations, and the scores of lines."""
    from tolka.api.evaluate import evaluate
    from tolka.config.command_line import evaluate_config
    from tolka.options.settings import read_files

    config = evaluate_config(settings, say)
    read = [user_path(path) for path in read_files(config.files, config.search)]
    for path in filter(None, (options.output, options.lines)):  # before the translation, which may take hours
        check_output(path, read)
        check_outside(path, models)
    if options.output and options.lines and options.output.resolve() == options.lines.resolve():
        raise ConfigError(f"-o and --lines are both {options.output}: name two files")
    if options.lines and options.lines.suffix not in (".tsv", ".jsonl"):
        raise ConfigError(f"--lines {options.lines}: name a file that ends in .tsv or .jsonl")
    result = evaluate(config, models)
    if options.output:
        with whole_file(options.output) as stream:
            stream.writelines(f"{line}\n".encode() for line in result.hypotheses)
    if options.lines:
        _write_lines(list(result.lines()), options.lines)
    for note in result.notes:
        say(f"note: {note}")
    if options.form == "json":
        report: dict[str, Any] = {"metrics": [score.as_dict() for score in result.scores]}
        if result.perplexity:
            report["perplexity"] = result.perplexity.as_dict()
        if result.flagged:
            report["flags"] = [each._asdict() for each in result.flagged]
        print_json(report)
    else:
        print(result.as_text(options.form))


def _write_lines(lines: Sequence[dict[str, Any]], path: Path) -> None:
    """Write the score and the texts of each line, as TSV with a header or as a JSON object a line."""
    text = io.StringIO()
    if path.suffix == ".tsv":
        count = len(lines[0]["references"])
        names = ["reference" if count == 1 else f"reference {number + 1}" for number in range(count)]
        keys = [key for key in lines[0] if key != "references"]
        writer = csv.writer(text, dialect="excel-tab", lineterminator="\n")
        writer.writerow([*keys, *names])
        for row in lines:
            cells = (" ".join(row[key]) if key == "flags" else row[key] for key in keys)
            writer.writerow([*cells, *row["references"]])
    else:
        text.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in lines)
    with whole_file(path) as stream:
        stream.write(text.getvalue().encode())


def _run_subcommand(word: str, names: Sequence[Path], settings: Sequence[str], form: str) -> None:
    """Compare systems, or measure what a model's estimates are worth, or what changes of a text cost; print that."""
    if word != "compare" and len(names) != 1:
        raise ConfigError(f"{word} takes one model: mt-eval {word} MODEL source=FILE reference=FILE")
    if word == "calibrate" and form not in ("text", "json"):
        raise ConfigError(f"calibrate prints tables or --json, and not --{form}")

    from tolka.api.compare import compare
    from tolka.api.evaluate import calibrate, robustness
    from tolka.config.command_line import evaluate_config

    config = evaluate_config(settings, say)
    result: Any
    if word == "compare":
        result = compare(names, config)
        for note in result.notes:
            say(f"note: {note}")
    else:
        measure = {"calibrate": calibrate, "robustness": robustness}[word]
        result = measure(models_of(str(names[0])), config)
    if form == "json":
        print_json(result.as_dict())
    else:
        print(result if word == "calibrate" else result.as_text(form))
