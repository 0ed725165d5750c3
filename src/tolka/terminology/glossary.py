"""Glossaries: terms with their translations, and where they stand in a text; lists of banned phrases."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import regex

from tolka.errors import DataError
from tolka.terminology.tbx import MOST_BYTES, read_tbx
from tolka.text.casing import folded
from tolka.text.characters import KEEP, CharacterForm
from tolka.text.direction import Direction
from tolka.text.lines import LINE_LIMIT, LineLimit, digest_of, read_lines, refuse_pipe, without_compression
from tolka.text.pairs import Pair, PairSource
from tolka.text.readers.columns import CsvFile
from tolka.text.readers.workbook import WorkbookFile
from tolka.text.scripts import UNSPACED, plain_code

# A word is a run of letters, marks, digits and underscores. Where words are written without blanks between them, in the
# scripts of Chinese, Japanese, Thai, Lao, Khmer and Burmese, every character is one; so is every other mark.
_WORD = regex.compile(rf"[{UNSPACED}]|(?:(?![{UNSPACED}])[\p{{L}}\p{{M}}\p{{N}}_])+|[^\s]")
_BAR = re.compile(r"(?<!\\)\|")
MOST_TERMS, MOST_BANNED = 1_000_000, 50_000
"""Maximum number of lines of a glossary, and of a list of banned phrases."""
_TABLES = {".csv": CsvFile, **dict.fromkeys((".xlsx", ".xlsb", ".xls", ".ods"), WorkbookFile)}
TBX_ENDINGS = (".tbx", ".xml")


class Entry(NamedTuple):
    """A term: its forms in the source language, any of which may stand for it, and in the target language."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]


@dataclass(frozen=True)
class Match:
    """A source term that stands in a text: as it is written there, and its translations."""

    source: str
    targets: tuple[str, ...]


class Glossary:
    """Finds a glossary's terms in texts."""

    def __init__(self, entries: Sequence[Entry], characters: CharacterForm = KEEP) -> None:
        """Entries with the same source form have their targets together. characters: their form in texts and terms."""
        self._entries: dict[str, list[tuple[str, Entry]]] = {}  # by the first word of a source, in lower case
        # Of the first words that texts have had: first word -> numbers of words of its terms; a term's words in lower
        # case -> its words as they are written -> its targets.
        self._lengths: dict[str, set[int]] = {}
        self._terms: dict[tuple[str, ...], dict[tuple[str, ...], dict[str, None]]] = {}
        self._characters = characters
        for entry in entries:
            for source in entry.sources:
                form = characters.source(source)
                if word := _WORD.match(form):  # none where all of it is invisible
                    self._entries.setdefault(self._folded(word.group()), []).append((form, entry))

    def matches(self, text: str) -> list[Match]:
        """Return the terms of a text, each once, in order; of overlapping ones the first, and of those the longest.

        A term stands in a text as whole words, of which case matters only where the glossary has several.
        """
        spans = [match.span() for match in _WORD.finditer(text)]
        words = [text[start:end] for start, end in spans]
        folded_words, matches, place = tuple(map(self._folded, words)), dict[Match, None](), 0
        while place < len(words):
            forms, end = self._longest(folded_words, place)
            if forms:
                targets = forms.get(tuple(words[place:end]))
                # Case matters only where a form of the glossary is written exactly so.
                if targets is None:
                    targets = {each: None for known in forms.values() for each in known}
                matches[Match(text[spans[place][0] : spans[end - 1][1]], tuple(targets))] = None
            place = end
        # Of matches with the same targets, the first.
        return list({match.targets: match for match in reversed(matches)}.values())[::-1]

    def _longest(self, folded: tuple[str, ...], place: int) -> tuple[dict[tuple[str, ...], dict[str, None]], int]:
        """Return the forms of the longest term that begins at a place, and its end; none, and the next place."""
        first = folded[place]
        # Only when a text has the word: to split 300 000 terms into words takes longer than to translate a text.
        for form, entry in self._entries.pop(first, ()):
            words = tuple(_WORD.findall(form))
            self._lengths.setdefault(first, set()).add(len(words))
            targets = self._terms.setdefault(tuple(map(self._folded, words)), {}).setdefault(words, {})
            targets.update(dict.fromkeys(map(self._characters.target, entry.targets)))
        for length in sorted(self._lengths.get(first, ()), reverse=True):
            end = place + length
            if end <= len(folded) and (forms := self._terms.get(folded[place:end])):
                return forms, end
        return {}, place + 1

    def _folded(self, word: str) -> str:
        return folded(word, self._characters.direction.source)


class Phrases:
    """Finds phrases in texts, in a time that does not depend on how many phrases there are."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self._phrases = set(phrases)
        self._lengths: dict[str, set[int]] = {}  # first word -> numbers of words of the phrases
        for phrase in self._phrases:
            if words := _WORD.findall(phrase):
                self._lengths.setdefault(words[0], set()).add(len(words))

    def occurrences(self, text: str) -> set[str]:
        """Return the phrases that stand in a text as whole words, exactly as written."""
        spans = [match.span() for match in _WORD.finditer(text)] if self._phrases else []
        # Only stretches of as many words as a phrase has that begins with this word.
        stretches = (
            text[start : spans[place + length - 1][1]]
            for place, (start, end) in enumerate(spans)
            for length in self._lengths.get(text[start:end], ())
            if place + length <= len(spans)
        )
        return {stretch for stretch in stretches if stretch in self._phrases}


def occurs_in(phrase: str, text: str, *, only_at_start: bool = False) -> bool:
    """Return whether a phrase stands in a text, exactly as written, from the beginning of a word.

    Its last word may have an ending (a plural). Where words are written without blanks, it may stand anywhere.
    only_at_start: of the text.
    """
    if phrase not in text or (only_at_start and not text.startswith(phrase)):
        return False
    starts = {match.start() for match in _WORD.finditer(text)}
    # A lookahead, so that occurrences may overlap: the first may be inside a word.
    places = [0] if only_at_start else [match.start() for match in re.finditer(f"(?={re.escape(phrase)})", text)]
    return any(place in starts for place in places)


def needs_blank(phrase: str) -> bool:
    """Return whether the phrase can only follow a blank: it begins with a letter of a script with blanks."""
    return regex.match(rf"(?![{UNSPACED}])[\p{{L}}\p{{M}}\p{{N}}_]", phrase) is not None


def read_glossary(path: Path, direction: Direction, limit: LineLimit = LINE_LIMIT) -> list[Entry]:
    """Read a glossary: TBX, CSV or a workbook where the name says so (.tbx, .xml, .csv, .xlsx, .ods), else TSV.

    direction: of the text. Blank lines and those that begin with # are ignored. DataError with file and line for
    anything else, for more than MOST_TERMS lines or MOST_BYTES, and for a glossary without terms.
    """
    refuse_pipe(path)
    if without_compression(path).suffix.lower() in TBX_ENDINGS:
        if not all(direction):
            raise DataError(f"{path}: the model does not say its languages, which TBX needs; write the terms as TSV")
        entries = [Entry(tuple(source), tuple(target)) for source, target in read_tbx(path, direction, limit)]
        if not entries:
            raise DataError(f"{path}: no concept has terms in both {direction[0]} and {direction[1]}")
        return entries
    entries = [_entry(cells, f"{path}:{number}") for number, cells in _rows(path, direction, limit)]
    if not entries:
        raise DataError(f"{path}: the glossary has no terms; a line is: source TAB target")
    return entries


class GlossaryPairs(PairSource):
    """Training pairs: each form of a term in the source language, with the first one in the target language."""

    def __init__(self, path: Path, direction: Direction) -> None:
        self._path, self.direction, self.name = path, direction, f"glossary {path.name}"

    def read(self) -> Iterator[Pair]:
        for entry in read_glossary(self._path, self.direction):
            for source in entry.sources:
                yield Pair(source, entry.targets[0])

    def fingerprint(self) -> str:
        return f"glossary {digest_of(self._path)}"

    def count(self) -> int:
        return sum(len(entry.sources) for entry in read_glossary(self._path, self.direction))


def read_banned(path: Path, limit: LineLimit = LINE_LIMIT) -> list[str]:
    """Read a list of phrases, one a line; DataError if there is none.

    Blank lines and those that begin with # are ignored; \\# is the character itself.
    """
    refuse_pipe(path)
    phrases = [" ".join(re.sub(r"^\\#", "#", line).split()) for _, line in _lines(path, limit, MOST_BANNED)]
    if not phrases:
        raise DataError(f"{path}: no phrase is in it; write one a line")
    return list(dict.fromkeys(phrases))


def _lines(path: Path, limit: LineLimit, most: int) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines that are neither blank nor comments; DataError for too many."""
    size = 0
    for number, line in enumerate(read_lines(path, limit=limit), start=1):
        size += len(line)
        if number > most or size > MOST_BYTES:
            raise _too_large(path, number, most)
        if line.strip() and not line.startswith("#"):
            yield number, line


def _too_large(path: Path, number: int, most: int) -> DataError:
    return DataError(f"{path}:{number}: at most {most} lines and {MOST_BYTES} bytes are read; leave out the rest")


def _rows(path: Path, direction: Direction, limit: LineLimit) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each row: the source's, then in TSV any number of target forms, else one."""
    table = _TABLES.get(without_compression(path).suffix.lower())
    if table is None:
        yield from ((number, line.split("\t")) for number, line in _lines(path, limit, MOST_TERMS))
        return
    columns: Sequence[int] = ()
    for number, cells in table(path, str(path), direction, (), limit).rows():
        if number > MOST_TERMS:
            raise _too_large(path, number, MOST_TERMS)
        if not columns:
            codes, wanted = [plain_code(cell.strip()) for cell in cells], [plain_code(code) for code in direction]
            # A first row that names the columns; a row of DeepL's has its terms first, and ends in the codes.
            if all(direction) and {*wanted} <= {*codes} and {*wanted} & {*codes[:2]}:
                columns = [codes.index(code) for code in wanted]
                continue
            columns = 0, 1
        chosen = [cells[column] for column in columns if column < len(cells)]
        if any(map(str.strip, chosen)) and not chosen[0].startswith("#"):
            yield number, chosen


def _entry(cells: Sequence[str], place: str) -> Entry:
    """Return the entry of a row. place: file and line, for errors."""
    source, *targets = cells
    if not targets:
        raise DataError(f"{place}: no tab; a line is: source TAB target")
    sources = _forms(source)
    if not sources:
        raise DataError(f"{place}: the source term is empty")
    forms = [form for target in targets for form in _forms(target)]
    if not forms:
        raise DataError(f"{place}: '{source}' has no target term")
    return Entry(sources, tuple(forms))


def _forms(cell: str) -> tuple[str, ...]:
    """Return the forms of a cell, which bars separate; \\| and \\# are the characters themselves."""
    # By far the most have one form: a glossary may have a million.
    if "|" not in cell and "\\" not in cell:
        return (" ".join(cell.split()),) if cell.strip() else ()
    parts = (" ".join(re.sub(r"\\([|#])", r"\1", part).split()) for part in _BAR.split(cell))
    return tuple(dict.fromkeys(part for part in parts if part))
