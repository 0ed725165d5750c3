"""The messages that tests hold: texts that an assertion looks for in what tolka says.

    python tests/kept/messages.py make      # writes messages.json: those of today's tests
    python tests/kept/messages.py missing   # kept messages that neither a test nor reworded.json accounts for

A message may be reworded, and then `reworded.json` says what it is now; it may go with what it was about, and then
`reworded.json` has `{"gone": "why"}` in its place. No message goes without a word.
"""

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parent
TESTS = KEPT.parent


def _texts(node: ast.AST) -> Iterator[str]:
    """String constants below a node, those inside f-strings too."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def held(source: str) -> set[str]:
    """Messages that a test file's assertions and `match=` arguments look for: texts of two words and more."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assert):
            found.update(_texts(node.test))
        elif isinstance(node, ast.keyword) and node.arg == "match":
            found.update(_texts(node.value))
    return {text for text in (each.strip() for each in found) if " " in text}


def held_now() -> set[str]:
    """Those of all tests."""
    files = (path for path in TESTS.rglob("test_*.py"))
    return set().union(*(held(path.read_text(encoding="utf-8")) for path in files))


def missing() -> list[str]:
    """Kept messages that nothing accounts for, and rewordings that no test holds."""
    now = held_now()
    kept: list[str] = json.loads((KEPT / "messages.json").read_text(encoding="utf-8"))
    reworded: dict[str, Any] = json.loads((KEPT / "reworded.json").read_text(encoding="utf-8"))
    lost = [text for text in kept if text not in now and text not in reworded]
    unheld = [text for text in reworded.values() if isinstance(text, str) and text not in now]
    return [*lost, *unheld]


if __name__ == "__main__":
    if sys.argv[1] == "make":
        (KEPT / "messages.json").write_text(
            json.dumps(sorted(held_now()), indent=0, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    else:
        print(*missing(), sep="\n")
