"""Markup in translations: at the words that it is aligned to, never lost, doubled or unbalanced."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tolka.documents.placing import SoftAlignment, needs_alignment, place
from tolka.documents.text import NO_WORDS, TOO_LONG, Code, Node, Text


def marked(*parts: str | Code, **options: object) -> Text:
    return Text(parts, **options)  # type: ignore[arg-type]


def b() -> Code:
    return Code(["<b>"], "open", "b")


def end_b() -> Code:
    return Code(["</b>"], "close", "b")


def words_of(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\S+", text)]


def aligned(source: str, target: str, pairs: dict[int, int]) -> SoftAlignment:
    """Alignment of words: each of the target's to one of the source's."""
    sources, targets = words_of(source), words_of(target)
    weights = np.zeros((len(targets), len(sources)))
    for of_target, of_source in pairs.items():
        weights[of_target, of_source] = 1
    return SoftAlignment(sources, targets, weights)


def test_a_span_goes_to_the_words_that_are_aligned_to_it() -> None:
    text = marked("The ", b(), "red house", end_b(), " burns.")
    assert text.source == "The red house burns."
    alignment = aligned(text.source, "Es brennt das rote Haus.", {0: 0, 1: 3, 2: 0, 3: 1, 4: 2})
    assert place(text, "Es brennt das rote Haus.", alignment) == []
    assert text.written == "Es brennt das <b>rote Haus</b>."


def test_a_span_is_one_piece_where_its_words_are_apart() -> None:
    """The separated verb: Kadane's run takes what is between, or the larger part, and says that it is not sure."""
    text = marked("I ", b(), "called up", end_b(), " my friend yesterday evening.")
    target = "Ich rief gestern Abend meinen Freund an."
    alignment = aligned(text.source, target, {0: 0, 1: 1, 2: 5, 3: 6, 4: 3, 5: 4, 6: 2})
    place(text, target, alignment)
    assert text.written in {"Ich <b>rief</b> gestern Abend meinen Freund an.", f"Ich rief {target[9:-3]}<b>an</b>."}


def test_spans_change_places_with_their_words_and_stay_inside_of_the_one_around_them() -> None:
    i, end_i = Code(["<i>"], "open", "i"), Code(["</i>"], "close", "i")
    text = marked(b(), "one ", i, "two", end_i, end_b(), " three")
    alignment = aligned(text.source, "drei zwei eins", {0: 2, 1: 1, 2: 0})
    assert place(text, "drei zwei eins", alignment) == []
    assert text.written == "drei <b><i>zwei</i> eins</b>"


def test_a_mark_belongs_to_a_span_if_it_does_in_the_source() -> None:
    text = marked(b(), "Note:", end_b(), " read (", b(), "all", end_b(), ").")
    target = "Hinweis: lies (alles)."
    place(text, target, aligned(text.source, target, {0: 0, 1: 1, 2: 2}))
    assert text.written == "<b>Hinweis:</b> lies (<b>alles</b>)."


def test_part_of_a_word_marks_the_whole_one() -> None:
    text = marked("un", b(), "believ", end_b(), "able story")
    place(text, "unglaubliche Geschichte", aligned(text.source, "unglaubliche Geschichte", {0: 0, 1: 1}))
    assert text.written == "<b>unglaubliche</b> Geschichte"


@pytest.mark.parametrize(
    ("target", "written", "doubts"),
    [
        ("Starte git pull jetzt.", "Starte <code>git pull</code> jetzt.", []),
        ("Starte git pul jetzt.", "Starte <code>git pull</code> jetzt.", ["kept_text"]),
        ("Starte den Zug jetzt.", "Starte <code>git pull</code> den Zug jetzt.", ["kept_text"]),
        ("Starte jetzt.", "Starte <code>git pull</code> jetzt.", ["kept_text"]),
    ],
    ids=["copied", "changed", "translated", "left out"],
)
def test_kept_text_is_there_whatever_the_model_makes_of_it(target: str, written: str, doubts: list[str]) -> None:
    text = marked("Run ", Code(["<code>git pull</code>"], "kept", text="git pull"), " now.")
    of_words = {"Starte": 0, "git": 1, "den": 1, "pull": 2, "pul": 2, "Zug": 2, "jetzt.": 3}
    pairs = {place: of_words[word] for place, word in enumerate(target.split())}
    assert needs_alignment(text, target) == bool(doubts)
    assert place(text, target, aligned(text.source, target, pairs)) == doubts
    assert text.written == written


def test_placeholders_are_kept_text_and_are_written_as_the_format_does() -> None:
    text = marked("Copy %s to <b>.", escape=lambda text: text.replace("<", "&lt;"))
    place(text, "Kopiere <b> nach %s & mehr", None)
    assert text.written == "Kopiere &lt;b> nach %s & mehr"
    assert [str(node) for node in text.nodes] == ["%s", "&lt;b>"]


def test_a_point_stands_behind_the_word_it_is_behind_or_before_the_one_it_is_before() -> None:
    text = marked("See this", Code(["[1]"]), " and ", Code(["[2]"]), "that", Code(["[3]"]), " ", Code(["[4]"]), " end.")
    target = "Ende: das und dies siehe."
    place(text, target, aligned(text.source, target, {0: 4, 1: 3, 2: 2, 3: 1, 4: 0}))
    assert text.written == "[4] Ende: [2]das[3] und dies[1] siehe."


def test_without_an_alignment_markup_goes_by_the_diagonal_and_is_to_be_looked_at() -> None:
    text = marked("a b c d e ", b(), "f", end_b())
    assert place(text, "q r s t u v", None) == ["markup"]
    assert text.written == "q r s t u <b>v</b>"


def test_what_both_sides_have_once_is_aligned_to_itself() -> None:
    text = marked("On ", b(), "Friday", end_b(), " Maria comes.")
    place(text, "Maria kommt Friday.", None)
    assert text.written == "Maria kommt <b>Friday</b>."


def test_a_text_that_its_translation_does_not_change_stays_as_it_was_written() -> None:
    text = marked("a  \n ", b(), "b", end_b(), written="a  \n <b>b</b>")
    assert (text.source, place(text, "a b", None), text.written) == ("a b", [], "a  \n <b>b</b>")


def test_spans_that_are_too_deep_are_kept_in_points() -> None:
    text = marked(*(b() for _ in range(900)), "deep", *(end_b() for _ in range(900)))
    place(text, "tief", None)
    assert (text.written.count("<b>"), text.written.count("</b>"), "tief" in text.written) == (900, 900, True)


def test_what_has_no_words_is_left_alone() -> None:
    assert [marked(each).reason for each in ("12.5 %", "%s: {name}", "- —", "https://a.b/c")] == [NO_WORDS] * 4
    assert marked("x %s").reason == ""


def test_overlapping_and_single_markup_is_kept_in_points() -> None:
    i, end_i = Code(["<i>"], "open", "i"), Code(["</i>"], "close", "i")
    text = marked("one ", b(), "two ", i, "three", end_b(), " four", end_i, " five", Code(["</u>"], "close", "u"))
    assert [node.kind for node in text.nodes] == ["span", "point", "point"]
    assert [node.kind for node in text.nodes[0].children] == ["point"]


PIECES = st.lists(
    st.sampled_from(["one ", "two", " drei", ". ", "%s", "b", "/b", "i", "/i", "br", "code"]), min_size=1, max_size=14
)


@given(PIECES, st.text("ab .%s1", max_size=30), st.integers(0, 2**32 - 1))
def test_nothing_is_lost_doubled_or_unbalanced(pieces: list[str], target: str, seed: int) -> None:
    def code(piece: str) -> str | Code:
        if piece in ("b", "i"):
            return Code([f"<{piece}>"], "open", piece)
        if piece in ("/b", "/i"):
            return Code([f"<{piece}>"], "close", piece[1:])
        if piece == "br":
            return Code(["<br>"])
        return Code(["<code>x1</code>"], "kept", text="x1") if piece == "code" else piece

    text = marked(*map(code, pieces))
    sources, targets = words_of(text.source), words_of(target)
    weights = np.random.default_rng(seed).dirichlet(np.ones(max(len(sources), 1)), len(targets))
    place(text, target, SoftAlignment(sources, targets, weights) if sources else None)
    tags = re.findall(r"<[^>]*>", text.written)
    # "" as a translation, and one that is the source, are not written.
    if target not in ("", text.source):
        expected = re.findall(r"<[^>]*>", "".join(str(code(piece)) for piece in pieces))
        assert Counter(tags) == Counter(expected)
        assert text.written.count("%s") >= pieces.count("%s")
        bare = re.sub(r"<[^>]*>|x1|%s|\s", "", text.written)
        assert Counter(bare) <= Counter(target)
    opened = list[str]()
    if len(text.nodes) and not any(node.kind == "point" and str(node) != "<br>" for node in _all(text)):
        for tag in tags:
            if tag.startswith("</") and tag != "</code>":
                assert opened.pop() == tag[2:]
            elif tag in ("<b>", "<i>"):
                opened.append(tag[1:])
        assert not opened


def _all(text: Text) -> list[Node]:
    nodes, found = list(text.nodes), list[Node]()
    while nodes:
        node = nodes.pop()
        found.append(node)
        nodes += node.children
    return found


def test_tags_in_a_string_are_spans_and_one_alone_is_kept() -> None:
    text = marked('Click <a href="{url}">here</a> or <0>there</0> in <b>.')
    assert text.source == "Click here or there in <b>."
    place(
        text,
        "Hier oder dort klicken <b>.",
        aligned(text.source, "Hier oder dort klicken <b>.", {0: 1, 1: 2, 2: 3, 3: 0}),
    )
    assert text.written == '<a href="{url}">Hier</a> oder <0>dort</0> klicken <b>.'


def test_a_placeholder_in_other_letters_is_written_as_it_was() -> None:
    text = marked("see {{name}} at %(x)s")
    assert place(text, "SEE {{NAME}} AT %(X)S", None) == []
    assert text.written == "SEE {{name}} AT %(x)s"


def test_a_long_text_with_markup_is_left_alone() -> None:
    parts: list[str | Code] = ["some ", b(), "bold", end_b(), " word "]
    assert marked(*parts * 1000).reason == TOO_LONG
    assert marked("some bold word " * 1000).reason == ""
