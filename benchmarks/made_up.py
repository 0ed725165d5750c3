"""Parallel text of made-up words, for a machine that has no corpus: the same on every one.

Words are drawn as often as words are (Zipf), sentences are as long as Multi30k's; the target is each word's own
translation, in another order.
"""

import random
from itertools import accumulate
from pathlib import Path

WORDS, SYLLABLES = 12000, 120
PAIRS = {"train": 12000, "test": 200}
_ONSETS, _NUCLEI, _CODAS = "bdfgklmnprstvz", "aeiou", ["", "n", "r", "s", "l"]


def write(folder: Path, seed: int = 1) -> None:
    """train and test, as .en and .de."""
    rng = random.Random(seed)
    syllables = sorted({rng.choice(_ONSETS) + rng.choice(_NUCLEI) + rng.choice(_CODAS) for _ in range(SYLLABLES)})
    words, translations = (
        ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(WORDS)] for _ in range(2)
    )
    weights = list(accumulate(1 / (rank + 3) for rank in range(WORDS)))
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in PAIRS.items():
        sources, targets = [], []
        for _ in range(count):
            length = max(3, min(40, round(rng.lognormvariate(2.3, 0.35))))
            chosen = rng.choices(range(WORDS), cum_weights=weights, k=length)
            sources.append(" ".join(words[number] for number in chosen))
            targets.append(" ".join(translations[number] for number in reversed(chosen)))
        for language, lines in (("en", sources), ("de", targets)):
            (folder / f"{name}.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
