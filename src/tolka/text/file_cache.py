"""A cache of facts about large files, valid while the file is unchanged: reading it again takes seconds."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tolka.system.atomic import replace_text

_LEAST_BYTES = 2**20  # a smaller file is read again: that is about as fast as the lookup
_MIN_AGE_SECONDS = 2.0  # a younger file may change again without a new time stamp: the clock of file times is coarse


class KnownFiles:
    """Facts by file, in a JSON file; if that cannot be read or written, nothing is cached."""

    def __init__(self, store: Path | None = None) -> None:
        self._store = store
        self._facts: dict[str, list[Any]] = {}
        try:
            saved = json.loads(store.read_text(encoding="utf-8")) if store else {}
            self._facts = {str(key): list(value) for key, value in saved.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            pass

    def recall(self, fact: str, path: Path, compute: Callable[[Path], Any]) -> Any:
        """Return `compute(path)`, which must be plain JSON, or its cached result while the file is unchanged.

        fact: the name of what is computed.
        """
        try:
            stat = path.stat()
        except OSError:
            return compute(path)
        if self._store is None or stat.st_size < _LEAST_BYTES:
            return compute(path)
        key = f"{fact}:{path.resolve()}"
        version = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]
        cached = self._facts.get(key)
        if cached and cached[:-1] == version:
            return cached[-1]
        value = compute(path)
        if time.time() - stat.st_mtime > _MIN_AGE_SECONDS:
            self._facts[key] = [*version, value]
            self._save(self._store)
        return value

    def _save(self, store: Path) -> None:
        facts = {key: fact for key, fact in self._facts.items() if Path(key.partition(":")[2]).exists()}
        try:
            store.parent.mkdir(parents=True, exist_ok=True)
            replace_text(store, json.dumps(facts))
        except OSError:  # the cache is read-only
            pass
