"""The model card: what a model is, what it was trained on, how good it is, how to use it.

It begins with the metadata in YAML that the Hugging Face Hub reads (its page "Model Cards"; the format of results is
model-index in `modelcard.md` of huggingface/hub-docs).
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from tolka.metrics.tables import between
from tolka.model_directory.card_values import DATA_SET, MEASURED, PARITY
from tolka.model_directory.file_names import CONFIG, SCORES
from tolka.model_directory.manifest import as_written
from tolka.system.number_format import shown


def model_card(
    config: Mapping[str, Any],
    facts: Mapping[str, str],
    scores: Mapping[str, Any],
    repository: str = "",
    *,
    has_config: bool = True,
    marks_lines: bool = True,
    parity: str = "",
) -> str:
    """Return the model card as Markdown; CheckpointError, with the reason, if a value is of another kind.

    facts: label -> value, in order. scores: as in scores.json. repository: OWNER/NAME on the Hub, if it goes there.
    has_config: whether config.yaml is beside the card. marks_lines: whether mt-translate tells which lines to check,
    as it does with torch. parity: `parity_section` of the model that this one is made from.
    """
    with as_written(f"{CONFIG} or {SCORES}"):
        metadata = yaml.safe_dump(_metadata(config, facts, scores), allow_unicode=True, sort_keys=False)
        sections = [
            _title(config, facts),
            _training(facts, scores, has_config),
            _use(repository),
            _scores(scores),
            _limits(facts, marks_lines),
            *([[PARITY, "", parity]] if parity else []),
        ]
    return f"---\n{metadata}---\n\n" + "\n".join("\n".join(lines) + "\n" for lines in sections)


def _metadata(config: Mapping[str, Any], facts: Mapping[str, str], scores: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of the Hub. Without run.licence there is no licence in it."""
    corpus, run = config["corpus"], config["run"]
    results = [_result(config, facts, name, entry) for name, entry in (scores.get("test") or {}).items()]
    metrics = list(dict.fromkeys(metric["type"] for result in results for metric in result["metrics"]))
    return {
        "language": list(dict.fromkeys([corpus["source"], corpus["target"]])),
        **({"license": run["licence"]} if run.get("licence") else {}),
        "library_name": "tolka",
        "pipeline_tag": "translation",
        "tags": ["translation", "tolka"],
        **({"datasets": [facts[DATA_SET]]} if DATA_SET in facts else {}),
        **({"metrics": metrics} if metrics else {}),
        **({"model-index": [{"name": run["name"] or "tolka", "results": results}]} if results else {}),
    }


def _result(config: Mapping[str, Any], facts: Mapping[str, str], name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return one test set's scores for model-index."""
    corpus = config["corpus"]
    return {
        "task": {"type": "translation", "name": f"Translation {corpus['source']}-{corpus['target']}"},
        "dataset": {"type": facts.get(DATA_SET, name), "name": name},
        "metrics": [
            {
                "type": re.split(r"[^a-z]", metric["name"].lower())[0],
                "value": round(metric["score"], 2),
                "name": metric["name"],
                "args": {"signature": metric["signature"]},
            }
            for metric in entry["metrics"]
            if _is_finite(metric["score"])
        ],
    }


def _title(config: Mapping[str, Any], facts: Mapping[str, str]) -> list[str]:
    corpus, origin = config["corpus"], "imported into" if "imported from" in facts else "trained with"
    return [
        f"# {corpus['source']} to {corpus['target']}: {config['run']['name']}",
        "",
        f"A model that translates text from {corpus['source']} to {corpus['target']}, {origin} tolka.",
    ]


def _is_finite(score: float | None) -> bool:
    return score is not None and math.isfinite(score)


def _training(facts: Mapping[str, str], scores: Mapping[str, Any], has_config: bool) -> list[str]:
    rows = dict(facts)
    if scores.get("update") is not None:
        rows["updates"] = str(scores["update"])
    table = [f"| {label} | {value} |" for label, value in rows.items()]
    settings = ["", f"All settings are in `{CONFIG}`."] if has_config else []
    return ["## Training", "", "| | |", "|---|---|", *table, *settings]


def _use(repository: str) -> list[str]:
    folder = repository.rpartition("/")[2] or "THIS_FOLDER"
    load = [f"hf download {repository} --local-dir {folder}"] if repository else []
    return [
        "## Use",
        "",
        "```",
        *load,
        f"mt-translate {folder} < source.txt > translation.txt",
        "```",
        "",
        "In Python:",
        "",
        "```python",
        "import tolka",
        "",
        f'translator = tolka.load("{folder}")',
        'translator(["A sentence."])',
        "```",
    ]


def _scores(scores: Mapping[str, Any]) -> list[str]:
    lines = list(_validation(scores))
    for name, entries in (scores.get("test") or {}).items():
        lines += [f"Test set `{name}`:", "", "| metric | score | 95% interval |", "|---|---|---|"]
        for entry in entries["metrics"]:
            score = f"{entry['score']:.2f}" if _is_finite(entry["score"]) else "nan"
            lines.append(f"| {entry['name']} | {score} | {_interval(entry.get('interval'))} |")
        lines += ["", f"Perplexity {shown(entries['perplexity']['ppl'])} per token. Signatures:", ""]
        lines += [*(f"- {entry['name']}: `{entry['signature']}`" for entry in entries["metrics"]), ""]
    if lines and MEASURED in scores:
        lines = [f"Scores were measured {scores[MEASURED]}.", "", *lines]
    return ["## Scores", "", *(lines[:-1] or ["It was not scored."])]


def _interval(found: list[float | None] | None) -> str:
    return between([each for each in found if each is not None]) if found and None not in found else ""


def _validation(scores: Mapping[str, Any]) -> Iterator[str]:
    validation = scores.get("validation")
    if validation:
        measured = ", ".join(f"{name} {shown(value, 3)}" for name, value in validation.items())
        means = ", ".join(map(str, scores.get("mean_of_updates") or []))
        model = f"the mean of the checkpoints at updates {means}" if means else f"update {scores['update']}"
        yield from [f"Validation of {model}, greedy: {measured}.", ""]
        yield from [*(f"- {name}: `{signature}`" for name, signature in (scores.get("signatures") or {}).items()), ""]


def _limits(facts: Mapping[str, str], marks_lines: bool) -> list[str]:
    text = f" ({facts['training text']})" if "training text" in facts else ""
    marks = " With `output.format=jsonl`, `mt-translate` marks the lines that a person should check."
    return [
        "## Limits",
        "",
        f"- It knows the words and the style of its training text{text}. Other text it translates worse than the "
        "scores say, which are of the test sets named above.",
        "- A translation may read well and be wrong: names, numbers and negations need a look, and a sentence may be "
        f"left out.{marks if marks_lines else ''}",
        "- It translates each line by itself, and so does not know what a pronoun refers to in the line before.",
    ]
