"""docs/attention.md computes what it shows: its tables by hand here, its Python as it stands there."""

import contextlib
import io
import math
import re
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "docs" / "attention.md").read_text(encoding="utf-8")
TOKENS = ["`<s>`", "the", "cat"]
X = [[1, 0, 1, 0], [0, 2, 0, 0], [1, 1, 0, 2]]
KEYS = [[*x[2:], *x[:2]] for x in X]


def scores(query: list[int], keys: list[list[int]]) -> list[int]:
    return [sum(q * k for q, k in zip(query, key, strict=True)) for key in keys]


def softmax(values: list[float]) -> list[float]:
    exps = [math.exp(value) for value in values]
    return [each / sum(exps) for each in exps]


def mean(weights: list[float], values: list[list[int]]) -> list[float]:
    return [sum(w * v for w, v in zip(weights, column, strict=True)) for column in zip(*values, strict=True)]


def shown(values: list[float]) -> str:
    return ", ".join(f"{value:.3f}" for value in values)


def test_the_tables_of_one_head() -> None:
    for position, (token, x) in enumerate(zip(TOKENS, X, strict=True)):
        assert f"| {position} | {token} | {tuple(x)} |" in TEXT
        assert f"| {token} | {tuple(x)} | {tuple(KEYS[position])} | {tuple(x)} |" in TEXT
        raw = scores(x, KEYS)
        assert f"| {token} | {' | '.join(map(str, raw))} |" in TEXT
        scaled = [score / math.sqrt(4) if key <= position else -math.inf for key, score in enumerate(raw)]
        assert f"| {token} | {' | '.join(f'{each:g}' for each in scaled)} |".replace("inf", "∞") in TEXT
        weights = softmax(scaled)
        assert f"| {token} | {shown(weights).replace(', ', ' | ')} |" in TEXT
        assert f"| {token} | ({shown(mean(weights, X))}) |" in TEXT


def test_the_tables_of_two_heads() -> None:
    output = []
    for head in (0, 1):
        part = slice(2 * head, 2 * head + 2)
        raw = scores(X[2][part], [key[part] for key in KEYS])
        scaled = [score / math.sqrt(2) for score in raw]
        weights = softmax(scaled)
        row = f"| {head + 1} | {', '.join(map(str, raw))} | {shown(scaled)} | {shown(weights)} |"
        assert row in TEXT
        output += mean(weights, [x[part] for x in X])
    assert f"({shown(output)})" in TEXT


def test_the_numbers_between_the_tables() -> None:
    assert f"exp(0.5) = {math.exp(0.5):.3f} and twice exp(2) = {math.exp(2):.3f}" in TEXT
    assert f"with the sum {math.exp(0.5) + 2 * math.exp(2):.3f}" in TEXT
    unmasked = softmax([score / 2 for score in scores(X[1], KEYS)])
    assert f"give {unmasked[2]:.3f} to" in TEXT


def test_its_python_prints_what_stands_below_it() -> None:
    [(code, expected)] = re.findall(r"```python\n(.*?)```\s+```text\n(.*?)```", TEXT, flags=re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue() == expected
