"""Workbooks of Excel and LibreOffice (xlsx, xlsb, xls, ods): the rows of the first sheet."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from tolka.errors import DataError
from tolka.text.readers.base import register_reader
from tolka.text.readers.columns import TsvFile

# A file of some hundred kilobytes may unpack to more than memory holds, or have cells at the far end of a sheet, all of
# which is kept: what reads it may use so much, and Excel has no more rows.
_MOST_BYTES, _MOST_SECONDS = 2**31, 60
_MOST_ROWS, _MOST_COLUMNS = 2**20, 64
_TOO_LARGE = f"it needs more than {_MOST_BYTES >> 30} GB of memory or {_MOST_SECONDS} s"


@register_reader(".xlsx", ".xlsb", ".xls", ".ods")
class WorkbookFile(TsvFile):
    """The first sheet: columns numbered from 1 or named in the first row, by corpus.columns or after the languages."""

    has_lines = False
    version = "2"

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        # By another process: Rust ends one that gets no memory, and not only the reading.
        command = [sys.executable, "-P", __file__, str(self.path), str(self.limit.max_bytes + 1)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
            assert child.stdout
            for number, line in enumerate(child.stdout, 1):
                row = json.loads(line)
                if isinstance(row, str):
                    raise self._unreadable(row)
                for text in row:
                    self.limit.check(text, f"{self.path}:{number}", "a cell")
                yield number, row if any(row) else [""]
        if child.returncode:
            raise self._unreadable(_TOO_LARGE if child.returncode < 0 else "it is damaged")

    def _unreadable(self, reason: str) -> DataError:
        return DataError(f"{self.path}: cannot be read as a workbook ({reason}); save it as csv")

    def count(self) -> int:
        return sum(1 for _ in self.rows()) - (not self.is_by_number)


def main(path: Path, most_characters: int) -> None:
    """Print each row as a JSON list of texts, or a JSON string that says why the file cannot be read."""
    from python_calamine import load_workbook

    with suppress(ImportError):  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (_MOST_SECONDS, _MOST_SECONDS))
    try:
        sheet = load_workbook(path).get_sheet_by_index(0)
        _, column = sheet.start or (0, 0)
        for number, cells in enumerate(sheet.iter_rows()):
            if number == _MOST_ROWS:
                raise ValueError(f"more than {_MOST_ROWS} rows")
            # A whole number is a float, too, and what stands before the first column is not in the row.
            whole = (int(cell) if isinstance(cell, float) and cell.is_integer() else cell for cell in cells)
            row = ["" for _ in range(column)] + [str(cell)[:most_characters] for cell in islice(whole, _MOST_COLUMNS)]
            print(json.dumps(row[:_MOST_COLUMNS]))
    except MemoryError:
        print(json.dumps(_TOO_LARGE))
    except Exception as error:
        print(json.dumps(f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
