"""Workbooks of Excel (xlsx): the rows of the first sheet."""

import warnings
import zipfile
from collections.abc import Iterator
from typing import IO, Any

from tolka.errors import ConfigError, DataError
from tolka.text.readers.base import register_reader
from tolka.text.readers.columns import TsvFile

# Ceilings of Excel itself on rows, of what can be of use on columns, and on what a small file may unpack to.
_MAX_ROWS, _MAX_COLUMNS, _MAX_BYTES = 2**20, 64, 2**28


@register_reader(".xlsx")
class XlsxFile(TsvFile):
    """The first sheet: columns numbered from 1 or named in the first row, by corpus.columns or after the languages."""

    has_lines = False

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        try:
            with self.path.open("rb") as stream:
                # A small archive may unpack to more than memory holds.
                size = sum(member.file_size for member in zipfile.ZipFile(stream).infolist())
                if size > _MAX_BYTES:
                    raise ValueError(f"{size} bytes unpacked, and {_MAX_BYTES} are allowed: save it as csv")
                sheet = self._workbook(stream).worksheets[0]
                # What the file says of its size may be wrong.
                sheet.reset_dimensions()
                for number, cells in enumerate(sheet.iter_rows(max_col=_MAX_COLUMNS, values_only=True), 1):
                    if number > _MAX_ROWS:
                        raise ValueError(f"more than {_MAX_ROWS} rows")
                    texts = ["" if cell is None else str(cell) for cell in cells] if any(cells) else [""]
                    for text in texts:
                        self.limit.check(text, f"{self.path}:{number}", "a cell")
                    yield number, texts
        except (ConfigError, DataError):
            raise
        except Exception as error:
            # openpyxl has no base class of its errors, and does not expect damaged files.
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"
            raise DataError(f"{self.path}: cannot be read as a workbook of Excel ({reason})") from None

    def _workbook(self, stream: IO[bytes]) -> Any:
        """Return the open file; ConfigError without openpyxl."""
        try:
            from openpyxl import load_workbook
        except ImportError:
            raise ConfigError(f"{self.path}: to read Excel's files, pip install 'tolka[documents]'") from None
        with warnings.catch_warnings(action="ignore"):  # of features that openpyxl leaves out, such as styles
            return load_workbook(stream, read_only=True, data_only=True, keep_links=False)

    def count(self) -> int:
        return sum(1 for _ in self.rows()) - (not self._by_number)
