"""How much code a reader of the Transformer meets, and how little lies loose."""

import ast

from test_layers import GRAPH, PACKAGE

# What a reader may skip: it computes the same faster, parses settings, or reports errors.
SKIPPED = ("kernels", "options", "system", "errors")
MOST_MODULES, MOST_LINES, MOST_LOOSE = 15, 1500, 5


def closure(module: str) -> dict[str, int]:
    """Modules that `module` imports, directly or not, and itself -> lines; without `SKIPPED` and empty packages."""
    found, waiting = set(), [module]
    while waiting:
        if (each := waiting.pop()) not in found:
            found.add(each)
            waiting += GRAPH[each]
    lines = {}
    for each in found:
        path = PACKAGE.parent / each.replace(".", "/")
        text = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")
        if each != "tolka" and each.split(".")[1] not in SKIPPED and len(ast.parse(text).body) > 1:
            lines[each] = len(text.splitlines())
    return lines


def test_the_transformer_can_be_read_in_one_sitting() -> None:
    met = closure("tolka.models.transformer.model")
    assert len(met) <= MOST_MODULES, sorted(met)
    assert sum(met.values()) <= MOST_LINES, met


def test_few_modules_lie_loose() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= MOST_LOOSE
