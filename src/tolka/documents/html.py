"""Pages of HTML: paragraphs and the texts of attributes; scripts, styles and what says translate="no" stay."""

import re
from collections.abc import Iterator
from functools import cache
from html import unescape

from tolka.documents.base import DOCUMENTS
from tolka.documents.markup import ATTRIBUTE, Event, TextBuilder, attribute, elements, html_events
from tolka.documents.spliced import SplicedDocument
from tolka.documents.text import EDIT, Code, Text
from tolka.system.package_data import table_beside
from tolka.text.direction import Direction
from tolka.text.encodings import codec_of
from tolka.text.scripts import is_right_to_left, plain_code

_CHARSET = re.compile(rb"""<meta[^>]{1,200}?charset\s*=\s*["']?([\w.:-]+)""", re.IGNORECASE)
_HEAD_BYTES = 1024  # in which the encoding must be named (HTML, section 4.2.5.4)
_CONTINUES = re.compile(r"\s*[a-zß-ÿа-яёα-ω(,;–—-]")


@DOCUMENTS.register("html")
class Html(SplicedDocument):
    """A page, or a part of one."""

    endings, errors = (".html", ".htm", ".xhtml"), "xmlcharrefreplace"

    def declared(self, raw: bytes) -> str:
        named = _CHARSET.search(raw[:_HEAD_BYTES])
        return (named and codec_of(named[1].decode())) or "utf-8"

    def find(self, content: str) -> Iterator[Text]:
        return html_texts(content, self.direction)


@cache
def _names(kind: str) -> frozenset[str]:
    return frozenset(table_beside(__file__)[kind])


def html_texts(content: str, direction: Direction) -> Iterator[Text]:
    """Yield the texts of a page, or of a part of one, and what changes with its language."""
    builder = TextBuilder(content)

    def is_whole(event: Event) -> bool:
        is_empty = event.name in _names("void") or content.endswith("/>", event.start, event.end)
        return not is_empty and bool(_reason(event, direction))

    def is_edge(event: Event) -> bool:
        return bool(event.name) and event.name not in _names("inline")

    for element in elements(html_events(content), is_whole, is_edge):
        event, end = element.start, element.end.end
        text = "" if event.name in _names("unread") else element.text.strip()
        is_tag = element.end is event
        inside = [*_texts_in_tag(content, event, direction)] if is_tag and event.kind == "start" else []
        if not event.name:
            builder.add(event.text if event.kind == "text" else Code([]), event.start, end)
        # A line break may end a line of a sentence, or the text.
        elif event.name in _names("inline") and (event.name != "br" or _CONTINUES.match(content[end : end + 40])):
            kind = {"start": "open", "end": "close"}[event.kind] if is_tag else "kept" if text else "lone"
            code = Code([], "lone" if event.name in _names("void") else kind, event.name, text)
            builder.add(code, event.start, end, inside)
            if event.name == "br":
                builder.add(" ", end, end)  # as the model reads it
        else:
            yield from builder.finish()
            yield from inside
            if text:
                yield Text([text], event.start, end, content[event.start : end], reason=_reason(event, direction))
    yield from builder.finish()


def _reason(event: Event, direction: Direction) -> str:
    """Return why an element is not translated; "" if it is."""
    own = event.attributes
    if own.get("translate") == "no" or "notranslate" in own.get("class", "").split():
        return "not to be translated"
    if event.name in _names("kept"):
        return "code"
    language = own.get("lang", "")
    if language and direction.is_known and plain_code(language) != plain_code(direction.source):
        return "in another language"
    return ""


def _texts_in_tag(content: str, event: Event, direction: Direction) -> Iterator[Text]:
    """Yield the texts of an element's attributes, and what changes with the language of the page."""
    way = ""
    if event.name == "html" and direction.is_known and len({*map(is_right_to_left, direction)}) == 2:
        way = "rtl" if is_right_to_left(direction.target) else "ltr"
    for match in ATTRIBUTE.finditer(content, event.start, event.end):
        name, value = match[1].lower(), unescape(match[match.lastgroup] if match.lastgroup else "")
        start, end = match.span(match.lastgroup or 0)
        if name == "dir" and way:
            yield Text([], start, end, way, reason=EDIT)
        elif _is_read(name, event) and value.strip():
            escape = attribute if match["bare"] is None else lambda text: f'"{attribute(text)}"'
            yield Text([value], start, end, content[start:end], escape=escape)
        elif name in ("lang", "xml:lang") and direction.is_known and plain_code(value) == plain_code(direction.source):
            yield Text([], start, end, direction.target, reason=EDIT)
    if way and "dir" not in event.attributes:
        yield Text([], event.end - 1, event.end - 1, f' dir="{way}"', reason=EDIT)


def _is_read(name: str, event: Event) -> bool:
    """Return whether people read the value of an attribute."""
    own = event.attributes
    if name == "content":
        return event.name == "meta" and (own.get("name") or own.get("property", "")).lower() in _names("meta")
    if name == "value":
        return event.name == "input" and own.get("type", "").lower() in _names("buttons")
    return name in _names("attributes")
