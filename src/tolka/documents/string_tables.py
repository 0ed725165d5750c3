"""Strings of programs by their keys, in JSON (i18next, ARB of Flutter) and YAML (Rails): their values are texts."""

import json
import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import yaml

from tolka.documents.base import DOCUMENTS
from tolka.documents.spliced import SplicedDocument
from tolka.documents.strings import CODE, pieces_of, string_texts
from tolka.documents.text import EDIT, Text
from tolka.errors import DataError

_TOKEN = re.compile(r'(?P<string>"(?:[^"\\]|\\.)*+")(?P<colon>\s*:)?|[\[\]{}]', re.DOTALL)
_KEPT = re.compile(r"(\$t\([^()]*\)|%\{\w+\}|\{\{(?:[^{}]|\{\{[^{}]*\}\})*\}\}|\{[^{}]*\})")
_OF_SEVERAL = re.compile(r"\{\s*\w+\s*,\s*(?:plural|select|selectordinal)\s*,")  # ICU's MessageFormat
# Colours, identifiers, and formats of dates and numbers, as %d %b and YYYY-MM-DD.
_CODE = re.compile(
    r"#[0-9a-fA-F]{3,8}|(?:rgb|hsl)a?\([^()]*\)|[a-z0-9-]+(?:[._][a-z0-9-]+)+|(?:%[-^0-9]*[a-zA-Z]|[^\w%])+"
    r"|(?=.*(?:[Yy]{2}|:mm))(?:[YyMDdHhmsaALT]|\W)+"
)
_STRING = "tag:yaml.org,2002:str"
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")  # an anchor and a tag before a value
_PLAIN = re.compile(r"[\w(](?!.*(?::(?:\s|$)|\s#))[^\n,\[\]{}]*(?<!\s)")  # without what ends it inside of brackets
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")  # line breaks of YAML, and what it may not have
_RESOLVER: Any = yaml.resolver.Resolver()


class _String(NamedTuple):
    """A string, its place, and the keys that lead to it. style: of YAML."""

    value: str
    start: int
    end: int
    path: Sequence[str]
    is_key: bool
    style: str = '"'


class StringTable(SplicedDocument):
    """Strings by their keys; the keys stay, and so does what is beneath one that begins with @ or $."""

    @abstractmethod
    def strings(self, content: str) -> Iterator[_String]:
        """Yield the strings; DataError with the line for what cannot be read."""

    @abstractmethod
    def quoted(self, string: _String, written: str, value: str) -> str:
        """Return a value as it is written in place of a string. written: that string."""

    def find(self, content: str) -> Iterator[Text]:
        self.is_escaped = content.isascii() and "\\u" in content
        self._newline = "\r\n" if "\r\n" in content else "\n"
        for string in self.strings(content):
            value, start, end, path = string[:4]
            written = content[start:end]
            if (string.is_key and len(path) == 1) or path == ("@@locale",):
                if self.direction.is_known and value == self.direction.source:
                    yield Text([], start, end, written.replace(value, self.direction.target), reason=EDIT)
            elif not string.is_key and not any(key.startswith(("@", "$")) for key in path):
                reason = CODE if _CODE.fullmatch(value) else ""
                if reason := "plural or select" if _OF_SEVERAL.search(value) else reason:
                    yield Text([value], start, end, written, reason=reason)
                    continue
                quote = partial(self.quoted, string, written)
                yield from string_texts(pieces_of(value, start, _KEPT), start, end, content, quote)


def json_strings(content: str) -> Iterator[_String]:
    """Yield the strings of JSON (RFC 8259), which is no other than it should be."""
    path = list[str]()  # key at each level; "" in a list
    for match in _TOKEN.finditer(content):
        if match["string"] is None:
            path[:] = [*path, ""] if match[0] in "[{" else path[:-1]
            continue
        value = json.loads(match["string"])
        if match["colon"]:
            path[-1] = value
        yield _String(value, *match.span("string"), tuple(path), bool(match["colon"]))


@DOCUMENTS.register("json")
class JsonStrings(StringTable):
    """Strings in JSON."""

    endings = (".json", ".arb")

    def strings(self, content: str) -> Iterator[_String]:
        try:
            json.loads(content.removeprefix("\ufeff"))
        except json.JSONDecodeError as error:
            raise DataError(f"{self.path}:{error.lineno}: not JSON ({error.msg})") from None
        except RecursionError:
            raise DataError(f"{self.path}: brackets are nested too deeply in it") from None
        yield from json_strings(content)

    def quoted(self, string: _String, written: str, value: str) -> str:
        return json.dumps(value, ensure_ascii=self.is_escaped)


@DOCUMENTS.register("yaml")
class YamlStrings(StringTable):
    """Strings in YAML 1.1; aliases and what has a tag of its own stay."""

    endings = (".yaml", ".yml")

    def strings(self, content: str) -> Iterator[_String]:
        path, awaits = list[str](), list[bool | None]()  # whether a key is next; None in a list
        offset = content.startswith("\ufeff")
        try:
            for event in yaml.parse(content[offset:], Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
                if isinstance(event, yaml.CollectionStartEvent):
                    path.append("")
                    awaits.append(isinstance(event, yaml.MappingStartEvent) or None)
                    continue
                if isinstance(event, yaml.CollectionEndEvent):
                    path, awaits = path[:-1], awaits[:-1]
                elif isinstance(event, yaml.ScalarEvent):
                    is_key = awaits[-1:] == [True]
                    if is_key:
                        path[-1] = event.value
                    tag = event.tag or _RESOLVER.resolve(yaml.ScalarNode, event.value, event.implicit)
                    if tag == _STRING and event.start_mark and event.end_mark:
                        start, end = event.start_mark.index + offset, event.end_mark.index + offset
                        if properties := _PROPERTIES.match(content, start, end if event.anchor or event.tag else start):
                            start = properties.end()
                        yield _String(event.value, start, end, tuple(path), is_key, event.style or "")
                elif not isinstance(event, yaml.AliasEvent):
                    continue
                if awaits and awaits[-1] is not None:
                    awaits[-1] = not awaits[-1]
        except yaml.YAMLError as error:
            line = getattr(getattr(error, "problem_mark", None), "line", 0) + 1
            raise DataError(f"{self.path}:{line}: not YAML ({getattr(error, 'problem', error)})") from None

    def quoted(self, string: _String, written: str, value: str) -> str:
        style, tail = string.style, written[len(written.rstrip()) :]  # the line ends of a block scalar
        if _ESCAPED.search(value):
            style = '"'
        if style in ("|", ">"):
            return self._block(string.value, written, value) + tail
        if style == "'" and "\n" not in value:
            return "'" + value.replace("'", "''") + "'"
        is_string = _PLAIN.fullmatch(value) and _RESOLVER.resolve(yaml.ScalarNode, value, (True, False)) == _STRING
        if style == "" and is_string:
            return value
        quoted = json.dumps(value, ensure_ascii=False)
        return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted) + tail

    def _block(self, original: str, written: str, value: str) -> str:
        """Return a block scalar, whose lines are written as they are (|)."""
        header, _, body = written.partition("\n")
        indents = [len(text) - len(text.lstrip()) for text in (body.lstrip("\r\n"), original.lstrip("\n"))]
        lines = [line and " " * (indents[0] - indents[1]) + line for line in value.rstrip().split("\n")]
        return "|" + header[1:] + "\n" + self._newline.join(lines)
