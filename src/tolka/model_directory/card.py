"""The model card: what a model is, what it was trained on, how good it is, how to use it."""

from collections.abc import Mapping
from typing import Any

from tolka.metrics.tables import between
from tolka.system.number_format import shown


def model_card(config: Mapping[str, Any], facts: Mapping[str, str], scores: Mapping[str, Any]) -> str:
    """Return the model card as Markdown. facts: label -> value, in order. scores: as in scores.json."""
    corpus = config["corpus"]
    lines = [
        f"# {corpus['source']} to {corpus['target']}: {config['run']['name']}",
        "",
        "A translator imported into tolka." if "imported from" in facts else "A translator trained with tolka.",
        "",
        "| | |",
        "|---|---|",
        *(f"| {label} | {value} |" for label, value in facts.items()),
        "",
        "## Scores",
        "",
    ]
    validation = scores.get("validation", {})
    if validation:
        measured = ", ".join(f"{name} {shown(value, 3)}" for name, value in validation.items())
        means = ", ".join(map(str, scores.get("mean_of_updates", [])))
        model = f"the mean of the checkpoints at updates {means}" if means else f"update {scores['update']}"
        lines += [f"Validation of {model}, greedy: {measured}.", ""]
        lines += [*(f"- {name}: `{signature}`" for name, signature in scores.get("signatures", {}).items()), ""]
    for name, entries in scores.get("test", {}).items():
        lines += [f"Test set `{name}`:", "", "| metric | score | 95% interval |", "|---|---|---|"]
        for entry in entries["metrics"]:
            lines.append(f"| {entry['name']} | {entry['score']:.2f} | {between(entry['interval'])} |")
        lines += ["", f"Perplexity {shown(entries['perplexity']['ppl'])} per token. Signatures:", ""]
        lines += [*(f"- {entry['name']}: `{entry['signature']}`" for entry in entries["metrics"]), ""]
    lines += ["## Use", "", "```", "mt-translate THIS_FOLDER < source.txt > translation.txt", "```", ""]
    return "\n".join(lines)
