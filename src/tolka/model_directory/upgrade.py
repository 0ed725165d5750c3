"""Convert settings of earlier versions to those of this one."""

from collections.abc import Mapping
from typing import Any

_MOVED = {"max_characters", "drop_duplicates"}  # from the group corpus to the group cleaning
# (group, key) -> old value: new value.
_RENAMED_VALUES: dict[tuple[str, str], dict[str, Any]] = {
    ("model", "share_embeddings"): {"decoder": "target_output"},
    ("trainer", "compile"): {"False": "off", "True": "default"},
    ("trainer", "parallel"): {"diloco": "auto"},
}
# (group, key) -> the key's new name.
_RENAMED_KEYS = {("trainer", "agreement_after"): "consistency_after"}
# Removed settings that a resumed run may do without, whatever they were.
_REMOVED: dict[str, set[str]] = {
    "trainer": {
        *("communication", "sync_every", "outer_lr", "outer_momentum"),
        *("restarts", "skip_limit", "retries", "disk_limit"),
    },
    "run": {"processes"},
}
# Of a group or an optimizer, removed settings -> the value that they now always have. A run that was trained with
# another one cannot be resumed.
_FIXED: dict[str, dict[str, Any]] = {
    "trainer": {"clip_value": 0.0, "average_of": "last", "simcut_words": 0.05},
    "sgd": {"nesterov": False},
    "adafactor": {"decay": 0.8, "clip": 1.0, "least_size": 0.001},
}
# Removed setting -> its replacement, for the error message.
GONE = {
    **dict.fromkeys(
        ("trainer.sync_every", "trainer.outer_lr", "trainer.outer_momentum"),
        "nothing: DiLoCo went; trainer.parallel is ddp, fsdp or auto",
    ),
    "trainer.restarts": "nothing: processes begin again three times; torchrun --max-restarts says another number",
    "trainer.skip_limit": "nothing: training goes back to last/ after ten skipped updates in a row",
    "trainer.retries": "nothing: it goes back three times",
    "trainer.disk_limit": "trainer.keep_best and trainer.keep_every, which say how many checkpoints there are",
    "trainer.clip_value": "trainer.clip_norm",
    "trainer.average_of": "nothing: trainer.average takes the last; mt-train average MODEL MODEL takes any",
    "trainer.simcut_words": "nothing: SimCut drops 0.05 of the words",
    "optimizer.nesterov": "nothing: optimizer=sgd has plain momentum; optimizer=muon has Nesterov's",
    "optimizer.decay": "nothing: Adafactor has the values that its paper recommends",
    "optimizer.clip": "nothing: Adafactor has the values that its paper recommends",
    "optimizer.least_size": "nothing: Adafactor has the values that its paper recommends",
    "run.processes": "trainer.threads",
    "trainer.communication": "nothing: gradients are sent in fp32",
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
    return _upgrade_cuda_graphs(_without_removed(upgraded))


def _without_removed(config: dict[str, Any]) -> dict[str, Any]:
    """Leave out the removed settings, except those that had another value than the one that they now always have."""
    kept = {}
    for group, options in config.items():
        if isinstance(options, Mapping):
            kind = options.get("name") if group == "optimizer" else group
            removed, fixed = _REMOVED.get(group, set()), _FIXED.get(str(kind), {}).items()
            options = {key: each for key, each in options.items() if key not in removed and (key, each) not in fixed}
        kept[group] = options
    return kept


def _upgrade_cuda_graphs(config: dict[str, Any]) -> dict[str, Any]:
    """Convert `trainer.cuda_graphs=true` to `trainer.compile=reduce-overhead`."""
    trainer = config.get("trainer")
    if not isinstance(trainer, Mapping) or "cuda_graphs" not in trainer:
        return config
    remaining = {key: value for key, value in trainer.items() if key != "cuda_graphs"}
    if trainer["cuda_graphs"] is True:
        remaining["compile"] = "reduce-overhead"
    return {**config, "trainer": remaining}
