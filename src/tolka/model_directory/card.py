"""The model card: a model's architecture, training text, scores and use.

It begins with the metadata in YAML that the Hugging Face Hub reads (its page "Model Cards"; the format of results is
model-index in `modelcard.md` of huggingface/hub-docs). Its text is that of `card.md` beside this file.
"""

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from tolka.metrics.tables import interval_text
from tolka.model_directory.file_names import CARD, CONFIG, SCORES
from tolka.model_directory.verify import as_written
from tolka.system.number_format import number_text
from tolka.system.whole_files import read_text
from tolka.text.lines import user_path

MEASURED = "measured"  # the key in scores.json of what was measured, where that is not these weights
ROBUSTNESS = "robustness"  # the key in scores.json of what changes of a text cost
DATA_SET, MADE_OF = "data set", "made of"  # facts: the training text on the Hub; the models of a combined one
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)  # OWNER/NAME on the Hub
_PARITY = "## Parity"  # the section of an imported model


def model_card(
    config: Mapping[str, Any],
    facts: Mapping[str, str],
    scores: Mapping[str, Any],
    repository: str = "",
    *,
    has_config: bool = True,
    marks_lines: bool = True,
    is_folder: bool = True,
    parity: str = "",
) -> str:
    """Return the model card as Markdown; CheckpointError, with the reason, if a value is of another kind.

    facts: label -> value, in order. scores: as in scores.json. repository: OWNER/NAME on the Hub, if it is published.
    has_config: whether config.yaml is beside the card. marks_lines: whether mt-translate can flag lines to check, as it
    does with torch. is_folder: whether the card is in a folder that mt-translate reads. parity: `parity_section` of the
    model that this one is made from.
    """
    from jinja2 import StrictUndefined, Template, UndefinedError

    text = Path(__file__).with_name("card.md").read_text(encoding="utf-8")
    template: Template = Template(
        text, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    with as_written(f"{CONFIG} or {SCORES}"):
        direction = "{source} to {target}".format(**config["corpus"])
        metadata = yaml.safe_dump(_metadata(config, facts, scores), allow_unicode=True, sort_keys=False)
        try:
            return template.render(
                metadata=metadata,
                languages=facts["languages"] if _is_of_several(facts) else direction,
                name=config["run"]["name"],
                facts=facts,
                update=scores["update"] if scores.get("validation") else scores.get("update"),
                scores=scores,
                folder=f"hub:{repository}" if repository else "THIS_FOLDER",
                has_config=has_config,
                marks_lines=marks_lines,
                is_folder=is_folder,
                parity=parity,
                shown=number_text,
                interval=_interval,
                is_finite=_is_finite,
            )
        except UndefinedError as error:
            raise LookupError(str(error)) from None


def _metadata(config: Mapping[str, Any], facts: Mapping[str, str], scores: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of the Hub; without run.licence they name no licence."""
    corpus, run, tests = config["corpus"], config["run"], scores.get("test") or {}
    # A model of one direction may have other names for its languages in its tests.
    directions = [each["direction"] for each in tests.values() if "direction" in each and _is_of_several(facts)]
    results = [_result(config, facts, name, entry) for name, entry in tests.items()]
    metrics = list(dict.fromkeys(metric["type"] for result in results for metric in result["metrics"]))
    return {
        "language": list(dict.fromkeys([corpus["source"], corpus["target"], *chain.from_iterable(directions)])),
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
    source, target = entry.get("direction") or (corpus["source"], corpus["target"])
    return {
        "task": {"type": "translation", "name": f"Translation {source}-{target}"},
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


def _is_of_several(facts: Mapping[str, str]) -> bool:
    """Return whether a model translates in several directions."""
    return ", " in facts.get("languages", "")


def _is_finite(score: float | None) -> bool:
    return score is not None and math.isfinite(score)


def _interval(found: list[float | None] | None) -> str:
    return interval_text([each for each in found if each is not None]) if found and None not in found else ""


def facts_of(folder: Path, scores: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts of a model directory: label -> value."""
    with as_written(f"{folder / SCORES}: facts"):
        return dict(scores.get("facts") or {})


def hub_data_set(corpus: Mapping[str, Any]) -> str:
    """Return the training text's name on the Hub; "" for files of one's own, which only the training machine has."""
    path = str(corpus.get("path", ""))
    return path if REPOSITORY.fullmatch(path) and not user_path(path).exists() else ""


def parity_section(folder: Path) -> str:
    """Return the section on parity of an imported model's card; "" if the card has none."""
    with suppress(OSError, ValueError):  # a card is for people: it may be gone
        return read_text(folder / CARD).partition(f"\n{_PARITY}\n")[2].strip()
    return ""
