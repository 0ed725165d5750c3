"""Markup is removed as a reader of the page would not see it, and nothing that is text."""

from rows import each_row

from tolka.text.cleaning.markup import has_markup, without_markup


@each_row(
    ("text", "seen"),
    [
        ("Tom &apos;s &#124; &#91; 1 &#93;", "Tom 's | [ 1 ]"),  # Moses' escape-special-chars.perl
        ("R &amp;amp; D", "R & D"),
        ("&amp;amp;amp;quot;hi&amp;amp;amp;quot;", '"hi"'),
        ("x &lt;b&gt;bold&lt;/b&gt;", "x bold"),
        ("x &amp;lt;i&amp;gt;y&amp;lt;/i&amp;gt; z", "x y z"),
        ('<a href="x?a=1&amp;b=2">link</a>, and <i>it</i>.', "link, and it."),
        ('a <img src=x.png alt="a>b"> c', "a c"),
        ("H<sub>2</sub>O", "H2O"),
        ("x<br/>y<BR>z", "x y z"),
        ("<td>a</td><td>b</td>", "a b"),
        ("click <emph>OK</emph> now", "click OK now"),
        ('<!-- n -->x<!DOCTYPE html>y<?xml version="1.0"?>', "x y"),
        ("&nbsp;x&nbsp;y", "x y"),
        ("&#150; &#x80;", "– €"),  # as browsers read them
    ],
)
def test_what_a_reader_sees(text: str, seen: str) -> None:
    assert without_markup(text) == without_markup(seen) == seen
    assert has_markup(text)


@each_row(
    "text",
    [
        "if a<b and c>d then",
        "if x<y or y>z",
        "for (i=0;i<n;i++) if (a[i]>b) x",
        "p<0.05 and n>3, 5 < 6 > 4,  I <3 you",
        "Use <Enter> to go",
        "cp <source> <dest>",
        "vector<int> and List<String>",
        "mail <john@x.org>, see <http://x.org/a>",
        "?a=1&copy=2, AT&T; ok",
    ],
)
def test_what_is_no_markup(text: str) -> None:
    assert without_markup(text) == text
    assert not has_markup(text)


def test_an_unknown_reference_stays() -> None:
    assert without_markup("&brandName; &notit;") == "&brandName; &notit;"
    assert has_markup("&brandName;")


@each_row("part", ["<!--", "<a ", "<a x='", " x=1", "&amp;", "<?a", "<", "amp;"])
def test_hostile_text_is_read_in_linear_time(part: str) -> None:
    """A quadratic pattern would take minutes."""
    without_markup("<a" + part * (2**18 // len(part)))
