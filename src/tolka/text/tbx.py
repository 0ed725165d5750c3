"""Term bases in TBX (ISO 30042), versions 2 and 3: the terms of two languages in each concept.

The parser is expat, restricted as for translation memories (`readers/tmx.py`): an entity declaration is an error, and a
document type is never fetched.
"""

from pathlib import Path
from xml.parsers import expat

from tolka.errors import DataError
from tolka.text.lines import BROKEN, LineLimit, open_bytes
from tolka.text.readers.xml_encoding import XmlDecoder
from tolka.text.scripts import plain_code

_BLOCK = 2**16
MOST_BYTES = 2**28
"""Bytes of a glossary, unpacked, at most."""
_ROOTS = ("martif", "tbx")
_CONCEPTS, _LANGUAGES = ("termEntry", "conceptEntry"), ("langSet", "langSec")
_TERMS = ("tig", "ntig", "termSec")  # a term with notes on it
_UNWANTED = ("deprecated", "superseded")  # how values of administrativeStatus begin

Concept = tuple[list[str], list[str]]
"""The terms of a concept in the source and in the target language."""


def read_tbx(path: Path, languages: tuple[str, str], limit: LineLimit) -> list[Concept]:
    """Return the concepts that have terms in both languages. languages: of source and target.

    Where a concept has no terms with exactly the code of a language, those with any other code of it count: en-US and
    eng_Latn for en, and the other way round.

    Terms whose administrative status is deprecated or superseded are left out. DataError with the line for what is no
    TBX.
    """
    concepts = _Concepts(languages, limit)
    try:
        with open_bytes(path) as stream:
            block = stream.read(_BLOCK)
            decode = XmlDecoder(str(path), block)
            concepts = _Concepts(languages, limit, decode.encoding)
            while block:
                concepts.feed(decode(block), last=False)
                block = stream.read(_BLOCK)
        concepts.feed(decode(b"", last=True), last=True)
    except expat.ExpatError as error:
        raise DataError(f"{path}:{error.lineno}: no XML ({expat.ErrorString(error.code)})") from None
    except _RefusedError as error:
        raise DataError(f"{path}:{concepts.line}: {error}") from None
    except BROKEN as error:
        raise DataError(f"{path}:{concepts.line}: cannot be read further ({error}); is the file complete?") from None
    if not concepts.found_root:
        raise DataError(f"{path}: no <martif> or <tbx> is in it; this is another kind of XML")
    return concepts.found


class _RefusedError(Exception):
    """XML that is refused because no term base needs it."""


class _Concepts:
    """The concepts that expat has parsed so far."""

    def __init__(self, languages: tuple[str, str], limit: LineLimit, encoding: str | None = None) -> None:
        """encoding: see XmlDecoder."""
        self.found: list[Concept] = []
        self.found_root = False
        self._languages = [_code(language) for language in languages]
        self._parser = expat.ParserCreate(encoding)
        self._parser.buffer_text = True
        self._parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        self._parser.StartElementHandler, self._parser.EndElementHandler = self._start, self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.EntityDeclHandler = self._refuse
        self._parser.SkippedEntityHandler = self._undeclared
        self._terms: dict[str, list[str]] = {}  # of the current concept, by language
        self._language = self._term = ""
        self._text: list[str] | None = None  # of the current term, or of its status
        self._is_unwanted = False
        self._limit, self._bytes_fed = limit, 0

    @property
    def line(self) -> int:
        """The parser's line number."""
        return self._parser.CurrentLineNumber

    def feed(self, block: bytes, last: bool) -> None:
        """Parse the next block."""
        self._parser.Parse(block, last)
        self._bytes_fed += len(block)
        if self._bytes_fed > MOST_BYTES:
            raise _RefusedError(f"at most {MOST_BYTES} bytes are read; leave out the rest")
        # The parser buffers a tag or a comment until its end.
        if self._bytes_fed - self._parser.CurrentByteIndex > self._limit.max_bytes + _BLOCK:
            raise _RefusedError(self._limit.complaint("a tag or a comment"))

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        if name in _ROOTS:
            self.found_root = True
        elif name in _CONCEPTS:
            self._terms = {}
        elif name in _LANGUAGES:
            self._language = _code(attributes.get("xml:lang") or attributes.get("lang") or "")
        elif name in _TERMS:
            self._term, self._is_unwanted = "", False
        elif name == "term" or _is_status(name, attributes):
            self._text = []

    def _end(self, name: str) -> None:
        name = name.rpartition(":")[2]
        text = " ".join("".join(self._text or ()).split())
        if name == "term":
            self._term, self._text = text, None
        elif self._text is not None and name in ("termNote", "administrativeStatus"):
            self._is_unwanted |= text.startswith(_UNWANTED)
            self._text = None
        elif name in _TERMS and self._term and not self._is_unwanted:
            self._terms.setdefault(self._language, []).append(self._term)
        elif name in _CONCEPTS:
            source, target = map(self._in_language, self._languages)
            if source and target:
                self.found.append((source, target))

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)
            if sum(map(len, self._text)) > self._limit.max_bytes:
                raise _RefusedError(self._limit.complaint("a term"))

    def _in_language(self, language: str) -> list[str]:
        """Return the terms in this language: with exactly this code, or else with others of the same language."""
        if language in self._terms:
            return self._terms[language]
        plain = plain_code(language)
        codes = [code for code in self._terms if plain_code(code) == plain or code.startswith(f"{language}-")]
        return [term for code in codes for term in self._terms[code]]

    def _refuse(self, name: str, *_: object) -> None:
        raise _RefusedError(f"it declares an entity ('{name}'), which a term base needs for nothing good")

    def _undeclared(self, name: str, is_parameter: bool) -> None:
        if self._text is not None and not is_parameter:
            raise _RefusedError(f"the entity '&{name};' is not declared: write the character itself")


def _code(language: str) -> str:
    return language.lower().replace("_", "-")


def _is_status(name: str, attributes: dict[str, str]) -> bool:
    return name == "administrativeStatus" or (
        name == "termNote" and attributes.get("type") in ("administrativeStatus", "normativeAuthorization")
    )
