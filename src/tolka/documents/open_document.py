"""Documents of LibreOffice and others: text, spreadsheets and presentations (OpenDocument 1.3)."""

from collections.abc import Iterator, Sequence

from tolka.documents.base import DOCUMENTS
from tolka.documents.markup import Event, xml_events
from tolka.documents.text import Text
from tolka.documents.zipped import Block, Paragraph, ZippedDocument, changed_attribute, paragraphs
from tolka.errors import DataError
from tolka.system.package_data import table_beside
from tolka.text.scripts import plain_code, variety_of

_SIDES = ("start", "left", "end", "right")
_BREAKS = ("text:tab", "text:line-break")
_TYPE = "application/vnd.oasis.opendocument."


class OpenDocument(ZippedDocument):
    """An archive with content.xml, whose headers and footers are in styles.xml."""

    def parts(self) -> Sequence[str]:
        if not self.content("mimetype").startswith(_TYPE):
            raise DataError(f"{self.path} is not OpenDocument, as {', '.join(self.endings)} are; what wrote it?")
        if "encryption-data" in self.content("META-INF/manifest.xml"):
            raise DataError(f"{self.path} has a password: save it without")
        return [name for name in ("content.xml", "styles.xml", "meta.xml") if name in self.names or name[0] == "c"]

    def find(self, name: str, content: str) -> Iterator[Text]:
        reader = _Reader(self, content)
        return paragraphs(xml_events(content, self.label(name)), reader.opened)


@DOCUMENTS.register("odt")
class OpenText(OpenDocument):
    """A text document."""

    endings = (".odt", ".ott")


@DOCUMENTS.register("ods")
class OpenSpreadsheet(OpenDocument):
    """A spreadsheet: the cells that people typed text into."""

    endings = (".ods", ".ots")


@DOCUMENTS.register("odp")
class OpenPresentation(OpenDocument):
    """A presentation, with its notes."""

    endings = (".odp", ".otp")


class _Reader:
    """Decides which elements of a part are read, and how."""

    def __init__(self, document: OpenDocument, content: str) -> None:
        self._document, self._content = document, content
        self._table = table_beside(__file__)
        self._is_default = False  # whether this is in the default style of paragraphs

    def opened(self, event: Event) -> Paragraph | None:
        """Return what reads an element; None if only what is inside of it is read."""
        if event.name in self._table["paragraphs"]:
            return _Block(self._content, self._table)
        if event.name in self._table["left_alone"] or _is_computed(event):
            return Paragraph(self._content)
        if event.name in ("style:default-style", "style:style"):
            self._is_default = event.attributes.get("style:family") == "paragraph" and event.name != "style:style"
        edits = [changed_attribute(self._content, event, *each) for each in self._changes(event)]
        return Paragraph(self._content, sorted(edits, key=lambda edit: edit.start)) if edits else None

    def _changes(self, event: Event) -> Iterator[tuple[str, str]]:
        """Yield attributes of a style that change with the language, and their values."""
        direction, own = self._document.direction, event.attributes
        if not direction.is_known:
            return
        if event.name == "style:text-properties" and plain_code(own.get("fo:language", "")) == plain_code(
            direction.source
        ):
            target = variety_of(direction.target)
            yield "fo:language", target.language
            if "fo:country" in own:
                yield "fo:country", target.region or "none"
        elif event.name == "style:paragraph-properties" and self._document.turned:
            # LibreOffice takes start for left, and end for right, whichever side writing begins at.
            sides = ("end", "start") if self._document.turned == "rtl" else ("start", "end")
            if self._is_default:
                yield "style:writing-mode", "rl-tb" if self._document.turned == "rtl" else "lr-tb"
                yield "fo:text-align", sides[0]
            elif own.get("fo:text-align") in _SIDES:
                yield "fo:text-align", sides[_SIDES.index(own["fo:text-align"]) // 2]


def _is_computed(event: Event) -> bool:
    """Return whether this is a cell that nobody typed a text into."""
    own = event.attributes
    return event.name == "table:table-cell" and (
        "table:formula" in own or own.get("office:value-type", "string") != "string"
    )


class _Block(Block):
    """A paragraph; a tab or line break outside of its spans ends a text."""

    def __init__(self, content: str, table: dict[str, list[str]]) -> None:
        super().__init__(content, table["spans"], table["kept"])
        self._finished = list[Text]()
        self._open, self._has_characters = 0, False

    def enter(self, event: Event) -> bool:
        is_span = super().enter(event)
        self._open += is_span
        return is_span

    def leave(self, event: Event) -> None:
        super().leave(event)
        self._open -= 1

    def add_whole(self, event: Event, end: int) -> None:
        if event.name == "text:s" and "text:c" not in event.attributes and self._has_characters:
            # LibreOffice writes a blank so that is behind an element.
            self.builder.add(" ", event.start, end)
        elif event.name not in _BREAKS:
            super().add_whole(event, end)
        elif self._open:
            self.builder.add(" ", event.start, event.start)
            super().add_whole(event, end)
        else:
            self._finished += self.builder.finish()
            self._has_characters = False

    def add_characters(self, event: Event) -> None:
        super().add_characters(event)
        self._has_characters = True

    def texts(self) -> Iterator[Text]:
        yield from self._finished
        yield from super().texts()
