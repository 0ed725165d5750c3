"""JSON lines with texts under any two keys, {"translation": {"en": ..., "de": ...}}; and JSON, as datasets reads it."""

import codecs
import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

from tolka.errors import DataError
from tolka.options.registry import did_you_mean
from tolka.text.encodings import conversion, likely_encoding
from tolka.text.lines import read_blocks
from tolka.text.pairs import Pair
from tolka.text.readers.base import BothSides, one_line, register_reader, texts_of

_SURROGATE = re.compile("[\ud800-\udfff]")  # JSON can escape half of a surrogate pair, which UTF-8 cannot encode
_BLOCK = 2**16
# The beginning of a list, alone or after keys with plain values.
_LIST = re.compile(r'\ufeff?\s*(?:\{(?:\s*"\w+"\s*:\s*(?:"[^"\\]*"|[-+.\w]+)\s*,)*\s*"data"\s*:\s*)?\[')
_DECODER = json.JSONDecoder()
_BETWEEN = re.compile(r"[\s,]*")


@register_reader(".jsonl")
class JsonLinesFile(BothSides):
    """Objects with both texts, in themselves or in their "translation"; keys are corpus.columns, or the languages."""

    def read(self) -> Iterator[Pair]:
        """Yield all pairs; blank lines are skipped, unless `keeps_blank_lines`."""
        keys = self.columns or self.direction
        for number, line in self._objects():
            if not line.strip() and self.keeps_blank_lines:
                yield Pair("", "")
            if line.strip():
                try:
                    cells = self._object(line, number, keys)
                    texts = texts_of(cells, keys, f"{self.path}:{number}", self.limit)
                except DataError:
                    if self.repair is None:
                        raise
                    yield Pair(one_line(line), "", "no object with both texts")
                    continue
                valid = [_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text) for text in texts]
                yield Pair(valid[0], valid[1], "" if valid == texts else "half a character")

    def _objects(self) -> Iterator[tuple[int, str]]:
        """Yield the objects, as text, each with the number of its line; blank lines as well."""
        yield from enumerate(self._text_lines(), 1)

    def _object(self, line: str, number: int, keys: Sequence[str]) -> dict[str, Any]:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self.path}:{number}: not JSON ({error})") from None
        nested = value.get("translation") if isinstance(value, dict) else None
        # Hugging Face's form, unless the columns that were named stand beside it.
        if isinstance(nested, dict) and not (self.columns and value.keys() >= set(self.columns)):
            value = nested
        if not isinstance(value, dict):
            raise DataError(f'{self.path}:{number}: not an object such as {{"en": "A text.", "de": "Ein Text."}}')
        for key in keys:
            if key not in value:
                known = did_you_mean(key, map(one_line, value))
                raise DataError(f"{self.path}:{number}: no key '{key}'.{known} {self.setting.names}")
        return value


@register_reader(".json")
class JsonFile(JsonLinesFile):
    """JSON lines, or a list of such objects; the list may stand in one line, and an object in several."""

    def _objects(self) -> Iterator[tuple[int, str]]:
        if self._start is None:
            yield from super()._objects()
            return
        blocks = self._blocks()
        buffer, place, line = next(blocks), self._start.end(), 1 + self._start[0].count("\n")
        while True:
            between = _BETWEEN.match(buffer, place)
            assert between
            begin, line_of_begin = between.end(), line + between[0].count("\n")
            if buffer[begin : begin + 1] == "]":
                # To the end of the file, or a truncated archive, or a second list, would go unnoticed. Further keys of
                # the object that the list is in are allowed.
                rest = sum(bool(block.strip()) for block in chain([buffer[begin + 1 :]], blocks))
                if rest and "{" not in self._start[0]:
                    raise DataError(f"{self.path}: one list is read, and more follows its end in line {line_of_begin}")
                return
            try:
                _, end = _DECODER.raw_decode(buffer, begin)
            except (ValueError, RecursionError) as error:
                # An object that is cut at the end of the buffer looks like a wrong one: it is read again with the next
                # block, until it is longer than a text may be.
                block = next(blocks, "") if len(buffer) - place <= self.limit.max_bytes else ""
                if not block or isinstance(error, RecursionError):
                    self.limit.check(buffer[place:], f"{self.path}:{line_of_begin}", "the object")
                    raise DataError(f"{self.path}:{line_of_begin}: not JSON from here on ({error})") from None
                buffer, place = buffer[place:] + block, 0
                continue
            self.limit.check(buffer[begin:end], f"{self.path}:{line_of_begin}", "the object")
            yield line_of_begin, buffer[begin:end]
            line, place = line_of_begin + buffer.count("\n", begin, end), end

    def _blocks(self) -> Iterator[str]:
        """Yield the file's text in blocks; DataError if it is not UTF-8."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            for block in read_blocks(self.path):
                yield decoder.decode(block)
            decoder.decode(b"", True)
        except UnicodeDecodeError as error:
            advice = "it ends inside a character: it is cut off, so get it once more"
            if error.reason != "unexpected end of data":
                advice = conversion(str(self.path), likely_encoding(error.object[:_BLOCK]))
            raise DataError(f"{self.path}: not UTF-8 (byte 0x{error.object[error.start]:02x}); {advice}") from None

    @cached_property
    def _start(self) -> re.Match[str] | None:
        """The beginning of the list; None for JSON lines."""
        return _LIST.match(next(read_blocks(self.path), b"")[:_BLOCK].decode(errors="replace"))

    def count(self) -> int:
        """Return the number of lines, or about that of the objects in a list."""
        return super().count() if self._start is None else sum(block.count("}") for block in self._blocks())
