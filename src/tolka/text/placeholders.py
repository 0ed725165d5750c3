"""Placeholders: parts of a text that its translation has as they are, such as %s, {name}, addresses and tags."""

import re
from collections.abc import Iterator

import regex

_PLACEHOLDER = regex.compile(
    r"""
    (?:https?://|www\.)[!-~]*[A-Za-z0-9/]               # addresses of pages, without a particle that follows
    | (?<![A-Za-z0-9._+-])[A-Za-z0-9._+-]++@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+  # e-mail
    | (?<![\w.@/])@[A-Za-z_]\w*+ | (?<![\w&\#/])\#(?=\p{L})\w++  # @user, #tag
    | \{\{ (?![\w.]{1,60}\}\}) | \}\}                   # of templates with arguments, where {{name}} is one placeholder
    | \$?\{\{?[^{}\s]{0,60}\}?\}                        # {name} ${name} {{name}} {0} {}
    | (?<![\w$])\$(?!(?:US|AU|CA|NZ|HK)D?\b)[A-Za-z_]\w*+  # $NAME, but not $US
    | %\(\w++\)[-+0\ \#]*+\d*+(?:\.\d++)?[a-zA-Z]       # %(name)s
    | %(?:\d++\$)?[-+0\#]*+\d*+(?:\.\d+)?(?:hh?|ll?)?[sdiufgxXc@](?![a-zA-Z])  # %s %d %1$s %.2f, but not 100 % safe
    | %\d+(?![A-Za-z0-9]) | %[A-Z][A-Z_]+               # %1 %PRODUCTNAME
    | (?<!\w)__[A-Za-z0-9]\w{0,60}?__(?!\w) | @@\w{1,60}@@  # __NAME__ @@NAME@@
    | <<[^<>\s]{1,60}>> | ｟[^｟｠]{0,60}｠              # <<name>> ｟name｠
    | </?(?:[A-Za-z][\w:-]*|\d{1,2})(?:\s[^<>]*)?/?>   # tags, of i18next <0> as well
    | \[\[ | \]\]                                       # links of wikis, whose text is translated
    | \[/[A-Za-z]{1,20}\] | \[([A-Za-z]{1,20})\](?=[^\[]{0,200}\[/\1\])  # [LINK]text[/LINK]
    | (?<![^\s"'(=])(?:~|[A-Za-z]:)?(?:[/\\][\w-]++(?:\.[\w-]++)*+){2,}  # /usr/bin, C:\Users\me
    | &(?:[A-Za-z]{2,8}|\#\d{1,6});                     # references such as &nbsp;
    | (?:\p{Emoji_Presentation}|\p{Extended_Pictographic}\N{VARIATION SELECTOR-16})
    """,
    regex.VERBOSE,
)
# Every placeholder has one of these; most lines have none, and are not searched with the pattern above.
_MARK = re.compile(
    r"[@\#{}$%_<\[\]/\\&｟\u203c-\u2bff\u3030-\u3299\N{VARIATION SELECTOR-16}\U0001f000-\U0001faff]|www\."
)


def placeholders(text: str) -> Iterator[regex.Match[str]]:
    """Return the matches of the placeholders in a text, in order."""
    return _PLACEHOLDER.finditer(text) if _MARK.search(text) else iter(())


def without_placeholders(text: str) -> str:
    """Return the text with a blank in place of each placeholder."""
    return _PLACEHOLDER.sub(" ", text) if _MARK.search(text) else text
