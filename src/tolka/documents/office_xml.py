"""Documents of Microsoft Office since 2007: Word, PowerPoint and Excel (Office Open XML, ECMA-376).

Word parts a paragraph into runs anywhere, so that a translation gets new ones. Until then its markup stands between
characters that XML does not have: \\1 r RUN \\2 ... \\3 is markup in a run, \\1 o \\2 ... \\3 around runs, and what is
between \\1 f RUN \\2 \\3 and \\1 e \\2 \\3 is in runs of its own.
"""

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import dropwhile
from typing import ClassVar

from tolka.documents.base import DOCUMENTS
from tolka.documents.markup import Event, escaped, xml_events
from tolka.documents.text import EDIT, Code, Text, pairs
from tolka.documents.zipped import Paragraph, ZippedDocument, changed_attribute, descriptions, paragraphs
from tolka.errors import DataError
from tolka.system.package_data import table_beside
from tolka.text.scripts import plain_code, variety_of

_TYPES = "[Content_Types].xml"
_NAMESPACE = re.compile(r"(wordprocessingml|drawingml|spreadsheetml|math)(?:/2006)?(?:/main)?$")
# Fields whose result is a text of the document; that of others is computed.
_TEXT_FIELD = re.compile(r"\s*(HYPERLINK|TOC|INDEX|TOA|BIBLIOGRAPHY)\b", re.IGNORECASE)
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_PIECE = re.compile("\x01(.)([^\x02]*)\x02([^\x03]*)\x03|([^\x01]+)")
_NOISE = re.compile(r"""<(?:\w+:)?noProof\b[^>]*/>| (?:dirty|err|smtClean|noProof)="[^"]*\"""")
_LANGUAGE = re.compile(r"""<(?:\w+:)?lang\b[^>]*?:val="([^"]*)"[^>]*/>| lang="([^"]*)\"""")
_RTL = re.compile(r"<(?:\w+:)?rtl\b[^>]*/>")
_TWICE = re.compile(
    r"<((?:\w+:)?)(b|i|sz)( [^>]*)?/>(?!<(?:\w+:)?\2Cs)"
)  # formatting that writing to the left has anew


def _names(kind: str) -> Sequence[str]:
    return table_beside(__file__)[kind]  # type: ignore[no-any-return]


def _value(event: Event, attribute: str) -> str:
    """Return an attribute's value, whatever its prefix."""
    return next((value for name, value in event.attributes.items() if name.split(":")[-1] == attribute), "")


def named(events: Iterable[Event]) -> Iterator[Event]:
    """Yield events whose names begin with the letter of their namespace here, whatever prefix the document has."""
    letters = dict[str, str]()
    for event in events:
        for key, value in event.attributes.items():
            if key.startswith("xmlns"):
                found = _NAMESPACE.search(value)
                letters[key[6:]] = found[1][0].replace("d", "a") if found else key[6:]
        prefix, _, name = event.name.rpartition(":")
        yield event._replace(name=f"{letters.get(prefix, prefix)}:{name}") if name else event


class OfficeXml(ZippedDocument):
    """An archive whose part [Content_Types].xml says what the others are."""

    main: ClassVar[str]
    """what the type of the main part has in it"""
    with_texts: ClassVar[str]
    """pattern of the types of parts with texts"""

    def parts(self) -> Sequence[str]:
        types = {name: kind for name, kind in self.types.items() if name in self.names}
        if not any(self.main in kind and kind.endswith(".main+xml") for kind in types.values()):
            raise DataError(f"{self.path} is a ZIP archive, but no {', '.join(self.endings)}; is it complete?")
        pattern = re.compile(rf"({self.with_texts}|diagramData|diagramDrawing|chart|core-properties)\+xml$")
        return [name for name, kind in types.items() if pattern.search(kind)]

    @cached_property
    def types(self) -> dict[str, str]:
        """The type of each part that has one of its own."""
        events = xml_events(self.content(_TYPES), self.label(_TYPES))
        tags = [event.attributes for event in events if event.kind == "start" and event.name.endswith("Override")]
        return {own.get("PartName", "").lstrip("/"): own.get("ContentType", "") for own in tags}

    def find(self, name: str, content: str) -> Iterator[Text]:
        events, kind = named(xml_events(content, self.label(name))), self.types[name]
        if "core-properties" in kind:
            return descriptions(content, self.label(name))
        if kind.endswith(".styles+xml"):
            return paragraphs(events, lambda event: self._style(event, content))
        return paragraphs(events, lambda event: self.opened(event, content))

    def opened(self, event: Event, content: str) -> Paragraph | None:
        """Return what reads an element; None if only what is inside of it is read."""
        if event.name in _names("paragraphs"):
            return RunParagraph(content, event, self)
        return Paragraph(content) if event.name in _names("left_alone") else None

    def _style(self, event: Event, content: str) -> Paragraph | None:
        """Return the edit of a style's language."""
        if event.name != "w:lang" or not self.is_source(_value(event, "val")):
            return None
        return Paragraph(content, [changed_attribute(content, event, r"(?:\w+:)?val", self.language)])

    def is_source(self, language: str) -> bool:
        """Return whether this is the language that is translated."""
        return self.direction.is_known and plain_code(language) == plain_code(self.direction.source)

    @property
    def language(self) -> str:
        """The language of the translation, as Office names it: with a region."""
        target = variety_of(self.direction.target)
        return f"{target.language}-{target.region}" if target.region else target.language


@DOCUMENTS.register("docx")
class WordDocument(OfficeXml):
    """A text document, with its headers, footers, notes and text boxes; comments stay."""

    endings, main = (".docx", ".docm", ".dotx", ".dotm"), "word"
    with_texts = r"\.main|header|footer|footnotes|endnotes|wordprocessingml\.styles"


@DOCUMENTS.register("pptx")
class Presentation(OfficeXml):
    """A presentation: its slides and notes; what is on their masters stays."""

    endings, main, with_texts = (".pptx", ".pptm", ".potx", ".ppsx"), "presentation", r"\.slide|\.notesSlide"


@dataclass
class _Item:
    """A part of a paragraph.

    raw: what it is without runs. start, end: the place in the content that it takes, with the beginning of its run if
    it is the first in it, and the end if it is the last. run: what begins its run; "" around runs. head: what ends a
    run in which something else is before it; tail: what begins one for that behind it. name: of its element.
    """

    part: str | Code
    raw: Sequence[str | Text]
    start: int
    end: int
    run: str
    head: str
    tail: str
    name: str


class RunParagraph(Paragraph):
    """A paragraph of runs. A tab ends a text, and a line break unless the sentence goes on."""

    def __init__(self, content: str, event: Event, document: OfficeXml) -> None:
        super().__init__(content)
        self._document, self._begin, self._properties = document, event, (event.end, event.end)
        self._prefix = prefix_of(content[event.start : event.end])
        self._items = list[_Item]()
        self._fields = list[int]()  # the number of the item that begins each field that has not ended
        self._run, self._run_start = "", -1
        self._characters, self._start, self._content_end = "", -1, 0
        self._taken = 0  # how many of the texts inside are in an item

    def enter(self, event: Event) -> bool:
        if event.name in _names("texts") and self._start < 0 and (self._run or event.name == "s:t"):
            self._characters, self._start = "", event.start
        elif self._run or self._start >= 0:
            return False
        elif event.name in _names("runs"):
            self._run, self._run_start = self._run_tag(""), event.start
        elif event.name == "w:sdtContent":
            return self._extend(event.end)
        elif event.name in _names("containers") or _TEXT_FIELD.match(_value(event, "instr")):
            self._add(Code([], "open", event.name), event.start, event.end)
        else:
            return False
        return True

    def leave(self, event: Event) -> None:
        if event.name in _names("runs"):
            if self._items and self._items[-1].tail:
                self._items[-1].end, self._items[-1].tail = event.end, ""
            self._run, self._run_start = "", -1
        elif event.name in _names("texts"):
            lines = self._characters.split("\n") if event.name == "s:t" else [self._characters]
            for number, line in enumerate(lines):
                if number:
                    self._add(Code([]), self._start, event.end, "s:br")
                    self._items[-1].part = Code(["\n"])
                self._add(line, self._start, event.end)
            self._start = -1
        elif event.name == "w:sdtContent":
            self._content_end = event.start
        else:
            start = self._content_end if event.name == "w:sdt" and self._content_end else event.start
            self._content_end = 0
            self._add(Code([], "close", event.name), start, event.end)

    def add_characters(self, event: Event) -> None:
        self._characters += event.text

    def add_whole(self, event: Event, end: int) -> None:
        if event.name in _names("properties"):
            self._properties = event.start, end
        elif event.name in _names("formatting"):
            self._run = self._run_tag(self.content[event.start : end])
        elif event.name == "w:noBreakHyphen":
            self._add("\N{NON-BREAKING HYPHEN}", event.start, end)
        elif event.name not in _names("dropped") and not (event.name.endswith("Pr") and self._extend(end)):
            text = self.text.strip() if event.name in _names("kept") else ""
            self._add(Code([], "kept" if text else "lone", self.text, text), event.start, end, event.name)
            if event.name == "w:fldChar":
                self._add_field_mark(_value(event, "fldCharType"))
        self._taken = len(self.inside)

    def _run_tag(self, formatting: str) -> str:
        """Return what begins a run of the translation."""
        formatting = _NOISE.sub("", formatting)
        for match in _LANGUAGE.finditer(formatting):
            if self._document.is_source(match[1] or match[2]):  # which Word then takes from the styles
                new = f' lang="{self._document.language}"' if match[2] else ""
                formatting = formatting.replace(match[0], new)
        if self._document.turned and self._begin.name == "w:p":
            formatting = _RTL.sub("", formatting)
            if self._document.turned == "rtl":
                formatting = self._with_child(_TWICE.sub(r"\g<0><\1\2Cs\3/>", formatting), "rPr", "rtl")
        is_empty = re.fullmatch(r"<[^< ]*/>|<([^\s<>/]+)></\1>", formatting)
        return f"<{self._prefix}r>{'' if is_empty else formatting}"

    def _with_child(self, element: str, name: str, child: str) -> str:
        """Return properties with an empty element in them, in the order of the schema."""
        prefix = self._prefix
        behind = re.search(rf"<{prefix}(?:{'|'.join(_names(f'behind_{child}'))})\b|</{prefix}{name}>", element)
        if behind is None:  # <w:rPr/>, or none
            return f"<{prefix}{name}><{prefix}{child}/></{prefix}{name}>"
        return f"{element[: behind.start()]}<{prefix}{child}/>{element[behind.start() :]}"

    def _extend(self, end: int) -> bool:
        """Let the element that was opened last begin with what ends here; return False if it has begun."""
        last = self._items[-1] if self._items else None
        if last is None or not isinstance(last.part, Code) or last.part.kind != "open" or self._run:
            return False
        self._items.pop()
        self._add(Code([], "open", last.name), last.start, end)
        return True

    def _add(self, part: str | Code, start: int, end: int, name: str = "") -> None:
        inside, self._taken = self.inside[self._taken :], len(self.inside)
        raw = [f"\1{'r' if self._run else 'o'}{self._run}\2", *self._raw(inside, start, end), "\3"]
        if isinstance(part, Code):
            part.raw, name = raw, name or part.name
        item = _Item(part, raw, start, end, self._run, self._run and f"</{self._prefix}r>", self._run, name)
        if self._run_start >= 0:  # the first of its run
            item.start, item.head, self._run_start = self._run_start, "", -1
        self._items.append(item)

    def _raw(self, inside: Sequence[Text], start: int, end: int) -> list[str | Text]:
        """Return the content between two places, with the texts inside."""
        raw = list[str | Text]()
        for text in inside:
            if not text.nested:
                raw += [self.content[start : text.start], text]
                start = text.end
        return [*raw, self.content[start:end]]

    def _add_field_mark(self, kind: str) -> None:
        """Take what begins or ends a field, or parts its instruction from its result."""
        if kind == "begin":
            self._fields.append(len(self._items) - 1)
        elif self._fields and kind == "separate":
            codes = [item.part for item in self._items[self._fields[-1] :] if item.name == "w:instrText"]
            if _TEXT_FIELD.match("".join(code.name for code in codes if isinstance(code, Code))):
                self._merge(self._fields[-1], "open")
        elif self._fields:
            first = self._fields.pop()
            if self._items[first].name == "field":
                self._items[-1].part = Code(self._items[-1].raw, "close", "field")
            else:
                self._merge(first, "kept")

    def _merge(self, first: int, kind: str) -> None:
        """Make one code of the last items."""
        items = self._items[first:]
        if not _is_balanced(items):
            return
        text = "".join(item.part if isinstance(item.part, str) else item.part.text for item in items).strip()
        raw = [part for item in items for part in item.raw]
        code = Code(raw, kind, "field", text if kind == "kept" else "")
        if kind == "kept" and not text:
            code.kind = "lone"
        self._items[first:] = [
            replace(items[0], part=code, raw=raw, end=items[-1].end, tail=items[-1].tail, name="field")
        ]

    def texts(self) -> Iterator[Text]:
        texts, ends = list[Text](), [text.end for text in self.inside]
        for items in self._segments():
            start, end = items[0].start, items[-1].end
            inside = self.inside[bisect(ends, start) : bisect(ends, end)]
            texts.append(self._text_of(items, self._raw(inside, start, end) if inside else ()))
            for text in inside:
                text.nested = True
        yield from sorted([*self._turned(texts), *self.inside, *texts], key=lambda text: text.end)

    def _segments(self) -> list[list[_Item]]:
        """Return the items of each text."""
        parts, following = [list[_Item]()], ""
        for item in reversed(self._items):
            if item.name in _names("tabs") or (item.name in _names("lines") and not following[:1].islower()):
                parts.append([])
            else:
                following = item.part.lstrip() or following if isinstance(item.part, str) else following
                parts[-1].append(item)
        segments = [_trimmed(part[::-1]) for part in reversed(parts)]
        if not all(map(_is_balanced, segments)):
            segments = [_trimmed(self._items)]
        return [items for items in segments if any(isinstance(item.part, str) and item.part.strip() for item in items)]

    def _text_of(self, items: Sequence[_Item], inside: Sequence[str | Text]) -> Text:
        """Return a text of items. The formatting that most of it has is that of its translation, around other spans."""
        counts, depth = (Counter[str](), Counter[str]()), 0  # around spans such as links, and inside of them
        for item in items:
            if isinstance(item.part, str):
                counts[depth > 0][item.run] += len(item.part)
            else:
                depth += {"open": 1, "close": -1}.get(item.part.kind, 0)
        base = current = (counts[0] or counts[1]).most_common(1)[0][0]
        parts = list[str | Code]()
        first, last = items[0], items[-1]

        def switch(run: str) -> None:
            nonlocal current
            parts.extend([Code(["\1e\2\3"], "close", "formatting")] if base != current != run else [])
            parts.extend([Code([f"\1f{run}\2\3"], "open", "formatting")] if current != run != base else [])
            current = run

        for item in items:
            if isinstance(item.part, str):
                if item.part.strip():
                    switch(item.run)
                parts.append(item.part)
                continue
            if item.part.kind in ("open", "close"):
                switch(base)
            parts += [" ", item.part] if item.name in [*_names("lines"), *_names("tabs"), "s:br"] else [item.part]
        switch(base)
        before = first.part[: -len(first.part.lstrip())] if isinstance(first.part, str) else ""
        behind = last.part[len(last.part.rstrip()) :] if isinstance(last.part, str) else ""

        def finish(written: str) -> str:
            return first.head + self._runs(f"{before}{written}{behind}", base) + last.tail

        content = self.content[first.start : last.end]
        return Text(parts, first.start, last.end, content, escape=_escaped, finish=finish, inside=inside)

    def _runs(self, written: str, base: str) -> str:
        """Return the runs of a translation."""
        parts, runs, current = list[str](), [base], ""
        space = "" if self._begin.name == "a:p" else ' xml:space="preserve"'

        def switch(run: str) -> None:
            nonlocal current
            if run != current:
                parts.append((current and f"</{self._prefix}r>") + run)
                current = run

        for kind, run, raw, characters in _PIECE.findall(written):
            if kind == "f":
                runs.append(run)
            elif kind == "e":
                runs.pop()
            elif kind:
                switch(run)
                parts.append(raw)
            else:
                switch(runs[-1])
                text = re.sub(" *\n", "\n", characters)
                parts.append(f"<{self._prefix}t{space}>{text}</{self._prefix}t>")
        switch("")
        return "".join(parts)

    def _turned(self, texts: Sequence[Text]) -> Iterator[Text]:
        """Yield edits that let the paragraph be written from the other side."""
        turned, (start, end) = self._document.turned, self._properties
        properties = self.content[start:end]
        if not turned or not texts:
            return
        if self._begin.name == "w:p":
            bare = re.sub(r"<(?:\w+:)?bidi\b[^>]*/>", "", properties)
            new = self._with_child(bare, "pPr", "bidi") if turned == "rtl" else bare
            yield Text([], start, end, new, reason=EDIT)
        elif self._begin.name == "a:p":
            side = ' algn="r" rtl="1"' if turned == "rtl" else ' algn="l" rtl="0"'
            bare = re.sub(r' (?:rtl|algn="[lr]")(?:="[^"]*")?(?=[^<]*>)', "", properties)
            new = re.sub(r"^<[^\s/>]+", rf"\g<0>{side}", bare) or f"<{self._prefix}pPr{side}/>"
            yield Text([], start, end, new, reason=EDIT)


def prefix_of(tag: str) -> str:
    """Return the prefix of the name in a start tag, with its colon."""
    found = re.match(r"<([^\s/>:]+:)", tag)
    return found[1] if found else ""


def _escaped(text: str) -> str:
    return escaped(_NO_XML.sub("", text))


def _codes(items: Iterable[_Item]) -> list[Code]:
    return [item.part for item in items if isinstance(item.part, Code)]


def _is_balanced(items: Sequence[_Item]) -> bool:
    """Return whether all that is opened is closed, and conversely."""
    codes = _codes(items)
    return 2 * len(pairs(codes)) == sum(code.kind in ("open", "close") for code in codes)


def _trimmed(items: Sequence[_Item]) -> list[_Item]:
    """Return items without markup at their edges that is around nothing of them."""
    codes = _codes(items)
    paired = {id(codes[number]) for pair in pairs(codes).items() for number in pair}

    def is_around(item: _Item) -> bool:
        return isinstance(item.part, Code) and not item.part.text and id(item.part) not in paired

    trimmed = list(dropwhile(is_around, items))[::-1]
    return list(dropwhile(is_around, trimmed))[::-1]
