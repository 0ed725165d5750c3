"""Settings written by earlier versions, converted to today's."""

from collections.abc import Mapping
from typing import Any

_MOVED = {"max_characters", "drop_duplicates"}  # of the group corpus, to the group cleaning
# (group, key) -> old value: new value.
_RENAMED: dict[tuple[str, str], dict[str, Any]] = {
    ("model", "share_embeddings"): {"decoder": "target_output"},
    ("trainer", "compile"): {"False": "off", "True": "default"},
}
# A setting that is gone: what took its place, for whoever types it.
GONE = {
    "trainer.cuda_graphs": "trainer.compile=reduce-overhead (off is the default)",
    "decoding.cuda_graphs": "nothing: decoding steps are no longer captured as CUDA graphs",
}


def _cleaning(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with a group `cleaning`, made of what the group `corpus` had before."""
    corpus = config.get("corpus")
    if "cleaning" in config or not isinstance(corpus, Mapping) or not set(corpus) & _MOVED:
        return dict(config)
    cleaning = {"duplicates": "exact" if corpus.get("drop_duplicates") else "keep"}
    if "max_characters" in corpus:
        cleaning["max_characters"] = corpus["max_characters"]
    kept = {key: value for key, value in corpus.items() if key not in _MOVED}
    return {**config, "corpus": kept, "cleaning": cleaning}


def upgraded(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a saved training configuration with today's settings; unknown ones stay as they are."""
    found = _cleaning(config)
    for (group, key), words in _RENAMED.items():
        options = found.get(group)
        if isinstance(options, Mapping) and str(options.get(key)) in words:
            found[group] = {**options, key: words[str(options[key])]}
    return _without_cuda_graphs(found)


def _without_cuda_graphs(config: dict[str, Any]) -> dict[str, Any]:
    """Convert `trainer.cuda_graphs=true` to `trainer.compile=reduce-overhead`."""
    trainer = config.get("trainer")
    if not isinstance(trainer, Mapping) or "cuda_graphs" not in trainer:
        return config
    kept = {key: value for key, value in trainer.items() if key != "cuda_graphs"}
    if trainer["cuda_graphs"] is True:
        kept["compile"] = "reduce-overhead"
    return {**config, "trainer": kept}
