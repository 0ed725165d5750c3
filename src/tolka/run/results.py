"""What a training leaves in its folder for people: plots, the report page and its sentences."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tolka.engines.torch_engine import TorchEngine
from tolka.errors import ConfigError
from tolka.metrics.scores import line_chrf
from tolka.report.attention import write_numbers
from tolka.report.page import write_page
from tolka.report.runs import EXAMPLES, LINES, read_run, worst_and_best
from tolka.text.pairs import Pair
from tolka.training.run_folder import RunFolder
from tolka.translation.translator import Translator

# Of the sentences that are shorter than those shown.
_SHARES = (0.1, 0.5, 0.9)
_MOST_LINES = 1000  # on the page, of the first test set; and of all others together


def write_report(
    run: RunFolder,
    title: str,
    translator: Translator[TorchEngine],
    known: Sequence[Pair],
    tests: Mapping[str, tuple[Sequence[Pair], Sequence[str]]],
    plots: bool,
) -> None:
    """Write report.html, with some sentences of `known` shown.

    tests: test set -> its pairs and their translations; `known` are the first one's, where there is any. plots: whether
    the page has pictures.
    """
    references = {pair.source: pair.target for pair in known}
    most = [_MOST_LINES, *[-(-_MOST_LINES // max(1, len(tests) - 1))] * (len(tests) - 1)]
    of_tests = [_scored_lines(name, *tests[name], count) for name, count in zip(tests, most, strict=False)]
    extremes = [line["source"] for lines in of_tests[:1] for each in worst_and_best(lines) for line in each]
    sentences = list(dict.fromkeys([*choose_sentences(known), *extremes]))
    show(translator, sentences, references, run.path / EXAMPLES)
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for lines in of_tests for line in lines)
    run.leave(f"{EXAMPLES}/{LINES}", text)  # empty where a test set was taken away: an earlier run's lines are gone
    run.log(f"report: {write_page(run.path, title, [read_run(run.path, title)], {}, plots)}")


def _scored_lines(test: str, pairs: Sequence[Pair], translations: Sequence[str], most: int) -> list[dict[str, Any]]:
    """Return texts and chrF2 of at most so many lines of a test set, evenly spaced. They are counted from 1."""
    rows = range(0, len(pairs), -(-len(pairs) // most))
    texts, references = [translations[row] for row in rows], [pairs[row].target for row in rows]
    return [
        {
            "test": test,
            "line": row + 1,
            "chrf": round(value, 1),
            "source": pairs[row].source,
            "translation": text,
            "reference": pairs[row].target,
        }
        for row, text, value in zip(rows, texts, line_chrf(texts, references).tolist(), strict=True)
    ]


def choose_sentences(pairs: Sequence[Pair]) -> list[str]:
    """Return a short, a medium and a long source (in words); fewer if there are not three."""
    ordered = sorted((pair.source for pair in pairs), key=lambda source: len(source.split()))
    return list(dict.fromkeys(ordered[int(share * len(ordered))] for share in _SHARES)) if ordered else []


def show(
    translator: Translator[TorchEngine], sentences: Sequence[str], references: Mapping[str, str], folder: Path
) -> None:
    """Translate sentences; write a JSON file of each into a folder, replacing what it had.

    The map is the mean over the heads of the last layer's cross-attention, or the gradients of a model without it.
    references: source -> reference, where one is known.
    """
    translations = translator.translate(sentences)
    try:
        maps = translator.attention(translations)
    # As for a model in int8.
    except ConfigError:
        maps = [[] for _ in sentences]
    folder.mkdir(exist_ok=True)
    for old in (*folder.glob("*.json"), *folder.glob("*.png")):
        old.unlink()
    for number, (source, translation, found) in enumerate(zip(sentences, translations, maps, strict=True), 1):
        numbers = [each.as_dict() for each in found]
        write_numbers(folder / f"{number:02d}.json", source, translation.text, numbers, references.get(source, ""))
