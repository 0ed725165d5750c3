"""Pages of HTML: what is text, what stays, and what a translated page looks like."""

from pathlib import Path

import pytest
from made_translations import EN_DE, identity, translated

from tolka.documents.html import Html
from tolka.text.direction import Direction

PAGE = """<!DOCTYPE html>\r
<html lang="en"><head><title>My &amp; page</title>
<meta name=description content="A nice page"><meta name="viewport" content="width=device-width">
<script>var a = "<p>not text</p>";</script><style>p { color: red }</style></head>
<body class="main">
<!-- wp:paragraph --><p title='The "tip"'>One <b>bold</b> word.</p><!-- /wp:paragraph -->
<p>A line\t
   goes on&nbsp;here &mdash; it does.</p>
<pre>code here</pre>
<div lang="fr">Bonjour le monde</div>
<div translate="no">Acme Inc</div>
<input type="submit" value="Send"><input type="text" value="kept" placeholder="Your name">
</body></html>
"""


def sources(content: str, path: Path, direction: Direction = EN_DE) -> list[tuple[str, str]]:
    """The texts of a page, and why they are left alone."""
    path.write_text(content, newline="")
    document = Html(path)
    document.direction = direction
    return [(text.source, text.reason) for text in document.texts() if text.reason != "edit"]


def test_the_texts_of_a_page(tmp_path: Path) -> None:
    assert sources(PAGE, tmp_path / "a.html") == [
        ("My & page", ""),
        ("A nice page", ""),
        ('The "tip"', ""),
        ("One bold word.", ""),
        ("A line goes on\xa0here — it does.", ""),
        ("code here", "code"),
        ("Bonjour le monde", "in another language"),
        ("Acme Inc", "not to be translated"),
        ("Send", ""),
        ("Your name", ""),
    ]


def test_an_identity_translator_gives_the_same_bytes_back(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(PAGE, newline="")
    assert identity(Html(tmp_path / "a.html")) == PAGE.encode()


def test_what_is_no_text_stays_in_a_translated_page(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(PAGE, newline="")
    expected = PAGE.replace('lang="en"', 'lang="de"').replace("My &amp; page", "MY &amp; PAGE")
    expected = expected.replace("A nice page", "A NICE PAGE").replace("A line\t\n   goes", "A LINE GOES")
    expected = expected.replace("""'The "tip"'""", "'THE &quot;TIP&quot;'")
    expected = expected.replace("One <b>bold</b> word.", "ONE <b>BOLD</b> WORD.")
    expected = expected.replace("on&nbsp;here &mdash; it does.", "ON&nbsp;HERE &mdash; IT DOES.")
    expected = expected.replace("Send", "SEND").replace("Your name", "YOUR NAME")
    assert translated(Html(tmp_path / "a.html"), str.upper) == expected


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("<p>One <a href=x><b><i>two</i></b></a> three</p>", ["One two three"]),
        ("<li>One<li><i>Two</i>", ["One", "Two"]),
        ("<p>1 Main St.<br>Town</p>", ["1 Main St.", "Town"]),
        ("<p>a sentence that<br>goes on</p>", ["a sentence that goes on"]),
        ('<p>See <img src=a alt="a cat"> now</p>', ["a cat", "See now"]),
        ("<td>Cell<td>Other", ["Cell", "Other"]),
        ("<p>un<b>believ</b>able</p>", ["unbelievable"]),
        ("1 < 2 & x <3 y", ["1 < 2 & x <3 y"]),
        ("<select><option>One<option label='Two'>x</select>", ["One", "Two", "x"]),
        ("<p>A <script>no()</script>b</p>", ["A b"]),
    ],
)
def test_where_texts_begin_and_end(content: str, texts: list[str], tmp_path: Path) -> None:
    assert [source for source, _ in sources(content, tmp_path / "a.html")] == texts


def test_markup_around_a_whole_text_is_none_of_it(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<p> <b><a href='x' title='Tip'>Go home</a></b> <!-- c --> </p>")
    [tip, text] = Html(tmp_path / "a.html").texts()
    assert (tip.source, tip.nested, text.source, text.nodes) == ("Tip", False, "Go home", [])


def test_kept_elements_are_read_by_the_model_and_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text("<p>Type <code>ls  -l</code> at <span translate=no>Ac<b>me</b></span> <var>n</var>.</p>")
    [text] = Html(path).texts()
    assert text.source == "Type ls -l at Acme n."
    assert translated(Html(path), {"Type ls -l at Acme n.": "Bei Acme tippt man ls -l, n-mal."}) == (
        "<p>Bei <span translate=no>Ac<b>me</b></span> tippt man <code>ls  -l</code>, <var>n</var>-mal.</p>"
    )


def test_attributes_inside_of_a_paragraph_are_translated_with_it(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text('<p>A <a href="x" title="big dog">dog</a> <img alt=cat> ran.</p>')
    assert translated(Html(path), str.upper) == ('<p>A <a href="x" title="BIG DOG">DOG</a> <img alt="CAT"> RAN.</p>')


def test_a_page_in_another_direction_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text('<html lang="en-US"><body dir="ltr"><p lang=en>Hi <i lang=en>you</i></p></html>')
    words = {"Hi you": "שלום לך"}
    assert translated(Html(path), words, Direction("en", "he")).startswith('<html lang="he" dir="rtl"><body')
    assert "lang=he>" in translated(Html(path), words, Direction("en", "he"))
    assert translated(Html(path), words, Direction("en", "de")).startswith('<html lang="de"><body')
    assert translated(Html(path), words, Direction()).startswith('<html lang="en-US"><body')


def test_a_page_keeps_its_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_bytes('<meta charset="iso-8859-1"><p>café</p>'.encode("latin-1"))
    assert identity(Html(path)) == path.read_bytes()
    assert translated(Html(path), {"café": "café — 茶"}, encoding="latin-1").endswith("<p>café &#8212; &#33590;</p>")


def test_an_element_without_its_end_tag_ends_before_the_next_one(tmp_path: Path) -> None:
    content = "<h1>One</h1><p translate=no>Acme<p>Two<ul><li lang=fr>trois<li>Four</ul><p>Five <code>x"
    assert sources(content, tmp_path / "a.html") == [
        ("One", ""),
        ("Acme", "not to be translated"),
        ("Two", ""),
        ("trois", "in another language"),
        ("Four", ""),
        ("Five x", ""),
    ]
    assert identity(Html(tmp_path / "a.html")) == content.encode()


def test_the_tag_of_a_page_is_whole_in_every_spelling(tmp_path: Path) -> None:
    for tag in ('<HTML LANG="en" DIR="ltr">', "<html lang=en dir=ltr>", "<html data-dir='x' dir = 'ltr' lang='en'>"):
        (tmp_path / "a.html").write_text(f"{tag}<p>a</p>")
        expected = tag.replace("en", "ar").replace("ltr", "rtl")
        assert translated(Html(tmp_path / "a.html"), {}, Direction("en", "ar")) == f"{expected}<p>a</p>"
