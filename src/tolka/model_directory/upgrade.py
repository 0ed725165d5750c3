"""Convert settings of earlier versions to those of this one."""

from collections.abc import Mapping
from typing import Any

_MOVED = {"max_characters", "drop_duplicates"}  # from the group corpus to the group cleaning
# (group, key) -> old value: new value.
_RENAMED_VALUES: dict[tuple[str, str], dict[str, Any]] = {
    ("model", "share_embeddings"): {"decoder": "target_output"},
    ("trainer", "compile"): {"False": "off", "True": "default"},
}
# (group, key) -> the key's new name.
_RENAMED_KEYS = {("trainer", "agreement_after"): "consistency_after"}
# Removed setting -> its replacement, for the error message. Saved configurations are read without it.
GONE = {
    **dict.fromkeys(
        ("search.glossary_mode", "search.glossary_bonus"),
        "search.glossary alone: its terms are in every translation; leave out those that need not be",
    ),
    "search.coverage_penalty": "search.length_penalty above 1, or search.min_length, against omissions",
    "search.min_length_factor": "search.min_length, or search.length_penalty above 1",
    "search.repetition_penalty": "search.no_repeat_ngram",
    "search.min_p": "search.epsilon or search.top_p",
    "attention.kind": "nothing: maps are of the last decoder layer's attention to the source",
    "attention.layer": "nothing: maps are of the last decoder layer",
    "attention.head": "nothing: maps are the mean over the heads",
    "decoding.workers": "decoding.threads=1 for one batch at a time, or a lower decoding.tokens for less memory",
    "decoding.weights": "nothing: models that translate together have equal weights",
    "output.score": "output.format=jsonl, which has the scores of the tokens",
    "model.embedding_dropout": "model.dropout",
    "model.layerdrop": "model.dropout",
    "model.embedding_initialization": "nothing: embeddings begin with standard deviation d_model^-1/2",
    "model.forget_bias": "nothing: it begins with 1",
    "trainer.agreement_after": "trainer.consistency_after",
    "trainer.cuda_graphs": "trainer.compile=reduce-overhead (off is the default)",
    "decoding.cuda_graphs": "nothing: decoding steps are no longer captured as CUDA graphs",
}


def _upgrade_cleaning(config: Mapping[str, Any]) -> dict[str, Any]:
    """Build the group `cleaning` from settings that the group `corpus` once had."""
    corpus = config.get("corpus")
    if "cleaning" in config or not isinstance(corpus, Mapping) or not set(corpus) & _MOVED:
        return dict(config)
    cleaning = {"duplicates": "exact" if corpus.get("drop_duplicates") else "keep"}
    if "max_characters" in corpus:
        cleaning["max_characters"] = corpus["max_characters"]
    remaining = {key: value for key, value in corpus.items() if key not in _MOVED}
    return {**config, "corpus": remaining, "cleaning": cleaning}


def upgrade_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a saved training configuration; unknown settings are unchanged."""
    upgraded = _upgrade_cleaning(config)
    for (group, key), values in _RENAMED_VALUES.items():
        options = upgraded.get(group)
        if isinstance(options, Mapping) and str(options.get(key)) in values:
            upgraded[group] = {**options, key: values[str(options[key])]}
    for (group, key), name in _RENAMED_KEYS.items():
        options = upgraded.get(group)
        if isinstance(options, Mapping) and key in options:
            upgraded[group] = {name if old == key else old: value for old, value in options.items()}
    return _without_gone(_upgrade_cuda_graphs(upgraded))


def _without_gone(config: dict[str, Any]) -> dict[str, Any]:
    """Drop removed settings: none of them decides what a model translates."""
    return {
        group: {key: value for key, value in options.items() if f"{group}.{key}" not in GONE}
        if isinstance(options, Mapping)
        else options
        for group, options in config.items()
    }


def _upgrade_cuda_graphs(config: dict[str, Any]) -> dict[str, Any]:
    """Convert `trainer.cuda_graphs=true` to `trainer.compile=reduce-overhead`."""
    trainer = config.get("trainer")
    if not isinstance(trainer, Mapping) or "cuda_graphs" not in trainer:
        return config
    remaining = {key: value for key, value in trainer.items() if key != "cuda_graphs"}
    if trainer["cuda_graphs"] is True:
        remaining["compile"] = "reduce-overhead"
    return {**config, "trainer": remaining}
