"""Inline markup of Markdown with its places, which the tokens of markdown-it-py lack."""

import re
from typing import Any, Literal

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

# What stays as it is. What stands at the beginning of a block or line takes the end of its line with it.
_KEPT = re.compile(
    r"""
    <(?P<link>[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]{0,2000} | [\w.!#$%&'*+/=?^`{|}~-]{1,64}@[\w.-]{1,255})>
    | <(?P<tag>code|kbd|samp|var|tt|math|svg|script|style)\b[^<>]{0,500}>(?P<code>.{0,2000}?)</(?P=tag)>
    | (?P<math>\$\$[^$]{1,1000}\$\$ | \$(?![\s$])[^$\n]{0,199}[^$\s\\]\$(?!\d) | \$[^$\s\\]\$(?!\d))
    | \{%.{0,500}?%\} | \{\{[<%].{0,500}?[>%]\}\} | (?P<value>\{\{[^{}]{0,200}\}\})  # of Jekyll and Hugo
    | \{[#.:][^{}\n]{0,200}\}                                      # anchors and attributes
    | (?<![^\n])\[\^[^\]\s]{1,100}\]:?[ \t]* | \[\^[^\]\s]{1,100}\]  # footnotes
    | \A\[[ xX]\]\s+ | \A\[![A-Za-z]{1,40}\][-+]?\s*              # task boxes, alerts
    | \A:[ \t]+ | (?P<emoji>(?<!\w):[a-z0-9_+-]{2,40}:(?!\w)) | ~{3,}  # definitions, :smile:
    """,
    re.VERBOSE | re.DOTALL,
)
# Of other dialects: a line that stays as it is (an admonition), and a footnote or definition, which begins a paragraph.
_LINE = re.compile(r"(?P<kept>:::|!!![ \t]+\w|\?\?\?\+?[ \t]+\w|\[TOC\])|\[\^[^\]\s]{1,100}\]:|:[ \t]")


class _State(StateInline):
    """A parse whose markup has in meta["start"] where it begins."""

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        start = self.pos - (ttype == "link_open")
        while ttype.endswith("break") and self.src[start - 1] == " ":
            start -= 1
        token = super().push(ttype, tag, nesting)
        if len(self.tokens) > 1 and self.tokens[-2].meta.get("start", -1) >= start:  # of one run of marks
            start = self.tokens[-2].meta["start"] + len(self.tokens[-2].content)
        token.meta["start"] = start
        return token


def parser() -> MarkdownIt:
    """Return a parser of blocks: CommonMark, with the tables and strikethrough of GitHub."""
    md = MarkdownIt("commonmark", {"maxNesting": 100}).enable(["table", "strikethrough"]).disable("autolink")
    md.core.ruler.enableOnly(["normalize", "block"])
    md.block.ruler.before("table", "line", _line, {"alt": ["paragraph", "reference", "blockquote"]})
    md.inline.ruler.before("text", "kept", _kept)
    return md


def _line(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    """Let a line of another dialect end the paragraph before it, and be no part of another one if it is kept."""
    match = _LINE.match(state.src, state.bMarks[line] + state.tShift[line])
    if match is None or not (silent or match["kept"]):
        return False
    if not silent:
        state.line = line + 1
    return True


def _kept(state: StateInline, silent: bool) -> bool:
    match = _KEPT.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        token = state.push("kept", "", 0)
        token.content = match[match.lastgroup] if match.lastgroup else ""
    state.pos = match.end()
    return True


def inline_tokens(content: str, md: MarkdownIt, env: Any) -> list[tuple[Token, int, int]]:
    """Return the markup and characters of a block, each with its place in it, without a gap. env: has references."""
    state = _State(content, md, env, [])
    md.inline.tokenize(state)
    for rule in md.inline.ruler2.getRules(""):
        rule(state)
    found, end = list[tuple[Token, int, int]](), len(content)
    for token in reversed(state.tokens):
        # Characters that are not escaped stand there as they are; two marks of emphasis become one.
        start = (
            end - len(token.content) if token.type == "text" else token.meta["start"] - (token.type == "strong_open")
        )
        if start < end:
            found.append((token, start, end))
        end = start
    return found[::-1]
