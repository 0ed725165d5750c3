"""Strings of programs by their keys, in JSON (i18next, ARB of Flutter) and YAML (Rails): their values are texts."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import cycle, repeat
from typing import Any, NamedTuple

import yaml

from tolka.documents.base import DOCUMENTS
from tolka.documents.spliced import SplicedDocument
from tolka.documents.strings import CODE, string_texts
from tolka.documents.text import EDIT, Text
from tolka.errors import DataError
from tolka.text.scripts import is_known

_TOKEN = re.compile(r'(?P<string>"(?:[^"\\]|\\.)*+")(?P<colon>\s*:)?|[\[\]{}]', re.DOTALL)
_KEPT = re.compile(r"(<[^<>]*>|\$t\([^()]*\)|%\{\w+\}|\{\{[^{}]*\}\}|\$?\{[^{}]*\})")
_OF_SEVERAL = re.compile(r"\{\s*\w+\s*,\s*(?:plural|select|selectordinal)\s*,")  # ICU's MessageFormat
# Colours, identifiers, and formats of dates and numbers, as %d %b and YYYY-MM-DD.
_CODE = re.compile(
    r"#[0-9a-fA-F]{3,8}|[a-z0-9-]+(?:[._][a-z0-9-]+)+|(?:%[-^0-9]*[a-zA-Z]|[^\w%])+"
    r"|(?=.*(?:[Yy]{2}|:mm))(?:[YyMDdHhmsaALT]|\W)+"
)
_RESOLVER: Any = yaml.resolver.Resolver()


class _String(NamedTuple):
    """A string, its place, the keys that lead to it, and what writes a value as it is written."""

    value: str
    start: int
    end: int
    path: tuple[str, ...]
    is_key: bool
    quote: Callable[[str], str]


def json_strings(content: str) -> Iterator[_String]:
    """Yield the strings of JSON (RFC 8259), or of lines of it, which must be without errors."""
    quote = partial(json.dumps, ensure_ascii=content.isascii() and "\\u" in content)
    path = list[str]()  # key at each level; "" in a list
    for match in _TOKEN.finditer(content):
        if match["string"]:
            value = json.loads(match["string"])
            if match["colon"]:
                path[-1] = value
            yield _String(value, *match.span("string"), tuple(path), bool(match["colon"]), quote)
        else:
            path = [*path, ""] if match[0] in "[{" else path[:-1]


def _yaml_strings(content: str) -> Iterator[_String]:
    """Yield the strings of YAML 1.1, except what has a tag or an anchor of its own; YAMLError for what is none."""
    path, offset = list[str](), content.startswith("\ufeff")
    are_keys: list[Iterator[bool]] = [repeat(False)]  # whether the next one is a key, at each level
    for event in yaml.parse(content[offset:], Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if isinstance(event, yaml.CollectionEndEvent):
            path.pop()
            are_keys.pop()
        is_key = isinstance(event, yaml.NodeEvent) and next(are_keys[-1])
        if isinstance(event, yaml.CollectionStartEvent):
            path.append("")
            are_keys.append(cycle([True, False]) if isinstance(event, yaml.MappingStartEvent) else repeat(False))
        elif isinstance(event, yaml.ScalarEvent):
            if is_key:
                path[-1] = event.value
            tag = event.tag or _RESOLVER.resolve(yaml.ScalarNode, event.value, event.implicit)
            if tag == "tag:yaml.org,2002:str" and not event.anchor and event.start_mark and event.end_mark:
                start, end = event.start_mark.index + offset, event.end_mark.index + offset
                end = start + len(content[start:end].rstrip())  # without the line ends of a block
                yield _String(event.value, start, end, tuple(path), is_key, partial(_yaml_scalar, event.style))


def _yaml_scalar(style: str | None, value: str) -> str:
    """Return a value in quotation marks if its style has them, or it needs them; in double ones in place of a block."""
    style = (style or None) if value.isprintable() else '"'
    # In brackets, where it needs them most.
    listed = yaml.safe_dump(
        [value], default_style=style, default_flow_style=True, allow_unicode=True, width=sys.maxsize
    )
    return listed[1:-2]


def _texts_of(
    strings: Iterable[_String], content: str, document: SplicedDocument, is_by_language: bool
) -> Iterator[Text]:
    """Yield the texts of strings; keys stay, and so does what stands below one that begins with @ or $.

    is_by_language: whether the source language is a key at the top, so that others may be there as well.
    """
    source, target = document.direction
    for value, start, end, path, is_key, quote in strings:
        written, top = content[start:end], path[0] if path else ""
        if is_by_language and top == target != source:
            raise DataError(
                f"{document.path}: it has a key {target} already: take it out, or translate a file without it"
            )
        if path == ("@@locale",) or (is_key and len(path) == 1):
            if document.direction.is_known and value == source:
                yield Text([], start, end, quote(target), reason=EDIT)
        elif is_key or any(key.startswith(("@", "$")) for key in path):
            continue
        elif is_by_language and top != source and is_known(top):
            yield Text([value], start, end, written, reason="in another language")
        elif _OF_SEVERAL.search(value):
            yield Text([value], start, end, written, reason="plural or select")
        elif _CODE.fullmatch(value):
            yield Text([value], start, end, written, reason=CODE)
        else:
            yield from string_texts(value, start, written, quote, _KEPT)


@DOCUMENTS.register("json")
class JsonStrings(SplicedDocument):
    """A JSON file of strings by their keys; its values are texts."""

    endings = (".json", ".arb")

    def find(self, content: str) -> Iterator[Text]:
        if not content.strip("\ufeff \t\r\n"):
            return
        try:
            loaded = json.loads(content.removeprefix("\ufeff"))
        except json.JSONDecodeError as error:
            raise DataError(f"{self.path}:{error.lineno}: not JSON ({error.msg})") from None
        except RecursionError:
            raise DataError(f"{self.path}: brackets are nested too deeply in it") from None
        is_by_language = self.direction.is_known and isinstance(loaded, dict) and self.direction.source in loaded
        yield from _texts_of(json_strings(content), content, self, is_by_language)


@DOCUMENTS.register("yaml")
class YamlStrings(SplicedDocument):
    """A YAML file of strings by their keys; its values are texts."""

    endings = (".yaml", ".yml")

    def find(self, content: str) -> Iterator[Text]:
        source = re.compile(rf"""^["']?{re.escape(self.direction.source)}["']?\s*:""", re.MULTILINE)
        is_by_language = self.direction.is_known and source.search(content) is not None
        try:
            yield from _texts_of(_yaml_strings(content), content, self, is_by_language)
        except yaml.YAMLError as error:
            line = getattr(getattr(error, "problem_mark", None), "line", 0) + 1
            raise DataError(f"{self.path}:{line}: not YAML ({getattr(error, 'problem', error)})") from None
