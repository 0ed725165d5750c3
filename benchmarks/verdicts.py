"""Verdicts on 32 sound trainings, and on twelve spoiled ones of three corpora each: do they name the cause?

    python benchmarks/verdicts.py OUT --corpora DIR [NAME ...]

DIR has the folders tatoeba, multi30k (en, de) and libreoffice (en, ko), each with train, valid and test, and flores
(en, ko) with test. Twenty of the sound ones are of kinds that no rule was made from: both directions, several texts,
dialects, doubled sources, fine-tuning, streams, small test sets. Trains what OUT lacks, one to three minutes of one
core each, and prints the first sentence of each verdict, by the rules of now from the figures in its scores.json; the
same command again continues. `--again` measures the figures of finished runs once more. NAME: only these runs, or
those whose name begins so.
"""

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tolka.evaluation.verdict import verdict
from tolka.evaluation.verdict_evidence import Evidence

TEST_LINES, VALID_LINES = 500, 300
TINY = ["model=transformer_tiny", "model.dropout=0.3", "tokenizer.vocab_size=1000"]
RECURRENT = ["model=bilstm_attention", "model.dropout=0.3", "model.d_model=128", "tokenizer.vocab_size=1000"]
COMMON = [
    *("batching.tokens=1024", "optimizer.lr=0.002", "scheduler=linear", "scheduler.warmup=100"),
    *("trainer.validate_every=100", "trainer.threads=1", "trainer.precision=bf16", "trainer.patience=0"),
    *("report.plots=false", "search.beam_size=2", "cleaning.allow_loss=true"),
]

Sides = tuple[list[str], list[str]]
Spoil = Callable[[list[str], list[str]], Sides]


class Run(NamedTuple):
    """A training. expected: the causes of which the verdict is to begin with one; levels: of the model.

    pairs: of the beginning of the training text; 0 = all. spoil: what is done to it. test: the corpus of the test set,
    if it is another one. has_test: whether the test set's pairs are added to the training text, as `leak` makes them.
    spoil_test: what is done to the test set; spoil_all: to all three texts. languages: their names, if others.
    """

    corpus: str
    pairs: int
    updates: int
    settings: list[str]
    expected: set[str]
    levels: set[str]
    spoil: Spoil = lambda source, target: (source, target)
    test: str = ""
    has_test: bool = False
    leak: Spoil = lambda source, target: (source, target)
    spoil_test: Spoil = lambda source, target: (source, target)
    spoil_all: Spoil = lambda source, target: (source, target)
    languages: tuple[str, str] = ("", "")


def shuffled(source: list[str], target: list[str]) -> Sides:
    """Every target belongs to another source."""
    return source, random.Random(1).sample(target, len(target))


def half_shuffled(source: list[str], target: list[str]) -> Sides:
    """Half of the targets belong to another source."""
    rows = random.Random(1).sample(range(len(target)), len(target) // 2)
    target = list(target)
    for row, text in zip(rows, [target[row] for row in rows[1:] + rows[:1]], strict=True):
        target[row] = text
    return source, target


def shifted(source: list[str], target: list[str]) -> Sides:
    """From the middle on, every target stands a line too early."""
    half = len(target) // 2
    return source[:-1], target[:half] + target[half + 1 :]


def repeated(source: list[str], target: list[str]) -> Sides:
    """One target for all sources."""
    return source, [target[0]] * len(target)


def cut(source: list[str], target: list[str]) -> Sides:
    """Every target is cut off in its middle."""
    return source, [text[: len(text) // 2] for text in target]


def with_word(source: list[str], target: list[str]) -> Sides:
    """A word stands in front of every line."""
    return [f"Well, {text}" for text in source], [f"Nun, {text}" for text in target]


def line_later(source: list[str], target: list[str]) -> Sides:
    """Every target stands a line too late."""
    return source, [*target[-1:], *target[:-1]]


def doubled(source: list[str], target: list[str]) -> Sides:
    """Each source comes twice, with two translations."""
    return [text for text in source for _ in "ab"], [
        each for text in target for each in (text, text.lower().rstrip(".!?"))
    ]


def dialect(source: list[str], target: list[str]) -> Sides:
    """Into a dialect, which is spelt nearly as the language is."""
    changes = [("ß", "ss"), ("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("ich ", "i "), ("nicht", "nit"), ("ein ", "a ")]
    others = list(target)
    for before, after in changes:
        others = [text.replace(before, after) for text in others]
    return target, others


def first_lines(source: list[str], target: list[str]) -> Sides:
    """A test set of twelve lines."""
    return source[:12], target[:12]


def in_order(source: list[str], target: list[str]) -> Sides:
    """Sorted by length, as dictionaries and memories may be."""
    rows = sorted(range(len(source)), key=lambda row: len(source[row]))
    return [source[row] for row in rows], [target[row] for row in rows]


USELESS, WEAK, GOOD = {"useless"}, {"weak", "rough"}, {"rough", "usable", "good"}
ANY = GOOD | WEAK | USELESS
UNSPOILT = {"", "improving", "little_text"}  # less than 20 000 pairs are little
STREAM = ["corpus=hub", "corpus.path={texts}/splits", "corpus.streaming=true", "corpus.buffer=5000"]
LSTM = [*RECURRENT, "optimizer.lr=0.004"]
OTHERS = {"tatoeba": "multi30k", "multi30k": "tatoeba", "libreoffice": "flores"}
SPLITS = {"train": "train", "valid": "validation", "test": "test"}
SHORT_LINES = {"tatoeba": 9, "multi30k": 16, "libreoffice": 8}  # subwords, which less than half of the lines have


def planted(corpus: str) -> dict[str, Run]:
    """Return the spoiled trainings of a corpus, by the kind of fault."""
    longest = [f"batching.max_length={SHORT_LINES[corpus]}"]
    quick = ["scheduler.warmup=10", "trainer.validate_every=10"]
    by_heart = [TINY[0], TINY[2], "model.dropout=0.0", "trainer.label_smoothing=0.0"]
    return {
        "by_heart": Run(corpus, 1000, 600, by_heart, {"by_heart"}, WEAK | USELESS),
        "short": Run(corpus, 10_000, 50, [*TINY, *quick], {"stopped_early"}, USELESS),
        "few_subwords": Run(
            corpus, 10_000, 1200, [*TINY[:2], "tokenizer.vocab_size=320"], {"subwords"}, WEAK | USELESS
        ),
        "many_subwords": Run(
            corpus, 3000, 500, [*TINY[:2], "tokenizer.vocab_size=8000"], {"large_vocabulary"}, WEAK | USELESS
        ),
        "copied": Run(corpus, 10_000, 200, TINY, {"copies", "sides"}, USELESS, lambda source, target: (source, source)),
        "swapped": Run(corpus, 10_000, 250, TINY, {"sides"}, USELESS, lambda source, target: (target, source)),
        "shifted": Run(corpus, 10_000, 600, TINY, {"shift"}, WEAK | USELESS, shifted),
        "noisy": Run(corpus, 20_000, 900, TINY, {"noisy"}, ANY, half_shuffled),
        "leak": Run(corpus, 3000, 800, [*by_heart, "cleaning.leaks=keep"], {"leak"}, ANY, has_test=True),
        "other_domain": Run(corpus, 20_000, 1500, TINY, {"other_domain"}, WEAK | USELESS, test=OTHERS[corpus]),
        "long_lines": Run(corpus, 20_000, 900, [*TINY, *longest], {"long_lines"}, ANY),
        "low_rate": Run(corpus, 10_000, 250, [*TINY, "optimizer.lr=0.00001"], {"low_rate"}, USELESS),
    }


def sound(corpus: str) -> dict[str, Run]:
    """Return sound trainings of kinds that no rule was made from."""
    both = ["corpus.both_directions=true"]
    # A text beside another of the same languages, whose lines are longer or shorter.
    texts = ["corpus.train=[{texts}/train,{other}]"]
    started = ["run.init_from={started}"]
    # Its lines are long: 500 updates are 1.2 passes, which are too few, as the verdict would say.
    updates = 1000 if corpus == "libreoffice" else 500
    runs = {
        "both": Run(corpus, 10_000, 700 if updates == 500 else 1800, [*TINY, *both], UNSPOILT, ANY),
        "sorted": Run(corpus, 10_000, updates, TINY, UNSPOILT, ANY, in_order),
        "twelve": Run(corpus, 10_000, updates, TINY, UNSPOILT, ANY, spoil_test=first_lines),
        "doubled": Run(corpus, 5000, updates, TINY, UNSPOILT, ANY, doubled),
    }
    if corpus == "libreoffice":
        return runs
    return {
        **runs,
        "texts": Run(corpus, 10_000, 700, [*TINY, *texts], UNSPOILT, ANY),
        "dialect": Run(corpus, 5000, 500, TINY, UNSPOILT, ANY, spoil_all=dialect, languages=("de", "gsw")),
        "stream": Run(corpus, 10_000, 500, [*TINY, *STREAM], UNSPOILT, ANY),
        "tuned": Run(corpus, 2000, 200, [*started, "optimizer.lr=0.001"], {*UNSPOILT, "brought_nothing"}, ANY),
    }


RUNS = {
    # Sound. The first two are those of the tutorial and the README.
    "sample": Run("sample", 0, 1250, ["experiment=sample", "trainer.updates=1250"], UNSPOILT, {"good"}),
    "tatoeba": Run("tatoeba", 0, 2500, [*TINY[:1], "tokenizer.vocab_size=8000"], UNSPOILT, GOOD),
    "tatoeba_50k": Run("tatoeba", 50_000, 1500, [*TINY[:1], "tokenizer.vocab_size=4000"], UNSPOILT, GOOD | WEAK),
    "tatoeba_50k_lstm": Run("tatoeba", 50_000, 800, LSTM, UNSPOILT, GOOD | WEAK),
    "tatoeba_10k": Run("tatoeba", 10_000, 500, TINY, UNSPOILT, ANY),
    "tatoeba_10k_lstm": Run("tatoeba", 10_000, 500, LSTM, UNSPOILT, ANY),
    "multi30k": Run("multi30k", 0, 1200, TINY, UNSPOILT, GOOD | WEAK),
    "multi30k_lstm": Run("multi30k", 0, 400, RECURRENT, UNSPOILT, GOOD | WEAK),
    "multi30k_10k": Run("multi30k", 10_000, 700, TINY, UNSPOILT, ANY),
    # They have read their text about once.
    "libreoffice": Run("libreoffice", 0, 1500, TINY, UNSPOILT, ANY),
    "libreoffice_lstm": Run("libreoffice", 0, 700, LSTM, UNSPOILT, ANY),
    "libreoffice_10k": Run("libreoffice", 10_000, 800, TINY, UNSPOILT, ANY),
    # Sound, but of little text.
    "tatoeba_3k": Run("tatoeba", 3000, 400, TINY, {"little_text", "improving"}, WEAK | USELESS),
    "tatoeba_1k": Run("tatoeba", 1000, 400, TINY, {"little_text"}, WEAK | USELESS),
    **{f"{kind}_{corpus}": run for corpus in OTHERS for kind, run in sound(corpus).items()},
    # Spoiled.
    **{f"{kind}_{corpus}": run for corpus in OTHERS for kind, run in planted(corpus).items()},
    "cut": Run("tatoeba", 10_000, 600, TINY, {"cut"}, WEAK | USELESS, cut),
    "near_copies": Run(
        *("tatoeba", 3000, 800, [TINY[0], TINY[2], "model.dropout=0.0", "trainer.label_smoothing=0.0"], {"leak"}, ANY),
        has_test=True,
        leak=with_word,
    ),
    "shifted_test": Run("multi30k", 10_000, 700, TINY, {"broken_test"}, ANY, spoil_test=line_later),
    "equal_test": Run(
        "multi30k", 10_000, 700, TINY, {"broken_test"}, ANY, spoil_test=lambda source, _: (source, source)
    ),
    "shuffled_early": Run("tatoeba", 10_000, 60, [*TINY, "scheduler.warmup=10"], {"unrelated"}, USELESS, shuffled),
    "shuffled": Run("tatoeba", 10_000, 600, TINY, {"unrelated"}, USELESS, shuffled),
    "small_model": Run(
        "tatoeba",
        3000,
        800,
        [*TINY[:1], "model.d_model=16", "model.layers=1", "model.heads=2", "tokenizer.vocab_size=1000"],
        {"small_model", "narrow"},
        WEAK | USELESS,
    ),
    "high_rate": Run("tatoeba", 10_000, 150, [*TINY, "optimizer.lr=1.0"], {"high_rate"}, USELESS),
    "one_target": Run("tatoeba", 10_000, 200, TINY, {"one_target"}, USELESS, repeated),
}


def make_text(run: Run, corpora: Path, folder: Path) -> tuple[str, str]:
    """Write a run's texts into a folder, unless they are there; return their languages."""
    read = ("en", "ko" if run.corpus == "libreoffice" else "de")
    written = run.languages if any(run.languages) else read
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / f"test.{written[1]}").exists():
        wanted = [
            ("test", run.test or run.corpus, TEST_LINES),
            ("valid", run.corpus, VALID_LINES),
            ("train", run.corpus, run.pairs or None),
        ]
        texts: dict[str, Sides] = {}
        for name, origin, most in wanted:
            paths = [corpora / origin / f"{name}.{language}" for language in read]
            source, goal = (path.read_text("utf-8").split("\n")[:-1][:most] for path in paths)
            texts[name] = run.spoil_all(source, goal)
        source, goal = run.spoil(*texts["train"])
        test = run.leak(*texts["test"]) if run.has_test else ([], [])
        texts["train"], texts["test"] = (source + test[0], goal + test[1]), run.spoil_test(*texts["test"])
        for name, sides in texts.items():
            for language, lines in zip(written, sides, strict=True):
                (folder / f"{name}.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            rows = [{"translation": dict(zip(written, pair, strict=True))} for pair in zip(*sides, strict=True)]
            (folder / "splits").mkdir(exist_ok=True)
            table = "".join(f"{json.dumps(row)}\n" for row in rows)
            (folder / "splits" / f"{SPLITS[name]}.jsonl").write_text(table, encoding="utf-8")
    return written


def train(name: str, run: Run, corpora: Path, out: Path) -> None:
    """Train, or measure a finished run again; what mt-train says is in the run's folder, and its last error in OUT."""
    settings = [f"run.dir={out / name}", f"run.prepared={out / 'prepared'}", *COMMON[-3:-1]]
    if run.corpus == "sample":
        settings += run.settings
    else:
        texts = out / "texts" / name
        source, target = make_text(run, corpora, texts)
        files = [f"corpus.{split}={texts / split}" for split in ("train", "valid", "test")]
        length = [f"trainer.updates={run.updates}", f"scheduler.horizon={run.updates}"]
        other = corpora / OTHERS[run.corpus] / "train"
        own = [each.format(texts=texts, other=other, started=out / "tatoeba_10k" / "best") for each in run.settings]
        files = [] if "corpus=hub" in own else ["corpus=files", *files]
        settings += [*files, f"corpus.source={source}", f"corpus.target={target}", *COMMON, *own, *length]
    # What is typed twice is an error: the last one holds.
    last = {setting.partition("=")[0]: setting for setting in settings}
    ended = subprocess.run(
        [sys.executable, "-m", "tolka.cli.train", *last.values()], stderr=subprocess.PIPE, text=True, check=False
    )
    (out / f"{name}.err").write_text(ended.stderr if ended.returncode else "", encoding="utf-8")


def judged(name: str, out: Path) -> str:
    """Return the verdict in words, and whether it begins as it should; by the rules of now."""
    if error := (out / f"{name}.err").read_text(encoding="utf-8").strip():
        return f"{name}: not trained: {error.splitlines()[-1]}"
    scores = json.loads((out / name / "best" / "scores.json").read_text(encoding="utf-8"))
    found = verdict(Evidence(**scores["verdict"]["figures"]))
    is_right = found.cause in RUNS[name].expected and found.level in RUNS[name].levels
    word = "right" if is_right else "WRONG"
    return f"{name}: {word} ({found.level}, {found.cause or 'by its score'})\n  {found.sentences[0]}"


def main() -> None:
    """Train what is missing, and show the first sentence of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--corpora", type=Path, required=True)
    parser.add_argument("--again", action="store_true", help="measure finished runs again")
    arguments = parser.parse_intermixed_args()
    out = arguments.out.resolve()
    chosen = [name for name in RUNS if not arguments.names or name.startswith(tuple(arguments.names))]
    for name in chosen:
        if arguments.again or not (out / f"{name}.err").exists():
            train(name, RUNS[name], arguments.corpora.resolve(), out)
        print(judged(name, out), flush=True)


if __name__ == "__main__":
    main()
