"""What scripts of users rely on in an error: the exit code, the stream, and the names on the one line."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TABLE = (Path(__file__).parents[1] / "kept" / "errors.tsv").read_text(encoding="utf-8")
ROWS = list(csv.DictReader(TABLE.splitlines(), delimiter="\t"))


def test_errors_have_the_codes_and_names_that_they_had(
    command: Callable[..., Any],
    tiny: list[str],
    corpus: Path,
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of every row of tests/kept/errors.tsv."""
    monkeypatch.chdir(tmp_path)
    (corpus / "bad.xa").write_bytes(b"ferry\nk\xe4ttle\n")
    (corpus / "latin").write_bytes(b"k\xe4ttle\n")
    (corpus / "bad.xb").write_bytes(b"fjon\nmirka\n")
    changed = []
    for row in ROWS:
        words = [word for each in row["typed"].split() for word in (tiny if each == "TINY" else [each])]
        places = {"CORPUS": str(corpus), "MODEL": str(trained)}
        name, *typed = [word.replace("CORPUS", places["CORPUS"]).replace("MODEL", places["MODEL"]) for word in words]
        done = command(name, *typed)
        lines = done.err.splitlines()
        named = [each.replace("CORPUS", places["CORPUS"]) for each in row["named"].split()]
        is_one_line = bool(lines) and [line for line in lines if line.startswith("error: ")] == lines[-1:]
        if (done.code, done.out, is_one_line) != (int(row["code"]), "", True) or any(
            each not in lines[-1] for each in named
        ):
            changed.append(f"{row['typed']}: exit code {done.code}, stdout {done.out!r}, {done.err}")
    assert "\n".join(changed) == ""
