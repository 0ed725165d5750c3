"""Documents of Microsoft Office since 2007: Word, PowerPoint and Excel (Office Open XML, ECMA-376).

Word parts a paragraph into runs anywhere, so that a translation gets new ones. Until then there are marks in it, of
characters that XML does not have: \\1 and \\2 around characters, and \\3RUN\\3 before those that are in such a run.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import ClassVar, NamedTuple

from tolka.documents.base import DOCUMENTS
from tolka.documents.markup import Element, Event, TextBuilder, elements, escaped, with_attributes, with_texts
from tolka.documents.text import EDIT, Code, Text, pairs
from tolka.documents.zipped import CODE_STYLE, ZippedDocument, changed_tag
from tolka.errors import DataError
from tolka.system.package_data import table_beside
from tolka.text.scripts import plain_code, variety_of

_TYPES = "[Content_Types].xml"
_NAMESPACE = re.compile(r"(wordprocessingml|drawingml|spreadsheetml|math)(?:/2006)?(?:/main)?$")
# Fields whose result is a text of the document; that of others is computed.
_TEXT_FIELD = re.compile(r"\s*(HYPERLINK|TOC|INDEX|TOA|BIBLIOGRAPHY)\b", re.IGNORECASE)
_DEPTHS = {"open": 1, "close": -1}
_OUTSIDE = 1000  # characters inside of links and the like that weigh as much as one outside
_PIECE = re.compile("\1([^\2]*)\2|\3([^\3]*)\3|([^\1-\3]+)")
_NEW_LINE = re.compile(r"(?<=[^\n])(\n+)(?=[^\n])")
# What parts runs that look alike: what was checked, and its language, which a translation has from the styles.
_NOISE = re.compile(r"""<(?:\w+:)?(?:noProof|lang)\b[^>]*/>| (?:dirty|err|smtClean|noProof|lang)="[^"]*\"""")
# Formatting that writing from the right has a second time.
_TWICE = re.compile(r"<((?:\w+:)?)(b|i|sz)( [^>]*)?/>(?!<(?:\w+:)?\2Cs)")


def _names(kind: str) -> Sequence[str]:
    return table_beside(__file__)[kind]  # type: ignore[no-any-return]


def prefix_of(tag: str) -> str:
    """Return the prefix of the name in a start tag, with its colon."""
    return str(re.findall(r"^<([^\s/>:]+:)?", tag)[0])


class OfficeXml(ZippedDocument):
    """An archive whose part [Content_Types].xml says what the others are."""

    main: ClassVar[str]
    """what the type of the main part has in it"""
    kinds: ClassVar[str]
    """pattern of the types of parts with texts"""

    def parts(self) -> Sequence[str]:
        if not any(self.main in kind and kind.endswith(".main+xml") for kind in self.types.values()):
            raise DataError(f"{self.path} is a ZIP archive, but no {', '.join(self.endings)}; is it complete?")
        return self.parts_of(rf"{self.kinds}|diagramData|diagramDrawing|chart|core-properties")

    def parts_of(self, pattern: str) -> list[str]:
        """Return the names of the parts whose type ends with a pattern."""
        return [name for name, kind in self.types.items() if re.search(rf"({pattern})\+xml$", kind)]

    @cached_property
    def types(self) -> dict[str, str]:
        """The type of each part that has one of its own."""
        tags = [event.attributes for event in self.events(_TYPES, self.content(_TYPES))]
        types = {own.get("PartName", "").lstrip("/"): own.get("ContentType", "") for own in tags}
        return {name: types[name] for name in types if name in self.archive.namelist()}

    def events(self, name: str, content: str) -> Iterator[Event]:
        """Yield events whose names begin with the letter of their namespace here, whatever prefix the part has."""
        letters = dict[str, str]()
        for event in super().events(name, content):
            for key, value in event.attributes.items():
                if key.startswith("xmlns") and (found := _NAMESPACE.search(value)):
                    letters[key[6:]] = found[1][0].replace("d", "a")
            prefix, _, element = event.name.rpartition(":")
            yield event._replace(name=f"{letters.get(prefix, prefix)}:{element}") if element else event

    def is_whole(self, start: Event) -> bool:
        return start.name in _names("paragraphs") or start.name in _names("left_alone")

    def texts_of(self, content: str, element: Element) -> Iterator[Text]:
        if element.start.name in _names("paragraphs"):
            yield from _Paragraph(self, content, element).texts()
        elif element.start.name == "w:lang" and self.direction.is_known:
            own, source, target = element.start.attributes, *map(variety_of, self.direction)
            language = f"{target.language}-{target.region}" if target.region else target.language
            if values := {key: language for key, value in own.items() if plain_code(value) == source.language}:
                yield changed_tag(content, element.start, values)


@DOCUMENTS.register("docx")
class WordDocument(OfficeXml):
    """A text document, with its headers, footers, notes and text boxes; comments stay."""

    endings, main = (".docx", ".docm", ".dotx", ".dotm"), "word"
    kinds = r"\.main|header|footer|footnotes|endnotes|wordprocessingml\.styles"


@DOCUMENTS.register("pptx")
class Presentation(OfficeXml):
    """A presentation: its slides and notes; what is on their masters stays."""

    endings, main, kinds = (".pptx", ".pptm", ".potx", ".ppsx"), "presentation", r"\.slide|\.notesSlide"


class _Item(NamedTuple):
    """A part of a paragraph. run: what begins its run; "" outside of runs. inside: texts in its markup.

    start, end: its place, with the beginning of its run if it is the first in there, and the end if it is the last.
    """

    part: str | Code
    start: int
    end: int
    run: str = ""
    inside: Sequence[Text] = ()


class _Paragraph:
    """Reads a paragraph of runs. Outside of links and the like a tab or line break ends a text."""

    def __init__(self, document: OfficeXml, content: str, element: Element) -> None:
        self._document, self._content, self._element = document, content, element
        self._prefix = prefix_of(content[element.start.start : element.start.end])
        self._properties: Element | None = None
        self._items = list[_Item]()
        self._runs = list[tuple[int, int, str]]()  # from where to where each is, and what begins it
        self._fields = list[tuple[int, list[str]]]()  # the first item and the instruction of each that has not ended
        self._read(element)

    def _read(self, parent: Element) -> None:
        for element in elements(parent.inside):
            start, _, end = element
            if start.kind == "text" and parent.start.name in _names("plain"):
                part = Code([start.text], name="new line") if start.text == "\n" else start.text
                self._items.append(_Item(part, start.start, start.end))
            elif start.kind != "start" or start.name in _names("dropped"):
                continue
            elif start.name in _names("properties"):
                self._properties = element
            elif start.name in _names("plain"):
                self._read(element)
            elif start.name in _names("runs"):
                self._read_run(element)
            elif start.name in _names("containers"):
                children = (each for each in elements(element.inside) if each.start.name == "w:sdtContent")
                inner = next(children, element)
                self._add_tag("open", start.name, start.start, inner.start.end)
                self._read(inner)
                self._add_tag("close", start.name, inner.end.start, end.end)
            else:
                self._add_whole(element, start.start, end.end)

    def _read_run(self, run: Element) -> None:
        start, end = run.start.start, run.end.end
        children = [each for each in elements(run.inside) if each.start.kind == "start"]
        formatting = [each for each in children if each.start.name in _names("formatting")]
        tag = self._run_tag("".join(self._content[each.start.start : each.end.end] for each in formatting))
        self._runs.append((start, end, tag))
        parts = [each for each in children if each.start.name not in _names("dropped")]
        for number, element in enumerate(parts, 1):
            place = start if number == 1 else element.start.start, end if number == len(parts) else element.end.end
            if element.start.name in _names("texts"):
                text = "\N{NON-BREAKING HYPHEN}" if element.start.name == "w:noBreakHyphen" else element.text
                if _has_code_style(tag):
                    written = self._written(escaped(text), tag)
                    self._items.append(_Item(Code([written], "kept", text=text.strip()), *place, tag))
                    continue
                for odd, line in enumerate(_NEW_LINE.split(text)):
                    part = Code([self._written(line, tag)], name="new line") if odd % 2 else line
                    self._items.append(_Item(part, *place, tag))
            else:
                self._read_field(element, self._add_whole(element, *place, tag))

    def _add_tag(self, kind: str, name: str, start: int, end: int) -> None:
        self._items.append(_Item(Code([self._content[start:end]], kind, name), start, end))

    def _add_whole(self, element: Element, start: int, end: int, run: str = "") -> Code:
        inside = list(self._document.find(self._content, [element.start, *element.inside, element.end]))
        raw = with_texts(self._content, inside, element.start.start, element.end.end)
        text = element.text.strip() if element.start.name in _names("kept") else ""
        code = Code([run, *raw, run and f"</{self._prefix}r>"], "kept" if text else "lone", element.start.name, text)
        self._items.append(_Item(code, start, end, run, inside))
        return code

    def _read_field(self, element: Element, code: Code) -> None:
        """Take what begins or ends a field, its instruction, or what parts this from its result."""
        kind = element.start.attributes.get(f"{self._prefix}fldCharType")
        if kind == "begin":
            self._fields.append((len(self._items) - 1, []))
        if not self._fields:
            return  # it began in another paragraph
        first, instruction = self._fields[-1]
        has_text = _TEXT_FIELD.match("".join(instruction))
        if element.start.name == "w:instrText":
            instruction.append(element.text)
        elif kind == "separate" and has_text:
            self._merge(first, "open")
        elif kind == "end":
            self._fields.pop()
            if has_text:
                code.kind, code.name = "close", "field"
            else:
                self._merge(first, "kept")

    def _merge(self, first: int, kind: str) -> None:
        """Make one code of the last items."""
        items = self._items[first:]
        codes = [item.part for item in items if isinstance(item.part, Code)]
        if 2 * len(pairs(codes)) < sum(code.kind in _DEPTHS for code in codes):
            return  # a link that is not whole in there
        raws = (p.raw if isinstance(p, Code) else [self._written(escaped(p), run)] for p, _, _, run, _ in items)
        raw = [each for of_item in raws for each in of_item]
        text = "".join(part.text if isinstance(part, Code) else part for part, *_ in items).strip()
        code = Code(raw, "open", "field") if kind == "open" else Code(raw, "kept" if text else "lone", text=text)
        inside = [text for item in items for text in item.inside]
        self._items[first:] = [_Item(code, items[0].start, items[-1].end, inside=inside)]

    def _run_tag(self, formatting: str) -> str:
        """Return what begins a run of the translation."""
        formatting = _NOISE.sub("", formatting)
        if self._document.turned and self._element.start.name == "w:p":
            formatting = re.sub(r"<(?:\w+:)?rtl\b[^>]*/>", "", formatting)
            if self._document.turned == "rtl":
                formatting = self._with_child(_TWICE.sub(r"\g<0><\1\2Cs\3/>", formatting), "rPr", "rtl")
        is_empty = re.fullmatch(r"<[^< ]*/>|<([^\s<>/]+)></\1>", formatting)
        return f"<{self._prefix}r>{'' if is_empty else formatting}"

    def _with_child(self, element: str, name: str, child: str) -> str:
        """Return properties with an empty element in them, in the order of the schema."""
        prefix, following = self._prefix, "|".join(_names(f"behind_{child}"))
        behind = re.search(rf"<{prefix}(?:{following})\b|</{prefix}{name}>", element)
        if behind is None:  # <w:rPr/>, or none
            return f"<{prefix}{name}><{prefix}{child}/></{prefix}{name}>"
        return f"{element[: behind.start()]}<{prefix}{child}/>{element[behind.start() :]}"

    def texts(self) -> Iterator[Text]:
        """Yield the texts; those inside of another one before it."""
        texts = [text for line in self._lines() for text in self._texts_of(*line)]
        edits = self._turned() if texts and self._document.turned else ()
        yield from sorted([*edits, *texts], key=lambda text: text.end)

    def _lines(self) -> list[tuple[list[_Item], Counter[str]]]:
        """Return the items of each text, and how much of it each run has."""
        lines, depth = [(list[_Item](), Counter[str]())], 0
        for item, following in zip(self._items, [*self._items[1:], _Item("", 0, 0)], strict=False):
            if isinstance(item.part, str):
                lines[-1][1][item.run] += len(item.part.strip()) * (1 if depth else _OUTSIDE)
            else:
                depth += _DEPTHS.get(item.part.kind, 0)
                goes_on = isinstance(following.part, str) and following.part.lstrip()[:1].islower()
                if item.part.name in _names("tabs" if goes_on else "breaks") and not depth:
                    lines.append(([], Counter()))
                    continue
            lines[-1][0].append(item)
        return lines

    def _texts_of(self, line: Sequence[_Item], weights: Counter[str]) -> Iterator[Text]:
        """Yield the text of a line. The formatting that most of it has is that of its translation."""
        base = current = max(weights, key=weights.__getitem__, default="")
        builder = TextBuilder(self._content, _marked, partial(self._finish, base))
        for part, start, end, run, inside in line:
            if isinstance(part, Code):
                run = base if part.kind in _DEPTHS else current
            elif not part.strip():
                run = current
            if base != current != run:
                builder.add(Code([f"\3{base}\3"], "close", "run"), start, start)
            if current != run != base:
                builder.add(Code([f"\3{run}\3"], "open", "run"), start, start)
            current = run
            if isinstance(part, Code) and part.name in _names("breaks"):
                builder.add(" ", start, start)
            builder.add(part, start, end, inside)
        if current != base:
            builder.add(Code([f"\3{base}\3"], "close", "run"), line[-1].end, line[-1].end)
        own = self._properties
        is_code = own is not None and _has_code_style(self._content[own.start.start : own.end.end])
        return builder.finish("code" if is_code else "")

    def _finish(self, base: str, text: Text, written: str) -> str:
        """Return the runs of a translation, and what ends a run that it begins in, and begins one that it ends in."""
        if base:
            characters = "".join(part for part in text.parts if isinstance(part, str))
            before, _, behind = characters.partition(characters.strip())
            written = f"{_marked(before)}{written}{_marked(behind)}"
        run, runs = base, [self._run_at(text.start) and f"</{self._prefix}r>"]
        for characters, other_run, markup in _PIECE.findall(written.replace("\2\1", "")):
            run = other_run or run
            runs.append(self._written(characters, run) if characters else markup)
        return "".join([*runs, self._run_at(text.end)])

    def _written(self, characters: str, run: str) -> str:
        """Return characters in a run, or as they are."""
        prefix, space = self._prefix, "" if self._element.start.name == "a:p" else ' xml:space="preserve"'
        return f"{run}<{prefix}t{space}>{characters}</{prefix}t></{prefix}r>" if run else characters

    def _run_at(self, place: int) -> str:
        """Return what begins the run that a place is inside of; "" if it is in none."""
        number = bisect_left(self._runs, (place,)) - 1
        return self._runs[number][2] if number >= 0 and place < self._runs[number][1] else ""

    def _turned(self) -> Iterator[Text]:
        """Yield an edit that lets the paragraph be written from the other side."""
        is_rtl, tag, properties = self._document.turned == "rtl", self._element.start, self._properties
        start, end = (properties.start.start, properties.end.end) if properties else (tag.end, tag.end)
        if tag.name == "w:p":
            bare = re.sub(r"<(?:\w+:)?bidi\b[^>]*/>", "", self._content[start:end])
            yield Text([], start, end, self._with_child(bare, "pPr", "bidi") if is_rtl else bare, reason=EDIT)
        elif tag.name == "a:p":
            end, own = (properties.start.end, properties.start.attributes) if properties else (end, {})
            side = {"algn": "r" if is_rtl else "l"} if own.get("algn", "l") in "lr" else {}
            bare = self._content[start:end] or f"<{self._prefix}pPr/>"
            yield Text([], start, end, with_attributes(bare, {**side, "rtl": "1" if is_rtl else "0"}), reason=EDIT)


def _has_code_style(properties: str) -> bool:
    """Return whether properties of a run or a paragraph name a style for code."""
    style = re.search(r'<(?:\w+:)?[rp]Style\b[^>]*val="([^"]*)"', properties)
    return style is not None and CODE_STYLE.search(style[1]) is not None


def _marked(text: str) -> str:
    return f"\1{escaped(text)}\2" if text else ""
