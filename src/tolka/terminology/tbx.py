"""Term bases in TBX (ISO 30042), versions 2 and 3: the terms of two languages in each concept."""

from pathlib import Path

from tolka.errors import DataError
from tolka.text.direction import Direction
from tolka.text.lines import LineLimit
from tolka.text.readers.xml_parser import BLOCK, XmlHandler, parse
from tolka.text.readers.xml_segment import RefusedError, SegmentText
from tolka.text.readers.xml_stream import normal_code
from tolka.text.scripts import plain_code

_CONCEPTS, _LANGUAGES = ("termEntry", "conceptEntry"), ("langSet", "langSec")
_TERMS = ("tig", "ntig", "termSec")  # a term with notes on it
_UNWANTED = ("deprecated", "superseded")  # how values of administrativeStatus begin

MOST_BYTES = 2**28
"""Maximum size of a glossary in bytes, unpacked."""
Concept = tuple[list[str], list[str]]
"""The terms of a concept in the source and in the target language."""


def read_tbx(path: Path, direction: Direction, limit: LineLimit) -> list[Concept]:
    """Return the concepts that have terms in both languages, without deprecated and superseded terms.

    direction: of the texts. DataError with the line for what is not TBX.
    """
    handler = _Concepts(direction, limit)
    for blocks, _ in enumerate(parse(path, handler, limit)):
        # The file's own size says little: it may be compressed.
        if blocks * BLOCK > MOST_BYTES:
            raise DataError(f"{path}: at most {MOST_BYTES} bytes are read; leave out the rest")
    return handler.concepts


class _Concepts(XmlHandler):
    roots, kind = frozenset({"martif", "tbx"}), "a term base"

    def __init__(self, direction: Direction, limit: LineLimit) -> None:
        self.concepts: list[Concept] = []
        self._languages = [normal_code(language) for language in direction]
        self._terms: dict[str, list[str]] = {}  # of the current concept, by language
        self._language = self._term = ""
        self._is_unwanted = False
        self._limit = limit

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name in _CONCEPTS:
            self._terms = {}
        elif name in _LANGUAGES:
            self._language = normal_code(attributes.get("xml:lang") or attributes.get("lang") or "")
        elif name in _TERMS:
            self._term, self._is_unwanted = "", False
        elif name == "term" or _is_status(name, attributes):
            self.text = SegmentText(self._limit, "a term")

    def end(self, name: str) -> None:
        if self.text is not None and name in ("term", "termNote", "administrativeStatus"):
            text, flaw, self.text = self.text.content(), self.text.flaw, None
            if flaw:
                raise RefusedError(f"{flaw} in '{text}': write the character itself")
            if name == "term":
                self._term = text
            else:
                self._is_unwanted |= text.startswith(_UNWANTED)
        elif name in _TERMS and self._term and not self._is_unwanted:
            self._terms.setdefault(self._language, []).append(self._term)
        elif name in _CONCEPTS:
            source, target = map(self._in_language, self._languages)
            if source and target:
                self.concepts.append((source, target))

    def _in_language(self, language: str) -> list[str]:
        """Return the terms with exactly this code, or else with others of the language: en-US and eng_Latn for en."""
        if language in self._terms:
            return self._terms[language]
        plain = plain_code(language)
        codes = [code for code in self._terms if plain_code(code) == plain or code.startswith(f"{language}-")]
        return [term for code in codes for term in self._terms[code]]


def _is_status(name: str, attributes: dict[str, str]) -> bool:
    return name == "administrativeStatus" or (
        name == "termNote" and attributes.get("type") in ("administrativeStatus", "normativeAuthorization")
    )
