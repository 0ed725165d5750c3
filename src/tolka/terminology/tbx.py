"""Term bases in TBX (ISO 30042), versions 2 and 3: the terms of two languages in each concept."""

from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from tolka.errors import DataError
from tolka.text.direction import Direction
from tolka.text.lines import LineLimit, read_blocks
from tolka.text.readers.xml_file import normal_code, segment_text
from tolka.text.readers.xml_units import read_units
from tolka.text.scripts import plain_code

_STATUS = {"administrativeStatus", "normativeAuthorization"}  # elements of TBX 3, and types of termNote in TBX 2
_UNWANTED = ("deprecated", "superseded")  # how their values begin

MOST_BYTES = 2**28
"""Maximum size of a glossary in bytes, unpacked."""
Concept = tuple[list[str], list[str]]
"""The terms of a concept in the source and in the target language."""


def read_tbx(path: Path, direction: Direction, limit: LineLimit) -> list[Concept]:
    """Return the concepts that have terms in both languages, without deprecated and superseded terms.

    direction: of the texts. DataError with the line for what is not TBX.
    """
    concepts = list[Concept]()
    # The file's own size says little: it may be compressed.
    if sum(map(len, read_blocks(path))) > MOST_BYTES:
        raise DataError(f"{path}: at most {MOST_BYTES} bytes are read; leave out the rest")
    for unit in read_units(path, ("termEntry", "conceptEntry"), ("tbx", "martif")):
        if unit.element is None:
            raise DataError(f"{path}:{unit.line}: not XML ({unit.reason})")
        terms: dict[str, list[str]] = {}  # by language
        for section in unit.element.iter():
            if section.tag in ("langSet", "langSec"):
                language = normal_code(section.get("xml:lang") or section.get("lang") or "")
                terms.setdefault(language, []).extend(_terms_of(section, f"{path}:{unit.line}", limit))
        source, target = (_in_language(terms, normal_code(language)) for language in direction)
        if source and target:
            concepts.append((source, target))
    return concepts


def _terms_of(section: Element, place: str, limit: LineLimit) -> Iterator[str]:
    """Yield the terms of a language that are wanted. place: file and line."""
    for described in section.iter():
        if described.tag in ("tig", "ntig", "termSec"):  # a term with notes on it
            texts = [(note, segment_text(note, ())) for note in described.iter()]
            for _, text in texts:
                limit.check(text, place, "a term")
            status = [text for note, text in texts if _STATUS & {note.tag, note.get("type") or ""}]
            is_unwanted = any(text.startswith(_UNWANTED) for text in status)
            yield from (text for note, text in texts if note.tag == "term" and text and not is_unwanted)


def _in_language(terms: dict[str, list[str]], language: str) -> list[str]:
    """Return the terms with exactly this code, or else with others of the language: en-US and eng_Latn for en."""
    plain = plain_code(language)
    codes = [code for code in terms if plain_code(code) == plain or code.startswith(f"{language}-")]
    return terms.get(language) or [term for code in codes for term in terms[code]]
