"""Pages of HTML: paragraphs and the texts of attributes; scripts, styles and what says translate="no" stay."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape

from tolka.documents.base import DOCUMENTS
from tolka.documents.markup import Event, TextBuilder, attribute, html_events
from tolka.documents.spliced import SplicedDocument
from tolka.documents.text import EDIT, Code, Text
from tolka.text.direction import Direction
from tolka.text.encodings import codec_of
from tolka.text.scripts import is_right_to_left, plain_code

# Elements inside of a paragraph; any other one begins and ends a text.
_INLINE = frozenset(
    [
        "a",
        "abbr",
        "acronym",
        "b",
        "bdi",
        "bdo",
        "big",
        "br",
        "button",
        "cite",
        "code",
        "data",
        "del",
        "dfn",
        "em",
        "font",
        "i",
        "img",
        "input",
        "ins",
        "kbd",
        "label",
        "mark",
        "math",
        "meter",
        "nobr",
        "output",
        "picture",
        "progress",
        "q",
        "rb",
        "rp",
        "rt",
        "rtc",
        "ruby",
        "s",
        "samp",
        "script",
        "small",
        "span",
        "strike",
        "strong",
        "style",
        "sub",
        "sup",
        "svg",
        "template",
        "textarea",
        "time",
        "tt",
        "u",
        "var",
        "wbr",
    ]
)
_VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"]
)
# What is not translated, and of this, what the model does not even read.
_KEPT = frozenset(["code", "kbd", "math", "pre", "samp", "script", "style", "svg", "template", "textarea", "tt", "var"])
_UNREAD = frozenset(["math", "script", "style", "svg", "template", "textarea"])
_ATTRIBUTES = {
    "alt",
    "title",
    "placeholder",
    "summary",
    "aria-label",
    "aria-description",
    "aria-placeholder",
    "aria-roledescription",
}
_OF_ELEMENT = {("option", "label"), ("optgroup", "label"), ("track", "label")}
_DESCRIPTIONS = frozenset(
    ["description", "keywords", "og:title", "og:description", "twitter:title", "twitter:description"]
)
_BUTTONS = frozenset(["submit", "button", "reset"])
_VALUE = re.compile(
    r"""\s(?P<name>[\w:.-]+)\s*=\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^\s"'=<>`]+))"""
)
_CHARSET = re.compile(rb"""<meta[^>]{1,200}?charset\s*=\s*["']?([\w.:-]+)""", re.IGNORECASE)
_HEAD_BYTES = 1024  # in which the encoding must be named (HTML, section 4.2.5.4)
_SENTENCE_END = re.compile(r"[.!?…:。！？：;؟।][\"'”’»)\]」』]*\s*$")
_CONTINUES = re.compile(r"\s*[a-zß-ÿа-яёα-ω(,;–—-]")


@DOCUMENTS.register("html")
class Html(SplicedDocument):
    """A page, or a part of one."""

    endings, errors = (".html", ".htm", ".xhtml"), "xmlcharrefreplace"

    def declared(self, raw: bytes) -> str:
        named = _CHARSET.search(raw[:_HEAD_BYTES])
        return (named and codec_of(named[1].decode())) or "utf-8"

    def find(self, content: str) -> Iterator[Text]:
        return _Page(content, self.direction).texts()


@dataclass
class _Kept:
    """An element that stays as it is, while its end is looked for. depth: elements of its name that are open in it."""

    name: str
    start: int
    reason: str
    depth: int = 1
    text: str = ""


class _Page:
    """Reads the texts of a page in one pass."""

    def __init__(self, content: str, direction: Direction) -> None:
        self._content, self._direction = content, direction
        self._builder = TextBuilder(content)
        self._kept: _Kept | None = None

    def texts(self) -> Iterator[Text]:
        for event in html_events(self._content):
            if self._kept:
                yield from self._in_kept(self._kept, event)
            elif event.kind == "start":
                yield from self._start(event)
            elif event.kind == "end":
                if event.name in _INLINE:
                    self._builder.add(Code([], "close", event.name), event.start, event.end)
                else:
                    yield from self._builder.finish()
            else:
                part = event.text if event.kind == "text" else Code([])
                self._builder.add(part, event.start, event.end)
        yield from self._builder.finish()

    def _start(self, event: Event) -> Iterator[Text]:
        if event.name not in _INLINE or (event.name == "br" and self._is_end_of_line(event)):
            yield from self._builder.finish()
        if event.name not in _VOID and (reason := self._reason(event)):
            self._kept = _Kept(event.name, event.start, reason)
            return
        inside = sorted(self._of_attributes(event), key=lambda each: each.start)
        if event.name in _INLINE:
            kind = "lone" if event.name in _VOID else "open"
            self._builder.add(Code([], kind, event.name), event.start, event.end, inside)
            if event.name == "br":
                self._builder.add(" ", event.end, event.end)  # as the model reads it
        else:
            yield from inside

    def _is_end_of_line(self, event: Event) -> bool:
        """Return whether a line break ends a text, and not only a line of a sentence."""
        following = self._content[event.end : event.end + 40]
        return bool(_SENTENCE_END.search(self._builder.last_characters) or not _CONTINUES.match(following))

    def _reason(self, event: Event) -> str:
        """Return why an element is not translated; "" if it is."""
        if event.attributes.get("translate") == "no" or "notranslate" in event.attributes.get("class", "").split():
            return "not to be translated"
        if event.name in _KEPT:
            return "code"
        language = event.attributes.get("lang", "")
        if language and self._direction.is_known and plain_code(language) != plain_code(self._direction.source):
            return "in another language"
        return ""

    def _in_kept(self, kept: _Kept, event: Event) -> Iterator[Text]:
        kept.depth += (event.name == kept.name) * {"start": 1, "end": -1}.get(event.kind, 0)
        kept.text += event.text
        if kept.depth:
            return
        self._kept, raw = None, self._content[kept.start : event.end]
        text = "" if kept.name in _UNREAD else kept.text.strip()
        if kept.name in _INLINE:
            self._builder.add(Code([], "kept" if text else "lone", text=text), kept.start, event.end)
        elif text:
            yield Text([text], kept.start, event.end, raw, reason=kept.reason)

    def _of_attributes(self, event: Event) -> Iterator[Text]:
        """Yield the texts of an element's attributes, and what changes with the language of the page."""
        tag = self._content[event.start : event.end]
        source, target = self._direction
        for match in _VALUE.finditer(tag):
            name, value = match["name"].lower(), unescape(match["double"] or match["single"] or match["bare"] or "")
            start, end = (event.start + place for place in match.span(match.lastgroup or 0))
            if _is_text(name, event) and value.strip():
                escape = attribute if match["bare"] is None else lambda text: f'"{attribute(text)}"'
                yield Text([value], start, end, self._content[start:end], escape=escape)
            elif name in ("lang", "xml:lang") and self._direction.is_known and plain_code(value) == plain_code(source):
                yield Text([], start, end, target, reason=EDIT)
        if event.name == "html" and self._direction.is_known and is_right_to_left(source) != is_right_to_left(target):
            way = "rtl" if is_right_to_left(target) else "ltr"
            place = tag.find("dir=") + event.start
            if "dir" in event.attributes:
                length = len(event.attributes["dir"])
                yield Text([], place + 5, place + 5 + length, way, reason=EDIT)
            else:
                yield Text([], event.end - 1, event.end - 1, f' dir="{way}"', reason=EDIT)


def _is_text(name: str, event: Event) -> bool:
    """Return whether people read the value of an attribute."""
    own = event.attributes
    if name == "content":
        return event.name == "meta" and (own.get("name") or own.get("property", "")).lower() in _DESCRIPTIONS
    if name == "value":
        return event.name == "input" and own.get("type", "").lower() in _BUTTONS
    return name in _ATTRIBUTES or (event.name, name) in _OF_ELEMENT
