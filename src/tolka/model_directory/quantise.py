"""Write a finished model with its weights in int8."""

from dataclasses import replace
from pathlib import Path

from tolka.model_directory.card import MEASURED, facts_of, model_card, parity_section
from tolka.model_directory.int8_weights import int8_tensors
from tolka.model_directory.read import load_model
from tolka.model_directory.write import snapshot


def quantise_model(folder: Path, out: Path) -> None:
    """Write a model directory that translates as the model does with decoding.precision=int8, to the last bit.

    Its scores are those of the model, and say so. CheckpointError if the model is in int8 already.
    """
    saved = load_model(folder)
    before = "in fp32, before the weights were quantised to int8"
    facts = {**facts_of(saved.folder, saved.config, saved.scores), "weights": "int8, for translating on a CPU"}
    scores = {**saved.scores, MEASURED: before, "facts": facts}
    parity = parity_section(saved.folder)
    card = model_card(saved.config, facts, scores, parity=f"Compared {before}. {parity}" if parity else "")
    whole = snapshot(saved.model, saved.tokenizer, saved.config, saved.sources, scores, card)
    replace(whole, weights=int8_tensors(saved.model), int8=True).write(out)
