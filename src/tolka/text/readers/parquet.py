"""Parquet, a batch of rows at a time."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from tolka.errors import DataError, reason_of
from tolka.text.pairs import Pair
from tolka.text.readers.base import BothSides, check_columns, register_reader, texts_of


@register_reader(".parquet")
class ParquetFile(BothSides):
    """Columns named by corpus.columns, or after the languages, or fields of such names of the column `translation`."""

    def read(self) -> Iterator[Pair]:
        from pyarrow import types

        schema = self._file.schema_arrow
        names, columns = list(schema.names), list(self.columns or self.direction)
        nested = "translation" in names and not (self.columns and {*columns} <= {*names})
        if nested:
            kind = schema.field("translation").type
            names = [field.name for field in kind] if types.is_struct(kind) else columns
        check_columns(columns, names, str(self.path), self.setting.names)
        # Once each: the two columns of mt-translate's input may be one.
        wanted, number = ["translation"] if nested else list(dict.fromkeys(columns)), 0
        try:
            for batch in self._file.iter_batches(columns=wanted):
                for row in batch.to_pylist():
                    number += 1
                    cells = row["translation"] if nested else row
                    yield Pair(*texts_of(cells, columns, f"{self.path}, row {number}", self.limit))
        except (OSError, ValueError) as error:  # the base classes of pyarrow's errors
            raise DataError(f"{self.path}, after row {number}: {reason_of(error)}; is the file complete?") from None

    def count(self) -> int:
        return int(self._file.metadata.num_rows)

    @cached_property
    def _file(self) -> Any:
        """The open file; DataError when it is not Parquet."""
        from pyarrow import parquet

        try:
            return parquet.ParquetFile(self.path)
        except (OSError, ValueError) as error:
            raise DataError(f"{self.path}: cannot be read as Parquet: {reason_of(error)}") from None
