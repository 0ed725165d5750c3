"""Messages of programs (gettext): PO files, and their templates."""

import re
from collections.abc import Iterator

import regex

from tolka.documents.base import DOCUMENTS
from tolka.documents.spliced import SplicedDocument
from tolka.documents.strings import CODE, string_texts
from tolka.documents.text import EDIT, Text
from tolka.errors import DataError
from tolka.system.package_data import table_beside
from tolka.text.readers.gettext import ESCAPED_CHARACTERS, Message, PluralRule, declared_codec, messages, plural_rule
from tolka.text.scripts import UNSPACED, plain_code

_FORMAT = re.compile(r"[\s,](?:c|objc|php|perl|python|lua|awk|gcc-internal|javascript|tcl)-format")
_DIRECTIVE = re.compile(
    r"%(?:\d+\$|\(\w+\))?[-+ 0#'I]*(?:\d+|\*)?(?:\.(?:\d*|\*))?(?:hh?|ll?|[qjztL])?(?:[a-zA-Z%]|<PRI\w+>)"
)
_KEPT = re.compile(rf"(</?[A-Za-z][^<>]*>|{_DIRECTIVE.pattern})")
# With its key: before a word or inside of one, but not in file_name, R&D and &amp;.
_ACCELERATOR = regex.compile(
    r"(?<![\w&])[_&]\p{L}(?!\w+;) | (?<=\p{L})&\p{Ll}(?!\w+;) | (?<=\b\p{Lu}\p{Ll}*)_\p{Ll}", regex.VERBOSE
)
_LABEL = re.compile(r"[^\n]{1,60}(?<![.!])|[^\n]{1,60}\.\.\.")
_FIRST_LETTER = regex.compile(r"(?<![%\w{$<&(])\p{L}")
_UNTYPED = regex.compile(rf"[{UNSPACED}\p{{Hangul}}]")  # letters that no key has
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
            if message.is_header and "msgstr" in message.places:
                yield self._header(message, content)
            elif message.texts.get("msgid") and "msgstr" in "".join(message.places):
                yield from self._message(message, content)

    def _header(self, message: Message, content: str) -> Text:
        """Return what changes in the header, and learn its plural forms."""
        (start, end), target = message.places["msgstr"], self.direction.target
        header, usual = content[start:end], ""
        if self._codec != "utf-8" or self.direction.is_known:
            header = re.sub(r"charset=(?!utf-?8\b)[\w.:-]+", "charset=UTF-8", header, flags=re.IGNORECASE)
        if self.direction.is_known:
            named = re.search(r"Language: *([\w@.-]+)", header)
            # A template may have the language of its messages.
            if named and plain_code(named[1].split("@")[0]) not in map(plain_code, self.direction):
                raise DataError(
                    f"{self.path}: its header says Language: {named[1]}, and the model translates into {target}; "
                    "correct it if it is wrong, or take another model"
                )
            rules = {code: rule for rule, codes in table_beside(__file__).items() for code in codes.split()}
            usual = f"Plural-Forms: {rules.get(target) or rules.get(plain_code(target), '')}"
            header = re.sub(r"Language: *(?=\\n)", f"Language: {target.replace('-', '_')}", header)
            header = re.sub(r"Plural-Forms: *(?:nplurals=INTEGER; plural=EXPRESSION;)?(?=\\n)", usual, header)
            if "Plural-Forms:" not in header and "msgid_plural" in content:
                header += f'{self._newline}"{usual}\\n"'
        self._rule = plural_rule(message.texts["msgstr"]) or plural_rule(usual)
        return Text([], start, end, header, reason=EDIT)

    def _message(self, message: Message, content: str) -> Iterator[Text]:
        texts, flags, newline = message.texts, message.flags, self._newline
        keys = [key for key in message.places if key.startswith("msgstr")]
        start, end = message.places[keys[0]][0], message.places[keys[-1]][1]
        if "msgid_plural" in texts:
            keys = [f"msgstr[{number}]" for number in range(self._rule.forms if self._rule else len(keys))]
        sources = [_source(texts, number, self._rule) for number in range(len(keys))]
        reasons = {
            "fuzzy: a person must decide": message.is_fuzzy,
            "translated already": all(map(texts.get, keys)),
            CODE: "\0" in "".join(sources),
        }
        if reason := next((reason for reason, is_so in reasons.items() if is_so), ""):
            yield Text([texts["msgid"]], start, end, content[start:end], reason=reason)
            return

        def quote(value: str) -> str:
            written = ""
            for key, source, translation in zip(keys, sources, value.split("\0"), strict=True):
                form = texts.get(key) or _finished(source, translation, flags)
                lines = [f'"{line.translate(_ESCAPES)}"' for line in _LINE.findall(form) if line]
                written += f"{newline}{key} " if written else ""
                written += newline.join(lines if len(lines) == 1 else ['""', *lines])
            return written

        # With a NUL between the forms, as in the compiled file.
        read = "\0".join(source.replace(mark := _accelerator(source), mark[1:], 1) for source in sources)
        of_format = (_KEPT, lambda text: text.replace("%", "%%")) if _FORMAT.search(flags) else ()
        yield from string_texts(read, start, content[start:end], quote, *of_format)


def _source(texts: dict[str, str], number: int, rule: PluralRule | None) -> str:
    """Return what a form translates: that of one thing msgid, and the others msgid_plural."""
    one, several, singular = texts["msgid"], texts.get("msgid_plural", texts["msgid"]), rule.singular if rule else 0
    # In some languages the form of one thing is also that of 21 or 101, and says which.
    is_for_many = rule is not None and singular in (rule.form(21), rule.form(101))
    lacks_number = any(one.count(sign) < several.count(sign) for sign in "%{")
    return several if number != singular or (is_for_many and lacks_number) else one


def _accelerator(label: str) -> str:
    """Return the mark of a label's key with that key, as _F in _File; "" if it has none."""
    found = _ACCELERATOR.findall(label) if _LABEL.fullmatch(label) else []
    return found[0] if len(found) == 1 else ""


def _finished(source: str, written: str, flags: str) -> str:
    """Return a translation whose directives are in order, or say their numbers, and that has its accelerator."""
    before, after = ([each for each in _DIRECTIVE.findall(text) if each != "%%"] for text in (source, written))
    if _FORMAT.search(flags) and before != after and not any(set("$(*") & set(each) for each in before):
        left, numbered = [*before], list[str]()
        for each in after:
            number = left.index(each)
            left[number] = ""
            numbered.append(f"%{number + 1}${each[1:]}")
        order = iter(before if "python-format" in flags else numbered)
        written = _DIRECTIVE.sub(lambda match: match[0] if match[0] == "%%" else next(order), written)
    if not (accelerator := _accelerator(source)):
        return written
    if _UNTYPED.search(written):
        return re.sub(r"(?:\.\.\.|…|[:：])?\Z", rf"({accelerator.upper()})\g<0>", written, count=1)
    return str(_FIRST_LETTER.sub(rf"{accelerator[0]}\g<0>", written, count=1))
