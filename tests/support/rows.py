"""A table of cases in one test, which names the rows that fail."""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any


def each_row(names: str | tuple[str, ...], rows: Iterable[Any], **_: Any) -> Callable[[Callable[..., None]], Any]:
    """Call a test for each row, as pytest.mark.parametrize does, but as one item: hundreds of them take time.

    For tests that leave nothing behind: fixtures are made once for all rows.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    values = [(row,) if len(keys) == 1 else tuple(row) for row in rows]
    assert values

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def all_rows(**given: Any) -> None:
            failed = []
            for row in values:
                try:
                    test(**given, **dict(zip(keys, row, strict=True)))
                except Exception as error:
                    failed.append((row, error))
            if failed:
                lines = [f"{row!r:.200}: {type(error).__name__}: {error!s:.500}" for row, error in failed]
                raise AssertionError("\n".join([f"{len(failed)} of {len(values)} rows", *lines])) from failed[0][1]

        signature = inspect.signature(test)
        others = [parameter for name, parameter in signature.parameters.items() if name not in keys]
        vars(all_rows)["__signature__"] = signature.replace(parameters=others)
        return all_rows

    return decorate
