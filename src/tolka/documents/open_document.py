"""Documents of LibreOffice and others: text, spreadsheets and presentations (OpenDocument 1.3)."""

from collections.abc import Iterator, Sequence

from tolka.documents.base import DOCUMENTS
from tolka.documents.markup import Element, Event, TextBuilder, elements
from tolka.documents.text import Code, Text
from tolka.documents.zipped import CODE_STYLE, ZippedDocument, changed_tag
from tolka.errors import DataError
from tolka.system.package_data import table_beside
from tolka.text.scripts import plain_code, variety_of

_TYPE = "application/vnd.oasis.opendocument."
_SIDES = ("start", "left", "end", "right")


def _names(kind: str) -> Sequence[str]:
    return table_beside(__file__)[kind]  # type: ignore[no-any-return]


@DOCUMENTS.register("odt")
class OpenDocument(ZippedDocument):
    """A text document, with its headers, footers and notes; a spreadsheet's cells of text; a presentation."""

    endings = (".odt", ".ott", ".ods", ".ots", ".odp", ".otp")
    _is_default = False  # whether this is in the default style of paragraphs
    _code_styles: frozenset[str] = frozenset()

    def parts(self) -> Sequence[str]:
        names = self.archive.namelist()
        if not self.content("mimetype").startswith(_TYPE):
            raise DataError(f"{self.path} is not OpenDocument, as {', '.join(self.endings)} are; what wrote it?")
        if "encryption-data" in self.content("META-INF/manifest.xml"):
            raise DataError(f"{self.path} has a password: save it without")
        return [name for name in ("content.xml", "styles.xml", "meta.xml") if name in names or name[0] == "c"]

    def is_whole(self, start: Event) -> bool:
        own = start.attributes
        is_text = own.get("office:value-type", "string") == "string" and "table:formula" not in own
        is_computed = start.name == "table:table-cell" and not is_text
        return is_computed or start.name in _names("paragraphs") or start.name in _names("left_alone")

    def texts_of(self, content: str, element: Element) -> Iterator[Text]:
        name, own = element.start.name, element.start.attributes
        if name in _names("paragraphs"):
            builder = TextBuilder(content)
            yield from self._read_paragraph(content, element, builder)
            yield from builder.finish("code" if self._is_code(element.start) else "")
        elif name in ("style:default-style", "style:style"):
            self._is_default = own.get("style:family") == "paragraph" and name == "style:default-style"
            if CODE_STYLE.search(own.get("style:parent-style-name", "")):
                self._code_styles |= {own.get("style:name", "")}
        elif values := self._changes(element.start):
            yield changed_tag(content, element.start, values)

    def _read_paragraph(self, content: str, parent: Element, builder: TextBuilder) -> Iterator[Text]:
        """Read a paragraph, or a span in it; yield the texts before tabs and line breaks outside of spans."""
        for element in elements(parent.inside):
            start, inside, end = element
            is_break = start.name in _names("breaks")
            if start.kind != "start":
                builder.add(start.text if start.kind == "text" else Code([]), start.start, start.end)
            elif start.name in _names("spans") and not self._is_code(start):
                builder.add(Code([], "open", start.name), start.start, start.end)
                yield from self._read_paragraph(content, element, builder)
                builder.add(Code([], "close", start.name), end.start, end.end)
            elif is_break and parent.start.name in _names("paragraphs"):
                yield from builder.finish()
            elif start.name == "text:s" and "text:c" not in start.attributes:
                builder.add(" ", start.start, end.end)  # LibreOffice writes a blank so that is behind an element
            else:
                builder.add(" " if is_break else "", start.start, start.start)
                text = element.text.strip() if start.name in [*_names("kept"), *_names("spans")] else ""
                code = Code([], "kept" if text else "lone", text=text)
                builder.add(code, start.start, end.end, list(self.find(content, [start, *inside, end])))

    def _is_code(self, start: Event) -> bool:
        style = start.attributes.get("text:style-name", "")
        return style in self._code_styles or CODE_STYLE.search(style) is not None

    def _changes(self, style: Event) -> dict[str, str]:
        """Return attributes of a style that change with the language, and their values."""
        direction, own = self.direction, style.attributes
        if style.name == "style:text-properties" and direction.is_known:
            if plain_code(own.get("fo:language", "")) == plain_code(direction.source):
                target = variety_of(direction.target)
                values = {"fo:language": target.language, "fo:country": target.region or "none"}
                return {name: value for name, value in values.items() if name in own}
        elif style.name == "style:paragraph-properties" and self.turned:
            # LibreOffice takes start for left, and end for right, whichever side writing begins at.
            sides = ("end", "start") if self.turned == "rtl" else ("start", "end")
            if self._is_default:
                return {"style:writing-mode": "rl-tb" if self.turned == "rtl" else "lr-tb", "fo:text-align": sides[0]}
            if own.get("fo:text-align") in _SIDES:
                return {"fo:text-align": sides[_SIDES.index(own["fo:text-align"]) // 2]}
        return {}
