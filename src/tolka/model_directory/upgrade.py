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
# Removed settings that no weight depends on.
_DROPPED = {"corpus": {"check", "max_line_bytes"}, "metrics": {"seed", "legacy"}, "report": {"sentences"}}
# Removed setting -> its replacement, for the error message.
GONE = {
    **{f"corpus.root_{key}": f"corpus.{key}=[[SPLIT,PREFIX]]" for key in ("train", "valid", "test")},
    "corpus.caps": "corpus.weights or corpus.temperature, or a text with fewer lines",
    "corpus.check": "mt-train --check, before the training",
    "corpus.max_line_bytes": "nothing: a longer line is an error; split it, or take it out",
    **dict.fromkeys(("legacy", "metrics.legacy"), "bleu-lc, as in metrics.names=[bleu,bleu-lc]"),
    "metrics.seed": "nothing: it is 12345, as of the sacrebleu command",
    "report.sentences": "mt-translate MODEL FILE --attention DIR, which shows what is in a file",
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
    upgraded = _upgrade_corpus(_upgrade_cleaning(config))
    metrics = upgraded.get("metrics")
    if isinstance(metrics, Mapping) and metrics.get("legacy") is True and isinstance(metrics.get("names"), list):
        upgraded["metrics"] = {**metrics, "names": [*metrics["names"], "bleu-lc"]}
    for group, keys in _DROPPED.items():
        if isinstance(options := upgraded.get(group), Mapping):
            upgraded[group] = {key: value for key, value in options.items() if key not in keys}
    for (group, key), values in _RENAMED_VALUES.items():
        options = upgraded.get(group)
        if isinstance(options, Mapping) and str(options.get(key)) in values:
            upgraded[group] = {**options, key: values[str(options[key])]}
    for (group, key), name in _RENAMED_KEYS.items():
        options = upgraded.get(group)
        if isinstance(options, Mapping) and key in options:
            upgraded[group] = {name if old == key else old: value for old, value in options.items()}
    return _upgrade_cuda_graphs(upgraded)


def _upgrade_corpus(config: dict[str, Any]) -> dict[str, Any]:
    """Name splits of the Hub and their files in corpus.root together; drop caps that capped nothing."""
    corpus = config.get("corpus")
    if not isinstance(corpus, Mapping):
        return config
    remaining = dict(corpus)
    if isinstance(caps := corpus.get("caps"), list) and not any(caps):
        del remaining["caps"]
    for key in ("train", "valid", "test"):
        files, splits = remaining.pop(f"root_{key}", None), remaining.get(key)
        if not isinstance(files, list) or not isinstance(splits, list):
            continue
        if len(files) == len(splits):
            remaining[key] = [name if name == file else [name, file] for name, file in zip(splits, files, strict=True)]
        elif remaining.get("root"):  # only the files were read
            remaining[key] = files
    return {**config, "corpus": remaining}


def gone_settings(config: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each removed setting in a configuration, with what there is in its place."""
    given = [f"{group}.{key}" for group, options in config.items() if isinstance(options, Mapping) for key in options]
    return [f"{key} is gone; in its place: {GONE[key]}" for key in given if key in GONE]


def _upgrade_cuda_graphs(config: dict[str, Any]) -> dict[str, Any]:
    """Convert `trainer.cuda_graphs=true` to `trainer.compile=reduce-overhead`."""
    trainer = config.get("trainer")
    if not isinstance(trainer, Mapping) or "cuda_graphs" not in trainer:
        return config
    remaining = {key: value for key, value in trainer.items() if key != "cuda_graphs"}
    if trainer["cuda_graphs"] is True:
        remaining["compile"] = "reduce-overhead"
    return {**config, "trainer": remaining}
