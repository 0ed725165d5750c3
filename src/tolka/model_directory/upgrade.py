"""Convert settings of earlier versions to those of this one."""

from collections.abc import Iterator, Mapping
from typing import Any

# (group, key) -> old value: new value.
_RENAMED_VALUES: dict[tuple[str, str], dict[str, Any]] = {
    ("model", "share_embeddings"): {"decoder": "target_output"},
    ("trainer", "parallel"): {"diloco": "auto"},
}
# Removed setting, or setting=value -> replacement. Typed ones are refused with it, and saved ones are dropped.
REMOVED = {
    **{f"corpus.root_{key}": f"corpus.{key}=[[SPLIT,PREFIX]]" for key in ("train", "valid", "test")},
    "corpus.caps": "corpus.weights or corpus.temperature, or a text with fewer lines",
    "corpus.check": "mt-train --check, before the training",
    "corpus.max_line_bytes": "nothing: a longer line is an error; split it, or take it out",
    **dict.fromkeys(("legacy", "metrics.legacy"), "bleu-lc, as in metrics.names=[bleu,bleu-lc]"),
    "metrics.seed": "nothing: it is 12345, as of the sacrebleu command",
    "report.sentences": "mt-translate MODEL FILE --attention DIR, which shows what is in a file",
    **dict.fromkeys(
        ("trainer.sync_every", "trainer.outer_lr", "trainer.outer_momentum"),
        "nothing: DiLoCo went; trainer.parallel is ddp, fsdp or auto",
    ),
    "trainer.parallel=diloco": "trainer.parallel=ddp, fsdp or auto",
    "trainer.restarts": "nothing: processes begin again three times; torchrun --max-restarts says another number",
    "trainer.skip_limit": "nothing: training goes back to last/ after ten skipped updates in a row",
    "trainer.retries": "nothing: it goes back three times",
    "trainer.disk_limit": "trainer.keep_best and trainer.keep_every, which say how many checkpoints there are",
    "trainer.clip_value": "trainer.clip_norm",
    "trainer.find_lr": "the rate of the experiment, or -m optimizer.lr=3e-4,1e-3,3e-3, which trains at each",
    "trainer.average_of": "nothing: trainer.average takes the last; mt-train average MODEL MODEL takes any",
    **dict.fromkeys(
        ("trainer.r_drop", "trainer.simcut", "trainer.simcut_words", "trainer.word_dropout"),
        "model.dropout: in the same time it gained nothing (docs/choosing.md)",
    ),
    **dict.fromkeys(("trainer.consistency_after", "trainer.agreement_after"), "nothing: R-Drop and SimCut are gone"),
    "optimizer.nesterov": "nothing: optimizer=sgd has plain momentum; optimizer=muon has Nesterov's",
    "optimizer.decay": "nothing: Adafactor has the values that its paper recommends",
    "optimizer.clip": "nothing: Adafactor has the values that its paper recommends",
    "optimizer.least_size": "nothing: Adafactor has the values that its paper recommends",
    "run.processes": "trainer.threads",
    "trainer.communication": "nothing: gradients are sent in fp32",
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
    **dict.fromkeys(
        ("trainer.compile", "trainer.cuda_graphs"),
        "a larger batching.tokens: compiling gained 4 to 8 % on a GPU (docs/performance.md)",
    ),
    "decoding.cuda_graphs": "nothing: decoding steps are no longer captured as CUDA graphs",
}
# Settings whose loss changes how a run continues -> the value with which they had no effect.
_WITHOUT_EFFECT: dict[str, Any] = {
    "corpus.caps": [],
    "model.embedding_dropout": -1.0,
    "model.layerdrop": 0.0,
    "trainer.clip_value": 0.0,
    "trainer.average_of": "last",
    "trainer.r_drop": 0.0,
    "trainer.simcut": 0.0,
    "trainer.simcut_words": 0.05,
    "trainer.word_dropout": 0.0,
    "trainer.consistency_after": 0,
    "trainer.agreement_after": 0,
    "optimizer.nesterov": False,
    "optimizer.decay": 0.8,
    "optimizer.clip": 1.0,
    "optimizer.least_size": 0.001,
}
# The kinds that had the removed settings of a group; another kind, of a plugin, may have a setting of the same name.
_KINDS = {"model": ("rnn", "transformer"), "search": ("beam", "diverse", "greedy", "mbr", "sampling")}
_OPTIMIZERS = {"nesterov": ("sgd",), **dict.fromkeys(("decay", "clip", "least_size"), ("adafactor",))}


def removal_message(key: str, value: object) -> str:
    """Return the message for a removed setting, or a removed value of one, with its replacement; "" for any other."""
    choice = f"{key}={value}" if isinstance(value, str) else key  # a list of a damaged file may be endless as text
    removed = next((each for each in (key, choice) if each in REMOVED), "")
    return f"{removed} is gone; in its place: {REMOVED[removed]}" if removed else ""


def lost_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the removed settings of a saved run without which it would continue otherwise: "group.key" -> value."""
    removed = {f"{group}.{key}": value for group, key, value in removed_settings(_renamed(config))}
    return {
        key: value for key, value in removed.items() if key not in REMOVED or _WITHOUT_EFFECT.get(key, value) != value
    }


def upgrade_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a saved training configuration, without removed settings; unknown ones are unchanged."""
    upgraded = _renamed(config)
    for group, key, _ in list(removed_settings(upgraded)):
        upgraded[group] = {each: value for each, value in upgraded[group].items() if each != key}
    return upgraded


def removed_settings(config: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield the group, key and value of each removed setting."""
    for group, options in config.items():
        for key, value in options.items() if isinstance(options, Mapping) else ():
            kinds = _OPTIMIZERS.get(key, ()) if group == "optimizer" else _KINDS.get(group, ())
            is_other_kind = bool(kinds) and "name" in options and options["name"] not in kinds
            if removal_message(f"{group}.{key}", value) and not is_other_kind:
                yield group, key, value


def _renamed(config: Mapping[str, Any]) -> dict[str, Any]:
    """Convert settings that have another name, place or value now."""
    upgraded = {group: dict(options) if isinstance(options, Mapping) else options for group, options in config.items()}
    groups = {group: options for group, options in upgraded.items() if isinstance(options, dict)}
    corpus, metrics = groups.get("corpus", {}), groups.get("metrics", {})
    # The first versions had these in the corpus group, and wrote no cleaning group.
    if "cleaning" not in config and corpus.keys() & {"max_characters", "drop_duplicates"}:
        upgraded["cleaning"] = {"duplicates": "exact" if corpus.pop("drop_duplicates", False) else "keep"}
        if "max_characters" in corpus:
            upgraded["cleaning"]["max_characters"] = corpus.pop("max_characters")
    _upgrade_corpus(corpus)
    if metrics.get("legacy") is True and isinstance(metrics.get("names"), list):
        metrics["names"] = [*metrics["names"], "bleu-lc"]
    for (group, key), values in _RENAMED_VALUES.items():
        options = groups.get(group, {})
        if str(options.get(key)) in values:
            options[key] = values[str(options[key])]
    return upgraded


def _upgrade_corpus(corpus: dict[str, Any]) -> None:
    """Name splits of the Hub and their files in corpus.root together; drop caps that capped nothing."""
    if isinstance(caps := corpus.get("caps"), list) and not any(caps):
        del corpus["caps"]
    for key in ("train", "valid", "test"):
        files, splits = corpus.pop(f"root_{key}", None), corpus.get(key)
        if not isinstance(files, list) or not isinstance(splits, list):
            continue
        if len(files) == len(splits):
            corpus[key] = [name if name == file else [name, file] for name, file in zip(splits, files, strict=True)]
        elif corpus.get("root"):  # only the files were read
            corpus[key] = files
