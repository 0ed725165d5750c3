"""The text of a segment of a file of translations, without its inline codes."""

import re
from collections.abc import Collection, Iterator
from xml.etree.ElementTree import Element

# Codes that stand alone; the others (bpt, ept, it, hi, g, bx, sc ...) are begin or end of what they mark.
_LONE_CODES = frozenset({"ph", "x", "ut"})
# Types of TMX 1.4b and XLIFF 1.2, and what Trados, memoQ and OmegaT call theirs.
_BREAK_TYPES = frozenset(
    {"lb", "pb", "cb", "image", "struct", "x-tab", "x-lb", "x-br", "x-img", "x-image", "x-html-br"}
)
_BREAK_TYPES |= frozenset({"br", "img", "tab", "linebreak", "x-linebreak", "x-line_break", "fmt:br"})
_FORMATTING_TYPES = frozenset(
    {"bold", "italic", "underlined", "ulined", "dulined", "font", "color", "scap", "link", "fmt", "b", "i", "u"}
    | {"x-b", "x-i", "x-u", "x-a", "x-em", "x-strong", "x-span"}
)
# Content of codes: tags of HTML and of office documents, controls of RTF, and escaped or real white space.
_BREAK = re.compile(
    r"\s*(?:</?(?:(?:\w+:)?(?:br|hr|p|div|li|[uo]l|t[drh]|table|h[1-6]|img|image|tab|line-break|lb|pb)|text:s)\b"
    r"|\\(?:[nt]$|r\\n|line\b|tab\b|par\b|page\b))|\s*[\n\t\r]\s*$",
    re.IGNORECASE,
)
_FORMATTING = re.compile(
    r"\s*(?:</?(?:b|i|u|s|em|strong|span|font|a|cf|sub|sup|small|big|tt|code|del|ins|mark)\b|\{?\\(?:b|i|ul|cs\d*|f)\d*\b"
    r"|\})",
    re.IGNORECASE,
)
# Text that both sides have: %s, %1$d, %(name)s, %name%, {0}, {{ name }}, ${name}, $name$.
_PLACEHOLDER = re.compile(
    r"%(?:\d+\$)?(?:\(\w+\))?[-+#0]*\d*(?:\.\d+)?[a-zA-Z@]|%\w+%|\$?\{\{?\s*[\w.]+\s*\}\}?|\$\w+\$"
)
_BETWEEN_LETTERS = re.compile(r"(?<=\w)\0+(?=\w)")


# Where a code was that is neither a break nor formatting: XML cannot have this character.
_JOINT = "\0"


def segment_text(segment: Element, codes: Collection[str]) -> str:
    """Return the text of a segment with single blanks, without its inline codes. codes: names of their elements."""
    text = "".join(_texts(segment, codes))
    return single_spaced(_BETWEEN_LETTERS.sub(" ", text).replace(_JOINT, ""))


def _texts(element: Element, codes: Collection[str]) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if child.tag in codes:
            yield _text_of_code(child)
        else:
            yield from _texts(child, codes)
        yield child.tail or ""


def _text_of_code(code: Element) -> str:
    """Return what stands in place of an inline code."""
    # A break, a tab or an image is a blank to a reader, and formatting nothing: H<b>e</b>llo is one word. A code that
    # stands alone is a placeholder, or else parts two letters, and leaves no blank elsewhere.
    kind = (code.get("subType") or code.get("ctype") or code.get("type", "")).removeprefix("xlf:").lower()
    content = "".join(code.itertext()) + (code.get("equiv-text") or code.get("equiv", ""))
    if kind in _BREAK_TYPES or _BREAK.match(content):
        return " "
    if code.tag not in _LONE_CODES or kind in _FORMATTING_TYPES or _FORMATTING.match(content):
        return ""
    return content.strip() if _PLACEHOLDER.fullmatch(content.strip()) else _JOINT


def single_spaced(text: str) -> str:
    """Return the text with a single blank for what XML takes for one; a no-break space is a character as any other."""
    return " ".join(re.findall(r"[^ \t\r\n]+", text))
