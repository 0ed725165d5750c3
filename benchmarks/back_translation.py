"""What back-translation gains, and what each of its settings does: one is changed at a time.

    python benchmarks/back_translation.py CORPUS OUT alone
    python benchmarks/back_translation.py CORPUS OUT reverse
    python benchmarks/back_translation.py CORPUS OUT beam
    python benchmarks/back_translation.py CORPUS OUT as_it_comes trainer.updates=2000
    python benchmarks/back_translation.py CORPUS OUT table

CORPUS: a folder with train, valid and test in two languages, and mono.CODE, more text in the one to translate into.
`alone` and `longer` train on the pairs, `reverse` trains the opposite direction, `beam` and `sampling` translate the
text by it, `second` does both once more with the synthetic pairs, and the others train on both texts. Settings are of
the training. Each runs on one thread, so that two can run at once; minutes are those of CPU time.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tolka
from cpu_minutes import cell, figures_of, train
from tolka.metrics.significance import compare
from tolka.recipes.texts import TAG, SharedTexts, to_train
from tolka.system.progress import say
from tolka.text.direction import Direction
from tolka.text.lines import read_lines

SEARCHES = {
    "beam": {"search": "beam", "search.beam_size": "5"},
    "sampling": {"search": "sampling", "search.top_k": "10"},
}


# name -> the search that made the sources, how pairs are made, and their share of an epoch (0 = as many as there are)
WAYS: dict[str, tuple[str, dict[str, Any], float]] = {
    "as_it_comes": ("beam", {}, 0.5),
    "sampled": ("sampling", {}, 0.5),
    "no_tag": ("beam", {"tag": False}, 0.5),
    "no_filter": ("beam", {"filter": False}, 0.5),
    "all_of_it": ("beam", {}, 0.0),
    "second_round": ("second", {}, 0.5),
}


def direction_of(corpus: Path) -> Direction:
    """Return from which language into which, as the names of the files tell."""
    [target] = (path.suffix[1:] for path in corpus.glob("mono.*"))
    [source] = {path.suffix[1:] for path in corpus.glob("train.*")} - {target}
    return Direction(source, target)


def settings_of(corpus: Path, direction: Direction, *more: Path) -> list[str]:
    """Return the settings of a training on a corpus; more: prefixes of synthetic pairs."""
    texts = ",".join(f"'{text}'" for text in (corpus / "train", *more))
    return [
        *("corpus=files", f"corpus.source={direction.source}", f"corpus.target={direction.target}"),
        *(f"corpus.train=[{texts}]", f"corpus.valid={corpus / 'valid'}", f"corpus.test={corpus / 'test'}"),
        *("trainer.threads=1", "report.plots=false", "metrics.names=[bleu,chrf]"),
    ]


def texts_of(corpus: Path, out: Path) -> SharedTexts:
    """Return the texts that all trainings share, which are written once."""
    config = tolka.train_config([*settings_of(corpus, direction_of(corpus)), f"run.dir={out / 'none'}"])
    texts = SharedTexts(config, out / "texts", say)
    if not Path(f"{texts.train}.{texts.direction.target}").exists():
        texts.write()
    return texts


def translate(corpus: Path, out: Path, name: str, model: str = "reverse") -> None:
    """Translate the text in one language by a model of the opposite direction."""
    texts, (source, target) = texts_of(corpus, out), direction_of(corpus)
    lines, made = out / f"lines.{target}", out / f"{name}.{source}"
    if not lines.exists():
        print(texts.clean_lines([corpus / f"mono.{target}"], lines)["words"])
    if not made.exists():
        settings = {**SEARCHES.get(name, SEARCHES["beam"]), "output.resume": "true", "decoding.threads": "1"}
        tolka.translate_files(out / model, [lines], [f"{key}={value}" for key, value in settings.items()], made)


def synthetic(corpus: Path, out: Path, way: str) -> Path:
    """Return the prefix of pairs of the text and its translations, which are made once."""
    (search, pairs, _), (source, target) = WAYS[way], direction_of(corpus)
    prefix = out / f"pairs_{way}"
    if not Path(f"{prefix}.{source}").exists():
        texts = [out / f"{search}.{source}", out / f"lines.{target}"]
        print(texts_of(corpus, out).synthetic(texts, prefix, **pairs)["words"])
    return prefix


def mixed(corpus: Path, out: Path, way: str) -> list[str]:
    """Return the settings of a training on both texts."""
    _, pairs, share = WAYS[way]
    settings = [f"corpus.weights=[{1 - share:g},{share:g}]"] if share else []
    settings += [f"tokenizer.symbols=['{TAG}']"] if pairs.get("tag", True) else []
    return [*settings_of(corpus, direction_of(corpus), to_train(synthetic(corpus, out, way))), *settings]


def second(corpus: Path, out: Path, typed: Sequence[str]) -> None:
    """Train the opposite direction on the synthetic pairs as well, and translate again."""
    settings = settings_of(corpus, direction_of(corpus).swapped, synthetic(corpus, out, "as_it_comes"))
    train([*settings, "corpus.weights=[0.5,0.5]", *typed], out / "reverse_second")
    translate(corpus, out, "second", "reverse_second")


def table(corpus: Path, out: Path) -> None:
    """Print the scores of each model, and p of its difference to the one as it comes."""
    config, target = tolka.train_config([]).metrics, direction_of(corpus).target
    texts = {path.parents[1].name: [*read_lines(path)] for path in out.glob(f"*/samples/test.{target}.txt")}
    references = [*read_lines(corpus / f"test.{target}")]
    for name, figures in figures_of(out).items():
        found = ", ".join(cell(test) for test in figures["tests"].values())
        if {name, "as_it_comes"} <= {*texts}:
            changes = compare([texts["as_it_comes"], texts[name]], references, config, target)
            found += "".join(f", {each.name} {each.difference:+.2f} (p {each.p_value:.3f})" for each in changes[:2])
        print(f"{name}: {figures['updates']} updates, {figures['seconds'] / 60:.0f} minutes: {found}")


def main() -> None:
    """Do the part that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("part", choices=["alone", "longer", "reverse", *SEARCHES, "second", *WAYS, "table"])
    parser.add_argument("typed", nargs="*", metavar="KEY=VALUE")
    options = parser.parse_args()
    corpus, out, part, typed = options.corpus.resolve(), options.out.resolve(), options.part, options.typed
    time.perf_counter = time.process_time  # on one thread, what the clock would show on an idle machine
    if part == "table":
        table(corpus, out)
    elif part == "second":
        second(corpus, out, typed)
    elif part in SEARCHES:
        translate(corpus, out, part)
    elif part == "reverse":
        train([*settings_of(corpus, direction_of(corpus).swapped), *typed], out / part)
    else:
        settings = mixed(corpus, out, part) if part in WAYS else settings_of(corpus, direction_of(corpus))
        train([*settings, *typed], out / part)


if __name__ == "__main__":
    main()
