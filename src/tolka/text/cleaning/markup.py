"""Recognition and removal of tags and character references of HTML and XML."""

import html
import re
from html.entities import html5

_ROUNDS = 5  # text may be escaped twice, `&amp;lt;`; more often than this it is not text
_REFERENCE = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_VALUE = r"""\\?"[^"]*"|\\?'[^']*'|[^\s"'<>=]+"""
_FLAGS = "checked|compact|defer|disabled|hidden|multiple|noshade|nowrap|readonly|required|selected"
# A tag has attributes, not words: `if a<b and c>d` is none. No comment begins inside a comment.
_TAG = re.compile(
    rf"<(?P<close>/?)(?P<name>[A-Za-z][\w:.-]*)(?P<rest>(?:\s+(?:[\w:.-]+\s*=\s*(?:{_VALUE})|(?:{_FLAGS})\b))*\s*/?)>"
    r"|<!--(?:(?!<!--).)*?-->|<!\[CDATA\[|\]\]>|<![A-Z]{2,}\s[^<>]*>|<\?[A-Za-z][^<>]*\?>"
)
_BLANKS = re.compile(r"\s{2,}|[^\S ]")  # also a single one that is not a space, such as the line feed of &#10;
# Elements of HTML inside of words and beside punctuation marks, where a reader sees no blank ...
_INLINE = re.compile(
    "a|abbr|acronym|b|bdi|bdo|big|cite|del|dfn|em|font|i|ins|kbd|mark|nobr|q|s|samp|small|span|strike|strong|sub|sup|"
    "tt|u|wbr",
    re.IGNORECASE,
)
# ... and others whose start alone is a tag. `<title>` or `<file>` without its end may be a placeholder.
_BLOCK = re.compile(
    "blockquote|body|br|center|dd|div|dl|dt|h[1-6r]|head|html|img|li|ol|p|pre|table|tbody|td|th|thead|tr|ul",
    re.IGNORECASE,
)


def has_markup(text: str) -> bool:
    """Return whether a text has a tag, or what looks like a character reference."""
    return bool(_REFERENCE.search(text)) or _without_tags(text) != text


def without_markup(text: str) -> str:
    """Return the text as a page shows it: references replaced, then tags removed, until nothing changes."""
    result = text
    for _ in range(_ROUNDS):
        # An unknown reference (&name;) stays as it is.
        known = _REFERENCE.sub(
            lambda it: html.unescape(it[0]) if it[0][1] == "#" or it[0][1:] in html5 else it[0], result
        )
        before, result = result, _without_tags(known)
        if result == before:
            break
    return text if result == text else _BLANKS.sub(" ", result).strip()


def _without_tags(text: str) -> str:
    if "<" not in text and "]]>" not in text:
        return text
    # `<emph>OK</emph>` has tags, whatever their name; `Use <Enter>` has none.
    closed = {match["name"] for match in _TAG.finditer(text) if match["close"]}

    def removed(tag: re.Match[str]) -> str:
        name = tag["name"] or ""
        if _INLINE.fullmatch(name):
            return ""
        # A blank, as the words before and after another tag are two to a reader.
        is_known = tag["close"] or tag["rest"] or name in closed or _BLOCK.fullmatch(name)
        return " " if is_known or not name else tag[0]

    return _TAG.sub(removed, text)
