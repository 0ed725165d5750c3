"""Messages of programs (gettext): PO files, and their templates."""

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import regex

from tolka.documents.base import DOCUMENTS
from tolka.documents.strings import CODE, StringDocument, StringValue, pieces_of
from tolka.documents.text import EDIT, Text
from tolka.system.package_data import table_beside
from tolka.text.placeholders import placeholders
from tolka.text.readers.gettext import ESCAPED_CHARACTERS, Message, declared_codec, messages, plural_rule
from tolka.text.scripts import UNSPACED, plain_code

_FIELDS = {
    "charset": re.compile(r"charset=(?!utf-?8\b)([\w.:-]+)", re.IGNORECASE),
    "language": re.compile(r'"Language:( *)\\n'),
    "plural forms": re.compile(r"Plural-Forms:( *(?:nplurals=INTEGER; plural=EXPRESSION;)?)\\n"),
}
_MANY = 5  # of the numbers below 1000: a form for as many has a number of things in it (as in msgfmt -c)
_MOST_FORMS = 10
# Formats by their flags, and their parts (xgettext's manual, section 15.3): printf's, which %2$s may number, and braces.
_FORMAT = re.compile(
    r"[\s,](?:(?P<braces>python-brace|csharp|c\+\+)|(?P<numbered>c|objc|php|perl)"
    r"|python|lua|awk|g[cf]c-internal|javascript|object-pascal|tcl|elisp)-format"
)
_PRINTF = re.compile(
    r"%(?:\d+\$|\(\w+\))?[-+ 0#'I]*(?:\d+|\*)?(?:\.(?:\d*|\*))?(?:hh?|ll?|[qjztL])?(?:[a-zA-Z%]|<PRI\w+>)"
)
_BRACES = re.compile(r"\{\{|\}\}|\{[^{}]*\}")
_MARK = re.compile("\uffff(\\d+)\uffff")  # of a directive
_KEPT = re.compile("(<[^<>]*\uffff[^<>]*>|\uffff\\d+\uffff)")
# Before a word or inside of one, but not in file_name, R&D and &amp;.
_ACCELERATOR = regex.compile(
    r"(?<![\w&])[_&](?=\p{L})(?!\w+;) | (?<=\p{L})&(?=\p{Ll})(?!\w+;) | (?<=\b\p{Lu}\p{Ll}*)_(?=\p{Ll})", regex.VERBOSE
)
_LABEL = re.compile(r"[^\n]{1,60}(?<![.!])|[^\n]{1,60}\.\.\.")
_LETTER = regex.compile(rf"(?P<untyped>[{UNSPACED}\p{{Hangul}}])|\p{{L}}")
_LINE = re.compile(r"[^\n]{0,76}(?: +|\n|\Z)|[^\n ]+(?: +|\n|\Z)")
_ESCAPES = str.maketrans({meant.decode(): f"\\{name.decode()}" for name, meant in ESCAPED_CHARACTERS.items()})
_ESCAPES |= str.maketrans({"\\": "\\\\", '"': '\\"'})


@dataclass(frozen=True)
class _Plurals:
    """The plural forms of a language. count: 0 = as many as a message has. singular: the number of that of one thing.

    is_for_many: whether this one is also for 21 things, as in Russian.
    """

    count: int = 0
    singular: int = 0
    is_for_many: bool = False


@DOCUMENTS.register("po")
class GettextCatalogue(StringDocument):
    """Messages, whose translations are filled in where there are none; it is written in UTF-8.

    Source: GNU gettext's manual, sections 3 (PO files) and 11.2.6 (plural forms).
    """

    endings = (".po", ".pot")

    def declared(self, raw: bytes) -> str:
        return declared_codec(raw) or "utf-8"

    def _encoded(self, written: str) -> bytes:
        return written.encode()

    def find(self, content: str) -> Iterator[Text]:
        self._newline = "\r\n" if "\r\n" in content else "\n"
        plurals = _Plurals()
        for message in messages(content.split("\n"), str(self.path), self.limit):
            for start, end in message.obsolete:
                yield Text([], start, end, content[start:end], reason="obsolete")
            if message.is_header and "msgstr" in message.places:
                plurals = yield from self._header(message, content)
            elif message.texts.get("msgid"):
                yield from self._message(message, content, plurals)

    def _header(self, message: Message, content: str) -> Generator[Text, None, _Plurals]:
        """Yield what changes in the header; return the plural forms that it names then."""
        (start, end), target, rules = message.places["msgstr"], self.direction.target, table_beside(__file__)
        rule_of = {code: rule for rule, codes in rules.items() for code in codes.split()}
        rule, usual = plural_rule(message.texts["msgstr"]), rule_of.get(target) or rule_of.get(plain_code(target), "")
        values = {"charset": "UTF-8", "language": f" {target.replace('-', '_')}", "plural forms": f" {usual}"}
        if not self.direction.is_known:
            values = {} if self._codec == "utf-8" else {"charset": "UTF-8"}
        found = [
            (match.span(1), values[name]) for name in values if (match := _FIELDS[name].search(content, start, end))
        ]
        for (first, last), value in sorted(found):
            yield Text([], first, last, value, reason=EDIT)
        if self.direction.is_known and not rule and usual:
            if "Plural-Forms:" not in message.texts["msgstr"] and "msgid_plural" in content:
                yield Text([], end, end, f'{self._newline}"Plural-Forms: {usual}\\n"', reason=EDIT)
            rule = plural_rule(f"Plural-Forms: {usual}")
        if rule is None:
            return _Plurals()
        times = sum(rule.form(number) == rule.singular for number in range(1000))
        return _Plurals(rule.count, rule.singular, times >= _MANY)

    def _message(self, message: Message, content: str, plurals: _Plurals) -> Iterator[Text]:
        texts = message.texts
        keys = [key for key in texts if key.startswith("msgstr")]
        if not keys or not all(key in message.places for key in keys):
            return
        if "msgid_plural" in texts:
            keys = [f"msgstr[{number}]" for number in range(min(plurals.count, _MOST_FORMS) or len(keys))]
        places = [message.places[key] for key in message.places if key.startswith("msgstr")]
        start, end = min(places)[0], max(places)[1]
        sources = [_source(texts, number, plurals) for number in range(len(keys))]
        if reason := _reason(message, keys):
            yield Text([texts["msgid"]], start, end, content[start:end], reason=reason)
            return
        directives, pieces = _Directives(message.flags), list[str | Text]()
        for key, source in zip(keys, sources, strict=True):
            # With a NUL between forms, as in the compiled file.
            pieces += ["\0"] * bool(pieces)
            pieces += [texts[key]] if texts.get(key) else _pieces(directives, source, start)
        quote = partial(_strings, directives, self._newline)
        yield from StringValue([], start, end, content[start:end], pieces=pieces, quote=quote).with_texts()


def _source(texts: Mapping[str, str], number: int, plurals: _Plurals) -> str:
    """Return what a form translates: the form for one thing msgid, and the others msgid_plural."""
    one, other = texts["msgid"], texts.get("msgid_plural", texts["msgid"])
    if number != plurals.singular and "msgid_plural" in texts:
        return other
    numbers = [{*_PRINTF.findall(source), *(match[0] for match in placeholders(source))} for source in (one, other)]
    return other if plurals.is_for_many and numbers[1] - numbers[0] else one


def _reason(message: Message, keys: Sequence[str]) -> str:
    """Return why a message stays as it is; "" if a translation is missing."""
    if message.is_fuzzy:
        return "fuzzy: a person must decide"
    if all(message.texts.get(key) for key in keys):
        return "translated already"
    sources = message.texts["msgid"] + message.texts.get("msgid_plural", "")
    return CODE if "\0" in sources or "\uffff" in sources else ""


class _Directives:
    """The directives of a format string, in which marks stand for them, so that their order is known."""

    def __init__(self, flags: str) -> None:
        self._format, self._found = _FORMAT.search(flags), list[str]()
        self._pattern = _BRACES if self._format and self._format["braces"] else _PRINTF

    def marked(self, source: str) -> str:
        """Return a source with marks."""

        def mark(match: re.Match[str]) -> str:
            self._found.append(match[0])
            return f"\uffff{len(self._found) - 1}\uffff"

        return self._pattern.sub(mark, source) if self._format else source

    def read(self, marked: str) -> str:
        """Return a string with its directives."""
        return _MARK.sub(lambda match: self._found[int(match[1])], marked)

    def escape(self, text: str) -> str:
        """Return characters of a translation so that they are no directives."""
        signs = "[{}]" if self._pattern is _BRACES else "%"
        return re.sub(signs, r"\g<0>\g<0>", text) if self._format else text

    def written(self, marked: str) -> str:
        """Return a translation with its directives; if they change places, numbered or in the order of the source."""
        order = [number for each in _MARK.findall(marked) if self._found[number := int(each)] != "%%"]
        of_source = sorted(order)
        if order != of_source and not any(set("${(") & set(self._found[number]) for number in order):
            assert self._format
            for argument, number in enumerate(of_source):
                here = self._found[number]
                here = (
                    f"%{argument + 1}${here[1:]}"
                    if self._format["numbered"]
                    else self._found[of_source[order.index(number)]]
                )
                marked = marked.replace(f"\uffff{number}\uffff", here)
        return self.read(marked)


def _pieces(directives: _Directives, source: str, place: int) -> Iterator[str | Text]:
    """Yield the texts of a source and what is between them. The accelerator of a label is not read by the model."""
    marked = directives.marked(source)
    found = _ACCELERATOR.search(marked) if _LABEL.fullmatch(marked) else None
    if found and marked.count(found[0]) == 1 and not _is_inside(found.start(), marked):
        plain = marked[: found.start()] + marked[found.end() :]
        pieces = list(pieces_of(plain, place, _KEPT, directives.read, directives.escape))
        texts = [piece for piece in pieces if isinstance(piece, Text)]
        if len(texts) == 1:
            texts[0].written = marked.strip()
            texts[0].finish = partial(_with_accelerator, found[0] + marked[found.end()])
            yield from pieces
            return
    yield from pieces_of(marked, place, _KEPT, directives.read, directives.escape)


def _is_inside(place: int, text: str) -> bool:
    """Return whether a character is one of a placeholder."""
    return any(match.start() <= place < match.end() for match in [*placeholders(text), *_MARK.finditer(text)])


def _with_accelerator(accelerator: str, written: str) -> str:
    """Return a label with its mark before the first letter, or behind it, (_F), where no key has that letter."""
    first = next((match for match in _LETTER.finditer(written) if not _is_inside(match.start(), written)), None)
    if first is None or first["untyped"]:
        return re.sub(r"(?:\.\.\.|…|[:：])?\Z", lambda match: f"({accelerator.upper()}){match[0]}", written, count=1)
    return written[: first.start()] + accelerator[0] + written[first.start() :]


def _strings(directives: _Directives, newline: str, value: str) -> str:
    """Return the strings of all forms as xgettext writes them."""
    forms = list[str]()
    for form in value.split("\0"):
        lines = [f'"{line.translate(_ESCAPES)}"' for line in _LINE.findall(directives.written(form)) if line]
        forms.append(newline.join(lines if len(lines) == 1 else ['""', *lines]))
    return "".join(f"{newline}msgstr[{number}] {form}" if number else form for number, form in enumerate(forms))
