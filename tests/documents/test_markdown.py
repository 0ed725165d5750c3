"""Markdown: what its texts are, what stays, and that a translation is read as the same structure."""

import io
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tolka.documents.markdown import Markdown
from tolka.documents.placing import SoftAlignment, place
from tolka.documents.text import Node, Text
from tolka.errors import ConfigError


def document(content: str) -> Markdown:
    return Markdown(Path("page.md"), stream=io.BytesIO(content.encode()))


def sources(content: str) -> list[str]:
    return [text.source for text in document(content).texts() if not text.reason]


def kept(nodes: list[Node]) -> list[tuple[int, int]]:
    inside = [each for node in nodes for each in kept(node.children)]
    return inside + [(node.start, node.end) for node in nodes if node.kind == "kept"]


def upper(text: Text) -> str:
    """Return the source in capitals, except what stays as it is."""
    characters = list(text.source.upper())
    for start, end in kept(text.nodes):
        characters[start:end] = text.source[start:end]
    return "".join(characters)


def translated(content: str, translate: Callable[[Text], str] = upper) -> str:
    """Return a document whose every word is aligned to the one at its place."""
    page, written = document(content), b""
    for text in page.texts():
        if not text.reason:
            target = translate(text)
            sides = [[match.span() for match in re.finditer(r"\w+|[^\w\s]", side)] for side in (text.source, target)]
            size = len(sides[0]) == len(sides[1]) and len(sides[0])
            place(text, target, SoftAlignment(sides[0], sides[1], np.eye(size)) if size else None)
        written += page.write(text)
    return (written + page.end()).decode()


def structure(content: str) -> list[tuple[str, int, Counter[str]]]:
    """Return the blocks of a document, with the number of each markup inside of them."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(content)
    inline = [Counter(each.type for each in token.children or []) for token in tokens]
    for counts in inline:
        del counts["text"], counts["softbreak"]
    return [(token.type + token.markup, token.level, counts) for token, counts in zip(tokens, inline, strict=True)]


PAGE = """---
title: A page  # seen
path: /a/page
description: "Its \\"text\\""
---
# Heading {#anchor}

Some *soft* and **hard
words**, `code_x`, [a link](http://a.b/c_d "Its title") \\*star\\*, snake_case, 2 * 3, x&nbsp;y.

> [!NOTE]
> First line\\
> and *second* line[^1] with <b class="x">tag</b> and <kbd>Ctrl</kbd>.

- [ ] a task of
  two lines
- see [the guide] and ![a picture](p.png)

| Head | a \\| b `c\\|d` |
|------|------|
| cell | cell **e** |

[^1]: One note.
[^2]: Other note.

<p align="center">
  <img alt="A logo" src="x.png"> in HTML
</p>

```{note}
left
```

:::{tip}
A tip
:::

[the guide]: http://a.b
"""

TRANSLATED = """---
title: "A PAGE"  # seen
path: /a/page
description: "ITS \\"TEXT\\""
---
# HEADING {#anchor}

SOME *SOFT* AND **HARD WORDS**, `code_x`, [A LINK](http://a.b/c_d "Its title") \\*STAR\\*, SNAKE_CASE, 2 * 3, X&nbsp;Y.

> [!NOTE]
> FIRST LINE\\
> AND *SECOND* LINE[^1] WITH <b class="x">TAG</b> AND <kbd>Ctrl</kbd>.

- [ ] A TASK OF TWO LINES
- SEE [THE GUIDE][the guide] AND ![A PICTURE](p.png)

| HEAD | A \\| B `c\\|d` |
|------|------|
| CELL | CELL **E** |

[^1]: ONE NOTE.
[^2]: OTHER NOTE.

<p align="center">
  <img alt="A LOGO" src="x.png"> IN HTML
</p>

```{note}
left
```

:::{tip}
A TIP
:::

[the guide]: http://a.b
"""


def test_page() -> None:
    assert sources(PAGE)[:4] == [
        "A page",
        'Its "text"',
        "Heading",
        "Some soft and hard words, code_x, a link *star*, snake_case, 2 * 3, x\xa0y.",
    ]
    assert translated(PAGE) == TRANSLATED


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_identity(line_end: str) -> None:
    content = "\ufeff" + PAGE.replace("\n", line_end) + "\0 *a*\t b"
    assert translated(content, lambda text: text.source) == content


@pytest.mark.parametrize(
    ("source", "target", "written"),
    [
        ("Year.", "1991. was", "1991\\. was"),
        ("Word.", "- word", "\\- word"),
        ("Word.", "# word", "\\# word"),
        ("Word.", "> *word* `x` a_b _c", "\\> \\*word\\* \\`x\\` a_b \\_c"),
        ("# Word", "1. word", "# 1. word"),
        ("Word.", "x[0] is <b> & &amp; C:\\Users", "x[0] is \\<b> & \\&amp; C:\\Users"),
        ("Word.", "[a](b) [c]: d", "\\[a\\](b) \\[c\\]: d"),
        ("[Word]\n\n[word]: x", "one", "[one][Word]\n\n[word]: x"),
        ("[Hi](x)", "Hey!", "[Hey!](x)"),
        ("a | b\n-|-\nc | d", "x|y", "x\\|y | x\\|y\n-|-\nx\\|y | x\\|y"),
    ],
)
def test_escapes(source: str, target: str, written: str) -> None:
    assert translated(source, lambda text: target) == written


def test_link_stays_behind_an_exclamation_mark() -> None:
    assert translated("See [it](x)", lambda text: "Hey!it").startswith("Hey\\![")


def test_emphasis_is_read_between_letters_and_marks() -> None:
    zh = {"Note: read": "注意：阅读", "read it": "阅读它"}
    assert translated("**Note:** read", lambda text: zh[text.source]) == "**注意：** 阅读"
    assert translated("read _it_", lambda text: zh[text.source]) == "阅读 _它_"


@pytest.mark.parametrize(
    "content",
    [
        "    indented\n",
        "~~~\nfenced\n~~~\n",
        "<!-- comment -->\n",
        "[ref]: http://a.b 'Title'\n",
        "<https://a.b> $x^2$ {% include a.md %} {{< b >}} `c`\n",
        "> <p>text\n> more</p>\n",
        "---\npath: a\ntitle:\n  b: c\n---\n",
        "![ref]\n\n[ref]: a.png\n",
        "[TOC]\n",
    ],
)
def test_left_alone(content: str) -> None:
    assert sources(content) == []
    assert translated(content) == content


def test_lines_of_other_dialects_are_not_joined() -> None:
    assert translated("A term\n: its sense :smile:\n: other") == "A TERM\n: ITS SENSE :smile:\n: OTHER"
    assert translated("text\n:::tip\nmore\n:::\ntext") == "TEXT\n:::tip\nMORE\n:::\nTEXT"
    assert translated('text\n!!! note "N"\n    more') == 'TEXT\n!!! note "N"\n    more'


def test_code_that_is_a_part_of_other_code() -> None:
    assert translated("a `--` b `--all` c") == "A `--` B `--all` C"


def test_tag_in_link_text_and_image_in_link() -> None:
    assert translated("[<b>a</b> b](x) c ![d *e*](y 'f') g") == "[<b>A</b> B](x) C ![D *E*](y 'f') G"


def test_two_line_breaks_at_one_place_end_no_paragraph() -> None:
    assert structure(translated("**  \n*  \n(x)")) == structure("**  \n*  \n(x)")


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tolka.documents.markdown_inline", raising=False)
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    with pytest.raises(ConfigError, match=r"^page.md: .*pip install 'tolka\[documents\]'$"):
        sources("a")


MARKS = ["*", "**", "_", "`", "[", "]", "(x)", "<b>", "</b>", "#", "- ", "1. ", "> ", "|", "\\", "&amp;", "!", "~~"]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([*MARKS, " ", "\n", "  \n", "\n\n", "a", "bc", "[r]: x\n"]), max_size=14).map("".join))
def test_any_document_comes_back(content: str) -> None:
    assert translated(content, lambda text: text.source) == content
    assert [each[:2] for each in structure(translated(content))] == [each[:2] for each in structure(content)]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.sampled_from([*MARKS, " ", "w", "ü."]), min_size=1, max_size=8)
    .map("".join)
    .filter(lambda text: text.strip())
)
def test_any_translation_is_no_markup(target: str) -> None:
    target = " ".join(target.split())
    for content in (
        "Word.",
        "- Word.\n  more",
        "> # Word",
        "Word\n====",
        "**Word** by `x` and [word](y)",
        "a|b\n-|-\nc|d",
    ):
        assert structure(translated(content, lambda text: target)) == structure(content)
