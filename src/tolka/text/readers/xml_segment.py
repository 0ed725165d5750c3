"""The text of a segment of a file of translations, without its inline codes."""

import re
from html.entities import html5

from tolka.text.lines import LineLimit

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


class RefusedError(Exception):
    """XML that is refused because no file of translations needs it."""


class SegmentText:
    """The text of a segment, without its inline codes. flaw: what is wrong with it, or ""."""

    # Where a code was that is neither a break nor formatting: XML cannot have this character.
    _JOINT = "\0"

    def __init__(self, limit: LineLimit, name: str = "a segment") -> None:
        self.flaw = ""
        self._parts: list[str] = []
        self._codes: list[tuple[str, str, list[str]]] = []  # nested codes: element, type and content of each
        self._name, self._limit, self._characters_left = name, limit, limit.max_bytes

    def add(self, text: str) -> None:
        """Add what expat has parsed."""
        (self._codes[-1][2] if self._codes else self._parts).append(text)
        self._characters_left -= len(text)
        if self._characters_left < 0:
            raise RefusedError(self._limit.complaint(self._name))

    def open_code(self, element: str, kind: str) -> None:
        """Begin an inline code, whose content is left out. kind: its type."""
        self._codes.append((element, kind.lower(), []))

    def close_code(self) -> None:
        """End the inline code that was begun last."""
        element, kind, content = self._codes.pop()
        if self._codes:
            return
        code = "".join(content)
        # A break, a tab or an image is a blank to a reader, and formatting nothing: H<b>e</b>llo is one word. A code
        # that stands alone is a placeholder, or else parts two letters, and leaves no blank elsewhere.
        if kind in _BREAK_TYPES or _BREAK.match(code):
            self._parts.append(" ")
        elif element in _LONE_CODES and kind not in _FORMATTING_TYPES and not _FORMATTING.match(code):
            self._parts.append(code.strip() if _PLACEHOLDER.fullmatch(code.strip()) else self._JOINT)

    def add_entity(self, name: str) -> None:
        """Add an undeclared entity: HTML's, or else the segment is flawed."""
        meaning = html5.get(f"{name};")
        self.add(meaning or f"&{name};")
        if not self._codes and not meaning:
            self.flaw = "undeclared entity"

    def content(self) -> str:
        """Return the text with single blanks."""
        text = "".join(self._parts)
        if self._JOINT in text:
            text = _BETWEEN_LETTERS.sub(" ", text).replace(self._JOINT, "")
        return single_spaced(text)


def single_spaced(text: str) -> str:
    """Return the text with a single blank for what XML takes for one; a no-break space is a character as any other."""
    return " ".join(re.findall(r"[^ \t\r\n]+", text))
