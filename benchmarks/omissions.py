"""What finds made-up and incomplete translations better: the model's probabilities, or its attention?

    python benchmarks/omissions.py MODEL SOURCE REFERENCE

MODEL has attention. Of up to 400 lines, the reference of another line of the same length stands for a made-up
translation, and half of the own reference for an incomplete one. Prints, beside references and beside the model's own
translations, how often a feature is worse for the faulty one of a pair (the area under the ROC curve; 0.5 = chance).
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tolka.engines.options import DecodingConfig
from tolka.engines.torch_engine import TorchEngine
from tolka.model_directory.read import load_model
from tolka.search.beam import BeamConfig
from tolka.text.lines import read_lines
from tolka.translation.attention_maps import AttentionMap, word_numbers
from tolka.translation.results import Candidate
from tolka.translation.translator import Translator

MOST, SHORTEST = 400, 6  # lines, and words of a line
FEATURES = ("mean log-probability", "lowest log-probability", "attention to each source word", "attention's entropy")
Values = npt.NDArray[np.float64]


def features(translator: Translator[TorchEngine], sources: Sequence[str], targets: Sequence[str]) -> Values:
    """Return the features of each pair (L, F), of which the higher is the worse."""
    source_ids = translator.tokenizer.encode_source(list(sources))
    target_ids = translator.tokenizer.encode_target(list(targets))
    scores = translator.engine.score(source_ids, target_ids)
    assert scores, "short lines fit into memory"
    texts = zip(targets, source_ids, target_ids, strict=True)
    maps = translator.attention([Candidate(text, [(source, target)], 0.0, True) for text, source, target in texts])
    return np.array([of_pair(own, each[0]) for own, each in zip(scores, maps, strict=True)])


def of_pair(scores: Sequence[float], found: AttentionMap) -> list[float]:
    """Return the features of a pair from the log-probabilities of its tokens and its attention map."""
    weights, words = np.array(found.weights), word_numbers(found.columns[:-1])
    received = np.bincount(words, weights[:, :-1].sum(axis=0))
    entropy = -(weights * np.log(weights + 1e-9)).sum(axis=1).mean()
    return [-float(np.mean(scores)), -min(scores), -float(np.quantile(received, 0.2)), float(entropy)]


def main() -> None:
    """Print a line for each kind of fault beside references and the model's own translations."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("model", "source", "reference"):
        parser.add_argument(name, type=Path)
    options = parser.parse_args()
    translator = Translator.of(load_model(options.model), BeamConfig(), DecodingConfig())
    texts = zip(*([*read_lines(path)][:MOST] for path in (options.source, options.reference)), strict=True)
    pairs = [pair for pair in texts if min(len(side.split()) for side in pair) >= SHORTEST]
    sources, references = ([pair[side] for pair in pairs] for side in (0, 1))
    by_length = sorted(range(len(pairs)), key=lambda row: len(references[row]))
    others = list(references)
    for one, two in zip(by_length[::2], by_length[1::2], strict=False):
        others[one], others[two] = references[two], references[one]
    halves = [" ".join(text.split()[: len(text.split()) // 2]) + " ." for text in references]
    for kind, texts_of in (("references", references), ("own translations", translator(sources))):
        good = features(translator, sources, texts_of)
        for fault, faulty in (("made up", others), ("incomplete", halves)):
            bad = features(translator, sources, faulty)
            worse = [(bad[:, [n]] > good[:, n]).mean() + (bad[:, [n]] == good[:, n]).mean() / 2 for n in range(4)]
            figures = ", ".join(f"{name} {value:.2f}" for name, value in zip(FEATURES, worse, strict=True))
            print(f"{fault}, beside {kind} ({len(pairs)} lines): {figures}")


if __name__ == "__main__":
    main()
