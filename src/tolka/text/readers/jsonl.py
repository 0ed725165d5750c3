"""One JSON object per line: {"translation": {"en": ..., "de": ...}}, or texts under any two keys."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tolka.errors import DataError
from tolka.options.registry import did_you_mean
from tolka.text.pairs import Pair
from tolka.text.readers.base import BothSides, one_line, register_reader, texts_of

_SURROGATE = re.compile("[\ud800-\udfff]")  # JSON can escape half of a surrogate pair, which UTF-8 cannot encode


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
