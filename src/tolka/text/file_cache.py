"""A cache of facts about large files, valid while the file is unchanged: reading it again takes seconds."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tolka.system.atomic import replace_text

_LEAST_BYTES = 2**20  # a smaller file is read faster than it is looked up
_SECONDS_OF_DOUBT = 2.0  # a file that was just written may change again within the clock's grain


class KnownFiles:
    """Facts by file, in a JSON file; if that cannot be read or written, nothing is cached."""

    def __init__(self, store: Path | None = None) -> None:
        self._store = store
        self._facts: dict[str, list[Any]] = {}
        try:
            found = json.loads(store.read_text(encoding="utf-8")) if store else {}
            self._facts = {str(key): list(value) for key, value in found.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            pass

    def recall(self, what: str, path: Path, find: Callable[[Path], Any]) -> Any:
        """Return `find(path)`, which must be plain JSON, or its earlier result for the same content."""
        try:
            state = path.stat()
        except OSError:
            return find(path)
        if self._store is None or state.st_size < _LEAST_BYTES:
            return find(path)
        key = f"{what}:{path.resolve()}"
        mark = [state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino]
        known = self._facts.get(key)
        if known and known[:-1] == mark:
            return known[-1]
        found = find(path)
        if time.time() - state.st_mtime > _SECONDS_OF_DOUBT:
            self._facts[key] = [*mark, found]
            self._save(self._store)
        return found

    def _save(self, store: Path) -> None:
        present = {key: fact for key, fact in self._facts.items() if Path(key.partition(":")[2]).exists()}
        try:
            store.parent.mkdir(parents=True, exist_ok=True)
            replace_text(store, json.dumps(present))
        except OSError:  # a read-only cache
            pass
