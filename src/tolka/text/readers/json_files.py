"""JSON lines with texts under any two keys, {"translation": {"en": ..., "de": ...}}; and JSON, as datasets reads it."""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from tolka.errors import DataError
from tolka.text.encodings import conversion, likely_encoding
from tolka.text.lines import read_blocks
from tolka.text.pairs import Pair
from tolka.text.readers.base import BothSides, check_columns, one_line, register_reader, texts_of

_SURROGATE = re.compile("[\ud800-\udfff]")  # JSON can escape half of a surrogate pair, which UTF-8 cannot encode
_HEAD_BYTES, _MOST_BYTES = 2**16, 2**30
# The beginning of a list, alone or after keys with plain values.
_LIST = re.compile(r'\ufeff?\s*(?:\{(?:\s*"\w+"\s*:\s*(?:"[^"\\]*"|[-+.\w]+)\s*,)*\s*"data"\s*:\s*)?\[')


@register_reader(".jsonl")
class JsonLinesFile(BothSides):
    """Objects with both texts, in themselves or in their "translation"; keys are corpus.columns, or the languages."""

    _is_list = False

    def read(self) -> Iterator[Pair]:
        """Yield all pairs; blank lines are skipped, unless `keeps_blank_lines`."""
        keys = self.columns or self.direction
        for place, row in self._rows():
            if row == "" and self.keeps_blank_lines:
                yield Pair("", "")
                continue
            try:
                texts = texts_of(self._object(row, place, keys), keys, place, self.limit)
            except DataError:
                if self.repair is None:
                    raise
                yield Pair(one_line(str(row)), "", "no object with both texts")
                continue
            valid = [_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text) for text in texts]
            yield Pair(valid[0], valid[1], "" if valid == texts else "half a character")

    def _rows(self) -> Iterator[tuple[str, Any]]:
        """Yield the place of each row, and its JSON; "" for a blank line that is kept."""
        for number, line in enumerate(self._text_lines(), 1):
            if line.strip() or self.keeps_blank_lines:
                yield f"{self.path}:{number}", line.strip()

    def _object(self, row: Any, place: str, keys: Sequence[str]) -> dict[str, Any]:
        try:
            value = row if self._is_list else json.loads(row)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{place}: not JSON ({error})") from None
        nested = value.get("translation") if isinstance(value, dict) else None
        # Hugging Face's form, unless the columns that were named stand beside it.
        if isinstance(nested, dict) and not (self.columns and value.keys() >= set(self.columns)):
            value = nested
        if not isinstance(value, dict):
            raise DataError(f'{place}: not an object such as {{"en": "A text.", "de": "Ein Text."}}')
        check_columns(keys, [*map(one_line, value)], place, self.setting.names)
        return value


@register_reader(".json")
class JsonFile(JsonLinesFile):
    """JSON lines, or a list of such objects, which may be the "data" of another one; a list is read as a whole."""

    def _rows(self) -> Iterator[tuple[str, Any]]:
        if not self._is_list:
            yield from super()._rows()
            return
        content = bytearray()
        for block in read_blocks(self.path):
            content += block
            if len(content) > _MOST_BYTES:
                raise DataError(
                    f"{self.path}: a list is read up to {_MOST_BYTES} bytes; write it as JSON lines (.jsonl)"
                )
        try:
            value = json.loads(content.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            advice = conversion(str(self.path), likely_encoding(error.object[:_HEAD_BYTES]))
            raise DataError(f"{self.path}: not UTF-8 (byte 0x{error.object[error.start]:02x}); {advice}") from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self.path}: not JSON ({error}); is the file complete?") from None
        for number, row in enumerate(value if isinstance(value, list) else value["data"], 1):
            yield f"{self.path}, object {number}", row

    @cached_property
    def _is_list(self) -> bool:  # type: ignore[override]
        """Whether the file has a list, and not JSON lines."""
        return _LIST.match(next(read_blocks(self.path), b"")[:_HEAD_BYTES].decode(errors="replace")) is not None

    def count(self) -> int:
        """Return the number of lines, or about that of the objects in a list."""
        return sum(block.count(b"}") for block in read_blocks(self.path)) if self._is_list else super().count()
