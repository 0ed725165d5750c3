"""The provenance of a run: command, versions, machine and texts."""

import json
import platform
import shlex
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from tolka.system.device import describe
from tolka.system.memory import total_memory_bytes
from tolka.text.corpora.base import Corpus
from tolka.training.run_folder import RunFolder

PROVENANCE = "provenance.json"
_PACKAGES = ("tolka", "torch", "numpy", "sentencepiece", "sacrebleu", "safetensors", "hydra-core", "datasets")


def record_provenance(run: RunFolder, corpus: Corpus, device: torch.device) -> None:
    """Add an entry for this call to provenance.json."""
    calls = [*recorded_calls(run.path), {**provenance(corpus, device), "other_settings": run.overridden}]
    run.leave(PROVENANCE, json.dumps({"calls": calls}, ensure_ascii=False, indent=1))


def provenance(corpus: Corpus, device: torch.device) -> dict[str, Any]:
    """Return the provenance of a call. texts: name -> digest."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "folder": str(Path.cwd()),
        "versions": versions(),
        "machine": {
            "system": platform.platform(),
            "processor": _processor(),
            "memory_bytes": total_memory_bytes(),
            "device": describe(device),
            "threads": torch.get_num_threads(),
            "cuda": torch.version.cuda if device.type == "cuda" else None,
        },
        "texts": texts(corpus),
    }


def recorded_calls(run: Path) -> list[dict[str, Any]]:
    """Return the records of earlier calls in a run's folder, the first one first."""
    # A damaged file must not end a training: it is written again.
    try:
        return list(json.loads((run / PROVENANCE).read_text(encoding="utf-8"))["calls"])
    except (OSError, ValueError, KeyError, TypeError):
        return []


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that results depend on."""
    installed = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            continue
    return installed


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def texts(corpus: Corpus) -> dict[str, str]:
    """Return a digest of each text that is read, except a stream's."""
    groups = {"train": corpus.train if corpus.stream is None else [], "valid": corpus.valid, "test": corpus.tests}
    return {f"{group}: {source.name}": source.fingerprint() for group, sources in groups.items() for source in sources}


def differing_entries(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Return the differences between two records that may change the results: "torch: 2.11.0, now 2.13.0"."""
    for group in ("versions", "machine", "texts"):
        old, new = before.get(group, {}), now[group]
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key):
                yield f"{key}: {_shorten(old.get(key))}, now {_shorten(new.get(key))}"


def _shorten(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 40 else f"{text[:12]}…"
