"""Subtitles keep their cues; sentences over several of them are translated as one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tolka.documents.base import Layout
from tolka.documents.placing import place
from tolka.documents.subtitles import Subtitles
from tolka.errors import DataError

SRT = """\ufeff1\r
00:00:01,000 --> 00:00:03,000 X1:10 X2:20\r
{\\an8}<i>We have been\r
looking for</i>\r
\r
2\r
00:00:03,200 --> 00:00:05,000\r
a house.\r
00:00:06,000 --> 00:00:09,000\r
- Where is it?\r
- Down <b>there</b>.\r
\r
9\r
00:00:10,000 --> 00:00:12,000\r
\r
\r
10\r
00:00:13,000 --> 00:00:15,000\r
1984\r
"""

VTT = """WEBVTT - a film

STYLE
::cue { color: red }

NOTE not a text

intro
01:00.000 --> 01:05.000 align:start
<v Fred>Tea &amp; <c.loud>milk</c>, 2 &lt; 3?

01:06.000 --> 01:08.000

01:09.000 --> 01:12.000
[MUSIC]
"""


SLOW = Layout(reading_speed=99)  # no text is too fast to read


def texts(tmp_path: Path, content: str, name: str = "film.srt") -> list[str]:
    path = tmp_path / name
    path.write_bytes(content.encode())
    return [text.source for text in Subtitles(path).texts()]


def translated(
    tmp_path: Path, content: str, translate: Callable[[str], str], layout: Layout = SLOW
) -> tuple[str, list[str]]:
    path, doubts = tmp_path / "film.srt", list[str]()
    path.write_bytes(content.encode())
    document, output = Subtitles(path, layout), b""
    for text in document.texts():
        if not text.reason:
            doubts += place(text, translate(text.source), None)
        output += document.write(text)
    return (output + document.end()).decode(), doubts


def cues(*texts: str, seconds: int = 2) -> str:
    """Return cues that follow each other without a pause."""
    return "".join(
        f"{number + 1}\n00:00:{number * seconds:02},000 --> 00:00:{(number + 1) * seconds:02},000\n{text}\n\n"
        for number, text in enumerate(texts)
    )


def test_the_words_of_each_speaker_are_a_text_and_a_sentence_over_two_cues_is_one(tmp_path: Path) -> None:
    assert texts(tmp_path, SRT) == ["We have been looking for a house.", "Where is it?", "Down there.", "1984"]
    assert texts(tmp_path, VTT, "film.vtt") == ["Tea & milk, 2 < 3?", "[MUSIC]"]


@pytest.mark.parametrize("content", [SRT, VTT])
def test_what_a_translator_does_not_change_is_the_same_bytes(tmp_path: Path, content: str) -> None:
    assert translated(tmp_path, content, str)[0] == content


def test_cues_tags_settings_and_line_ends_stay(tmp_path: Path) -> None:
    output, _ = translated(tmp_path, SRT, str.upper)
    assert output == (
        SRT.replace("We have been\r\nlooking for", "WE HAVE BEEN LOOKING FOR")
        .replace("a house", "A HOUSE")
        .replace("Where is it", "WHERE IS IT")
        .replace("Down <b>there</b>", "DOWN <b>THERE</b>")
    )


def test_webvtt_is_escaped_and_keeps_its_voices_and_classes(tmp_path: Path) -> None:
    output, _ = translated(tmp_path, VTT, str.upper)
    assert output == VTT.replace("Tea &amp; <c.loud>milk</c>", "TEA &amp; <c.loud>MILK</c>")


def test_subrip_has_no_escapes(tmp_path: Path) -> None:
    assert translated(tmp_path, cues("tea & 2 < 3."), str.upper)[0] == cues("TEA & 2 < 3.")


def test_a_cue_ends_at_the_share_that_it_has_in_the_source_and_best_behind_a_comma(tmp_path: Path) -> None:
    content = cues("aaaa bbbb ccccc", "dddd eeee ffff.")
    output, _ = translated(tmp_path, content, lambda text: "one two, three four five six.")
    assert output == cues("one two, three", "four five six.")
    # The middle is the 20th of 40 characters; the comma is the 18th, and the next word ends with the 21st.
    output, _ = translated(tmp_path, content, lambda text: "aaaa bbbb cccc dd, ee ffff gggg hhhh jj.")
    assert output == cues("aaaa bbbb cccc dd,", "ee ffff gggg hhhh jj.")


@pytest.mark.parametrize(
    ("first", "second"),
    [("It is over.", "go"), ("[door]", "go"), ("We sing", "♪ la la"), ("We", "- Who?"), ("<b>We</b> sing", "a song")],
)
def test_what_is_no_sentence_over_two_cues_is_two_texts(tmp_path: Path, first: str, second: str) -> None:
    assert len(texts(tmp_path, cues(first, second))) == 2


def test_a_sentence_has_four_cues_at_most_and_no_long_pause(tmp_path: Path) -> None:
    assert texts(tmp_path, cues(*"abcdef")) == ["a b c d", "e f"]
    assert texts(tmp_path, cues("a", "b").replace("00:00:02,000 -->", "00:00:03,100 -->")) == ["a", "b"]


def test_a_cue_has_text_even_if_the_translation_has_too_few_words(tmp_path: Path) -> None:
    output, doubts = translated(tmp_path, cues("I would", "like to", "go"), lambda text: "Ich ginge")
    assert output == cues("Ich", "ginge", "ginge")
    assert doubts == ["repeated"]


def test_lines_are_even_and_as_few_as_the_width_allows(tmp_path: Path) -> None:
    layout = Layout(line_length=10, reading_speed=99)
    output, doubts = translated(tmp_path, cues("x\ny."), lambda text: "aaaa bbbb", layout)
    assert (output, doubts) == (cues("aaaa bbbb"), [])
    output, doubts = translated(tmp_path, cues("x."), lambda text: "aa bb cc dddddd", layout)
    assert (output, doubts) == (cues("aa bb cc\ndddddd"), [])
    output, doubts = translated(tmp_path, cues("x."), lambda text: "aaaaaaa bbbbbbb ccccccc", layout)
    assert (output, doubts) == (cues("aaaaaaa\nbbbbbbb\nccccccc"), ["line_length"])


def test_wide_characters_count_twice_and_break_anywhere_but_before_a_mark(tmp_path: Path) -> None:
    output, _ = translated(
        tmp_path, cues("x."), lambda text: "我们在这。里等他。", Layout(line_length=10, reading_speed=99)
    )
    assert output == cues("我们在这。\n里等他。")


def test_a_translation_that_is_too_fast_to_read_is_remarked(tmp_path: Path) -> None:
    assert translated(tmp_path, cues("x."), lambda text: "a" * 20, Layout(reading_speed=10))[1] == []
    assert translated(tmp_path, cues("x."), lambda text: "a" * 21, Layout(reading_speed=10))[1] == ["reading_speed"]


def test_lines_with_tags_of_their_own_get_them_together(tmp_path: Path) -> None:
    content = cues("<i>one two</i>\n<i>three four</i>", "<i>five.</i>")
    output, _ = translated(tmp_path, content, str.upper, Layout(line_length=10, reading_speed=99))
    assert output == cues("<i>ONE TWO\nTHREE FOUR</i>", "<i>FIVE.</i>")


def test_a_file_without_time_stamps_and_one_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"film.srt: no time stamps"):
        texts(tmp_path, "Hello.\n")
    with pytest.raises(DataError, match=r"film.srt:6: a time stamp that cannot be read"):
        texts(tmp_path, cues("a.", "b.").replace("00:00:02,000 -->", "00:00:0z,000 -->"))
