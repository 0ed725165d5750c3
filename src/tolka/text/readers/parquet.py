"""Parquet, a batch of rows at a time."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from tolka.errors import DataError
from tolka.options.registry import did_you_mean
from tolka.text.pairs import Pair
from tolka.text.readers.base import BothSides, one_line, register_reader


@register_reader(".parquet")
class ParquetFile(BothSides):
    """Columns named by corpus.columns, or after the languages, or fields of such names of the column `translation`."""

    def read(self) -> Iterator[Pair]:
        names = list(self._file.schema_arrow.names)
        columns = list(self.columns or self.direction)
        nested = "translation" in names and (not self.columns or self._are_nested(columns))
        for name in [] if nested else columns:
            if name not in names:
                raise DataError(
                    f"{self.path}: no column is called '{name}'.{did_you_mean(name, names)} {self.setting.names}"
                )
        # Once each: the two columns of mt-translate's input may be one.
        wanted, number = ["translation"] if nested else list(dict.fromkeys(columns)), 0
        try:
            for batch in self._file.iter_batches(columns=wanted):
                for row in batch.to_pylist():
                    number += 1
                    yield self._pair(row["translation"] if nested else row, columns, number)
        except (OSError, ValueError) as error:  # the base classes of pyarrow's errors
            reason = " ".join(str(error).split())[:200]
            raise DataError(f"{self.path}, after row {number}: {reason}; is the file complete?") from None

    def _are_nested(self, columns: list[str]) -> bool:
        """Return whether the columns are fields of the column `translation`, and not columns themselves."""
        from pyarrow import types

        schema = self._file.schema_arrow
        kind = schema.field("translation").type
        if set(columns) <= set(schema.names) or not types.is_struct(kind):
            return False
        return set(columns) <= {field.name for field in kind}

    def _pair(self, cells: Any, columns: list[str], number: int) -> Pair:
        if not isinstance(cells, dict | None):
            raise DataError(
                f"{self.path}, row {number}: 'translation' holds {cells!r:.60}, not a text of each language"
            )
        texts = [(cells or {}).get(name) for name in columns]
        for name, text in zip(columns, texts, strict=True):
            if not isinstance(text, str | None):
                raise DataError(f"{self.path}, row {number}: '{name}' holds {text!r:.60}, which is not text")
            self.limit.check(text or "", f"{self.path}, row {number}", f"'{name}'")
        return Pair(*(one_line(text or "") for text in texts))

    def count(self) -> int:
        return int(self._file.metadata.num_rows)

    @cached_property
    def _file(self) -> Any:
        """The open file; DataError when it is not Parquet."""
        from pyarrow import parquet

        try:
            return parquet.ParquetFile(self.path)
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())[:200]
            raise DataError(f"{self.path}: cannot be read as Parquet: {reason}") from None
