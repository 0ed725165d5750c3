"""Markdown: CommonMark, GitHub's tables and strikethrough, front matter; code, HTML tags and addresses stay."""

import json
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tolka.documents.base import DOCUMENTS
from tolka.documents.html import html_texts
from tolka.documents.markup import TextBuilder
from tolka.documents.spliced import SplicedDocument
from tolka.documents.text import Code, Text
from tolka.errors import ConfigError
from tolka.text.direction import Direction

if TYPE_CHECKING:
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"\ufeff?(?:(---|\+\+\+)[ \t]*\r?\n(?:.*?\n)?\1[ \t]*(?:\r?\n|\Z))?", re.DOTALL)
# A value in one line, of a key that is not inside of another one.
_FRONT_VALUE = re.compile(
    r"""^(?:title|subtitle|description|summary)[ \t]*[:=][ \t]*
    ("(?:\\.|[^"\\\r\n])*" | '(?:''|[^'\r\n])*' | [^\s"'>|&*!\[\]{}\#%@`,][^\r\n]*?)
    [ \t]*(?:[ \t]\#[^\r\n]*)?\r?$(?!\n[ \t]+\S)""",
    re.MULTILINE | re.VERBOSE,
)
_LINE_END = re.compile(r"\r\n?|\n")
_TAG = re.compile(r"<(/?)([A-Za-z][\w-]*)")
# What markup could be made of, and what of it is none.
_MARKUP = re.compile(
    r"""(?P<bare>https?://[\w./?=&%\#~:@+-]*\w | (?<=[^\W_])_+(?=[^\W_]) | (?<=\S\s)[*_]+(?=\s)
        | \[[\w\ ,.:;'"/-]{1,80}\](?=[^\[(:]))
    | [*_`\[\]] | \\(?=[!-/:-@\[-`{-~]|\Z) | <(?=[A-Za-z/!?]|\Z) | &(?=\#?\w+;) | ~(?=~) | (?<=~)~
    | (?<=\s)\#(?=\#*\Z)""",
    re.VERBOSE,
)
_WITHOUT_LABEL = ("]", "][]")  # ends of references whose text is their label
_ESCAPE = re.compile(r"""\\([!-/:-@\[-`{-~])""")
_BLANK_LINE = re.compile(r"(?<=\n)[ \t]+(?=\n)")
_BREAK = re.compile(r" +((?:  |\\)\r?\n)")
_LINE_START = re.compile(r"\A(?:\d{1,9}(?=[.)](?:\s|\Z))|(?=[-+](?:\s|\Z)|-[-\s]*\Z|#{1,6}(?:\s|\Z)|>|=+\s*\Z))")
_EDGE = "\ufdd0"  # a noncharacter, on the outer side of some markup until its text is written
# Emphasis, beside a letter where it is not read as such (CommonMark 0.31, section 6.2).
_OPENS = re.compile(rf"(?<=[^\W_]){_EDGE}(?=_|[*~]+[^\w\s])")
_CLOSES = re.compile(rf"(_|[^\w\s][*~]+){_EDGE}(?=[^\W_])")


@DOCUMENTS.register("markdown")
class Markdown(SplicedDocument):
    """A text in Markdown, whose every translated paragraph is one line."""

    endings = (".md", ".markdown")

    def find(self, content: str) -> Iterator[Text]:
        try:
            return _Page(content, self.direction).texts()
        except ImportError:
            raise ConfigError(
                f"{self.path}: Markdown needs the package markdown-it-py: pip install 'tolka[documents]'"
            ) from None


class _Page:
    """Reads the texts of a document, block by block."""

    def __init__(self, content: str, direction: Direction) -> None:
        from tolka.documents.markdown_inline import inline_tokens, parser

        self._content, self._read = content, content.replace("\0", "\ufffd")  # as the parser reads it
        self._md, self._env, self._inline_tokens = parser(), dict[str, Any](), inline_tokens
        self._direction = direction
        front = _FRONT_MATTER.match(content)
        assert front
        self._front, self._begin = front[0], front.end()
        self._lines = [self._begin, *(end.end() for end in _LINE_END.finditer(content, self._begin)), len(content)]
        self._cursor = 0  # behind the last line or cell that was found

    def texts(self) -> Iterator[Text]:
        for match in _FRONT_VALUE.finditer(self._front):
            yield Text([_unquoted(match[1])], *match.span(1), match[1], finish=partial(json.dumps, ensure_ascii=False))
        opening, quotes = "", 0
        for token in self._md.parse(self._content[self._begin :], self._env):
            quotes += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
            start, end = (self._lines[line] for line in token.map or (0, 0))
            if token.type == "inline":
                yield from self._of_block(token, opening)
            elif token.type == "html_block" and not quotes:
                yield from self._of_html(start, end)
            elif token.type in ("html_block", "fence", "code_block"):
                reason = "HTML in a quotation" if token.type == "html_block" else "code"
                yield Text([], start, end, self._content[start:end], reason=reason)
            opening = token.type + token.markup

    def _of_html(self, start: int, end: int) -> Iterator[Text]:
        for text in list(html_texts(self._content[start:end], self._direction)):  # which goes by places
            text.start, text.end = text.start + start, text.end + start
            yield text

    def _of_block(self, block: "Token", opening: str) -> Iterator[Text]:
        """Yield the texts of a paragraph, heading or cell. opening: type and mark of the token before it."""
        assert block.map
        is_cell, places = opening[:2] in ("th", "td"), array("q")
        for number, line in enumerate(block.content.split("\n"), block.map[0]):
            bare = line.strip(" \t")
            parts = bare.split("|") if is_cell else [bare]  # a pipe in a cell stands there as \|
            start = self._read.index("\\|".join(parts), max(self._cursor, self._lines[number]))
            places.extend(range(start - len(line) + len(line.lstrip(" \t")), start))
            for part in parts:
                places.extend(range(start, start + len(part) + 1))
                start += len(part) + 2
            self._cursor = start - 2
            places.extend(range(start - 1, start - 1 + len(line) - len(line.rstrip(" \t"))))
        before = self._content[self._lines[block.map[0]] : places[0]]
        starts_line = "#" not in opening and not (is_cell and "|" in before)
        yield from self._inline(block.content, places, partial(_escaped, is_cell, starts_line))

    def _inline(self, content: str, places: Sequence[int], escape: Callable[[str], str]) -> Iterator[Text]:
        """Yield the texts of a block, or of the description of an image. places: in the file, of each character."""
        builder, labels = TextBuilder(self._content, escape), list[int]()
        for token, start, end in self._inline_tokens(content, self._md, self._env):
            a, b, raw = places[start], places[end], content[start:end]
            if token.type in ("text", "text_special", "softbreak"):
                builder.add(token.content or " ", a, b)
                continue
            code, inside = Code([], ("lone", "open", "close")[token.nesting], f"[{token.tag}"), list[Text]()
            if token.type == "hardbreak":
                builder.add(" ", a, a)
            elif token.type in ("code_inline", "kept") and token.content.strip():
                code.kind, code.text = "kept", token.content.strip()
            elif token.type == "html_inline" and (tag := _TAG.match(raw)):
                code.kind, code.name = "close" if tag[1] else "open", tag[2].lower()
                # An attribute needs its whole tag, which may be on several lines of a quotation.
                inside = list(self._of_html(a, b)) if "=" in raw and raw == self._content[a:b] else []
            elif token.type == "image":
                behind = start + 2 + len(token.content)
                if content[behind:end] not in _WITHOUT_LABEL:
                    inside = list(self._inline(token.content, places[start + 2 : behind + 1], escape))
            builder.add(code, a, b, inside)
            if token.type == "link_open":
                code.raw = [f"{_EDGE}{raw}"]
                labels.append(end)
            elif token.type == "link_close":
                label = " ".join(content[labels.pop() : start].split())
                if raw in _WITHOUT_LABEL:
                    code.raw = [f"][{label}]"]
                    builder.add("", a, b)  # so that the link is of the text, even if it is all around it
            elif token.markup in ("*", "**", "_", "__", "~~") and token.nesting:
                code.raw = [f"{_EDGE}{raw}" if token.nesting > 0 else f"{raw}{_EDGE}"]
        for text in builder.finish():
            text.finish = _finished
            yield text


def _escaped(is_cell: bool, starts_line: bool, text: str) -> str:
    """Escape what would be markup, and was none."""
    text = _MARKUP.sub(lambda match: match[0] if match["bare"] else f"\\{match[0]}", text)
    if is_cell:  # where a pipe behind any backslash ends no cell
        text = re.sub(r"\\\\\Z", "&#92;", text.replace("|", r"\|"))
    return _LINE_START.sub(r"\g<0>\\", text) if starts_line else text


def _unquoted(value: str) -> str:
    """Return the value of a key of front matter."""
    if value[0] == '"':
        return _ESCAPE.sub(r"\1", value[1:-1])
    return value[1:-1].replace("''", "'") if value[0] == "'" else value


def _finished(text: str) -> str:
    """Return a text whose markup is read as such beside what stands there."""
    text = _CLOSES.sub(r"\1 ", _OPENS.sub(" ", text.replace(f"!{_EDGE}[", r"\![")))
    # Two line breaks at one place: a line of blanks alone would end the paragraph.
    return _BLANK_LINE.sub(r"\\", _BREAK.sub(r"\1", text.replace(_EDGE, "")))
