"""Messages of programs (gettext): PO files, and their templates."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

import regex

from tolka.documents.base import DOCUMENTS
from tolka.documents.spliced import SplicedDocument
from tolka.documents.strings import CODE, pieces_of, string_texts
from tolka.documents.text import EDIT, Text
from tolka.system.package_data import table_beside
from tolka.text.placeholders import placeholders
from tolka.text.readers.gettext import ESCAPED_CHARACTERS, Message, PluralRule, declared_codec, messages, plural_rule
from tolka.text.scripts import UNSPACED, plain_code

_FIELDS = {
    "charset": re.compile(r"charset=(?!utf-?8\b)([\w.:-]+)", re.IGNORECASE),
    "language": re.compile(r'"Language:( *)\\n'),
    "plural forms": re.compile(r"Plural-Forms:( *(?:nplurals=INTEGER; plural=EXPRESSION;)?)\\n"),
}
# Formats by their flags (gettext's manual, section 15.3); of some, %2$s is the second argument.
_FORMAT = re.compile(
    r"[\s,](?:(?P<numbered>c|objc|php|perl)|python|lua|awk|g[cf]c-internal|javascript|object-pascal|tcl|elisp)-format"
)
_DIRECTIVE = re.compile(
    r"%(?:\d+\$|\(\w+\))?[-+ 0#'I]*(?:\d+|\*)?(?:\.(?:\d*|\*))?(?:hh?|ll?|[qjztL])?(?:[a-zA-Z%]|<PRI\w+>)"
)
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


@DOCUMENTS.register("po")
class GettextCatalogue(SplicedDocument):
    """Messages, whose translations are filled in where there are none; it is written in UTF-8.

    Source: GNU gettext's manual, sections 3 (PO files) and 11.2.6 (plural forms).
    """

    endings = (".po", ".pot")
    _rule: PluralRule | None

    def declared(self, raw: bytes) -> str:
        return declared_codec(raw) or "utf-8"

    def _encoded(self, written: str) -> bytes:
        return written.encode()

    def find(self, content: str) -> Iterator[Text]:
        self._newline, self._rule = "\r\n" if "\r\n" in content else "\n", None
        for message in messages(content.split("\n"), str(self.path), self.limit):
            for start, end in message.obsolete:
                yield Text([], start, end, content[start:end], reason="obsolete")
            if message.is_header and "msgstr" in message.places:
                yield from self._header(message, content)
            elif message.texts.get("msgid") and "msgstr" in "".join(message.places):
                yield from self._message(message, content)

    def _header(self, message: Message, content: str) -> Iterator[Text]:
        """Yield what changes in the header, and learn its plural forms."""
        (start, end), header, target = message.places["msgstr"], message.texts["msgstr"], self.direction.target
        rule_of = {code: rule for rule, codes in table_beside(__file__).items() for code in codes.split()}
        usual = rule_of.get(target) or rule_of.get(plain_code(target), "")
        values = {"charset": "UTF-8", "language": f" {target.replace('-', '_')}", "plural forms": f" {usual}"}
        if not self.direction.is_known:
            values, usual = {} if self._codec == "utf-8" else {"charset": "UTF-8"}, ""
        found = [
            (match.span(1), values[name]) for name in values if (match := _FIELDS[name].search(content, start, end))
        ]
        if usual and "Plural-Forms:" not in header and "msgid_plural" in content:
            found.append(((end, end), f'{self._newline}"Plural-Forms: {usual}\\n"'))
        for (first, last), value in sorted(found):
            yield Text([], first, last, value, reason=EDIT)
        self._rule = plural_rule(header) or plural_rule(f"Plural-Forms: {usual}")

    def _message(self, message: Message, content: str) -> Iterator[Text]:
        texts, keys = message.texts, [key for key in message.places if key.startswith("msgstr")]
        start, end = message.places[keys[0]][0], message.places[keys[-1]][1]
        if "msgid_plural" in texts:
            keys = [f"msgstr[{number}]" for number in range(self._rule.count if self._rule else len(keys))]
        is_reserved = any(sign in texts["msgid"] + texts.get("msgid_plural", "") for sign in "\0\uffff")
        reasons = {
            "fuzzy: a person must decide": message.is_fuzzy,
            "translated already": all(map(texts.get, keys)),
            CODE: is_reserved,
        }
        if reason := next((reason for reason, is_so in reasons.items() if is_so), ""):
            yield Text([texts["msgid"]], start, end, content[start:end], reason=reason)
            return
        directives, pieces = _Directives(message.flags), list[str | Text]()
        for number, key in enumerate(keys):
            # With a NUL between forms, as in the compiled file.
            pieces += ["\0"] * bool(pieces)
            pieces += [texts[key]] if texts.get(key) else _pieces(directives, _source(texts, number, self._rule), start)
        yield from string_texts(pieces, start, end, content, partial(_strings, directives, self._newline))


def _source(texts: Mapping[str, str], number: int, rule: PluralRule | None) -> str:
    """Return what a form translates: that of one thing msgid, and the others msgid_plural."""
    one, several = texts["msgid"], texts.get("msgid_plural", texts["msgid"])
    if number != (rule.singular if rule else 0):
        return several
    # In some languages the form of one thing is also that of 21 or 101, and says which.
    is_for_many = rule is not None and rule.singular in (rule.form(21), rule.form(101))
    found = [{*_DIRECTIVE.findall(text), *(match[0] for match in placeholders(text))} for text in (one, several)]
    return several if is_for_many and found[1] - found[0] else one


class _Directives:
    """The directives of a format string, in which marks stand for them, so that their order is known."""

    def __init__(self, flags: str) -> None:
        self._format, self._found = _FORMAT.search(flags), list[str]()

    def marked(self, source: str) -> str:
        """Return a source with marks."""

        def mark(match: re.Match[str]) -> str:
            self._found.append(match[0])
            return f"\uffff{len(self._found) - 1}\uffff"

        return _DIRECTIVE.sub(mark, source) if self._format else source

    def read(self, marked: str) -> str:
        """Return a string with its directives."""
        return _MARK.sub(lambda match: self._found[int(match[1])], marked)

    def escape(self, text: str) -> str:
        """Return characters of a translation so that they are no directives."""
        return text.replace("%", "%%") if self._format else text

    def written(self, marked: str) -> str:
        """Return a translation with its directives; if they change places, numbered or in the order of the source."""
        order = [number for each in _MARK.findall(marked) if self._found[number := int(each)] != "%%"]
        in_order, instead = sorted(order), dict[int, str]()
        if self._format and order != in_order and not any(set("$(*") & set(self._found[number]) for number in order):
            instead = {number: self._found[other] for number, other in zip(order, in_order, strict=True)}
            if self._format["numbered"]:
                instead = {number: f"%{place}${self._found[number][1:]}" for place, number in enumerate(in_order, 1)}
        return self.read(_MARK.sub(lambda match: instead.get(int(match[1]), match[0]), marked))


def _pieces(directives: _Directives, source: str, place: int) -> Iterator[str | Text]:
    """Yield the texts of a source and what is between them. The accelerator of a label is not read by the model."""
    marked = directives.marked(source)
    found = _ACCELERATOR.search(marked) if _LABEL.fullmatch(marked) else None
    is_label = found is not None and marked.count(found[0]) == 1
    plain = marked.replace(found[0], "") if found and is_label else marked
    pieces = [*pieces_of(plain, place, _KEPT, directives.read, directives.escape)]
    if found and is_label and sum(isinstance(piece, Text) for piece in pieces) == 1:
        finish = partial(_with_accelerator, found[0], marked[found.end()])
        label = marked.strip()
        pieces = [replace(each, written=label, finish=finish) if isinstance(each, Text) else each for each in pieces]
    yield from pieces


def _with_accelerator(mark: str, key: str, written: str) -> str:
    """Return a label with its mark before the first letter, or behind it, (_F), where no key has that letter."""
    inside = {place for match in [*placeholders(written), *_MARK.finditer(written)] for place in range(*match.span())}
    first = next((match for match in _LETTER.finditer(written) if match.start() not in inside), None)
    if first is None or first["untyped"]:
        return re.sub(r"(?:\.\.\.|…|[:：])?\Z", lambda match: f"({mark}{key.upper()}){match[0]}", written, count=1)
    return written[: first.start()] + mark + written[first.start() :]


def _strings(directives: _Directives, newline: str, value: str) -> str:
    """Return the strings of all forms as xgettext writes them."""
    forms = list[str]()
    for form in value.split("\0"):
        lines = [f'"{line.translate(_ESCAPES)}"' for line in _LINE.findall(directives.written(form)) if line]
        forms.append(newline.join(lines if len(lines) == 1 else ['""', *lines]))
    return "".join(f"{newline}msgstr[{number}] {form}" if number else form for number, form in enumerate(forms))
