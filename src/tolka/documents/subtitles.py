"""Subtitles: cues with their time stamps stay, and a sentence over several of them is one text.

Its translation is cut where it has about the share of its length that each cue has in the source, and then into lines.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from html import unescape
from itertools import accumulate, pairwise
from typing import NamedTuple

import regex

from tolka.documents.base import DOCUMENTS
from tolka.documents.markup import TextBuilder
from tolka.documents.spliced import SplicedDocument
from tolka.documents.text import Code, Text
from tolka.errors import DataError
from tolka.metrics.tables import display_width
from tolka.text.scripts import UNSPACED

_TIME = r"((?:\d{1,4}:)?\d{1,2}:\d{1,2}(?:[.,]\d{1,9})?)"
# A line with two time stamps, and the number of the cue on the line before it.
_CUE = re.compile(rf"(?<![^\n\ufeff])(?:[ \t]*\d{{1,9}}[ \t]*\r?\n)?[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}(?![\d:]).*")
_UNREADABLE = re.compile(r"\d:\S{1,20}\s*-->")
_EXAMPLE = "00:00:01,000 --> 00:00:02,500"
_TAG = r"<(?P<slash>/?)(?P<name>[A-Za-z]\w*)[^<>\n]*>|</?[\d:.]*>|\{\\[^{}\n]*\}|\{/?[biusyY](?::[^{}\n]*)?\}"
# Between lines that have the same tags of their own: they are read as if the tags went on.
_TAGGED_LINE_END = r"</(?P<of>\w+)>[ \t]*\r?\n[ \t]*<(?P=of)>"
_TOKEN = re.compile(rf"(?P<line_end>{_TAGGED_LINE_END})|(?P<tag>{_TAG})|[^<{{&]+|&\#?\w{{1,30}};|.")
# A blank line, or what another speaker begins with: a dash, or the name of a voice.
_SPEAKER = re.compile(
    r"(?P<blank>\n[ \t\r]*(?=\n))|\n[ \t]*(?:[<{][^<>{}\n]*[>}][ \t]*)*(?:[-‐–—](?![-–—\d])[ \t]*|(?=<v[ .]))"
)
# The end of a sentence, or of what is heard but not said, and the beginning of such a sound.
_ENDS = re.compile(r"""[.!?…。！？؟۔।॥։።♪♫\])）】*#]["'”’»」』]*\n|\n[\[(（【♪♫*#]""")
_LONGEST_PAUSE = 1.0  # seconds, between two cues of a sentence
_MOST_CUES = 4  # of a sentence
_MOST_LINES = 12  # of a cue, beyond which it is none
# A blank, or a place between two letters of a script without blanks which do not belong together.
_PLACE = regex.compile(
    rf" +|(?<=[{UNSPACED}、。，！？…」』）])(?<![เ-ไ])(?=[{UNSPACED}「『（])(?![\p{{M}}ーっゃゅょッャュョァィゥェォ々])"
)
_MARKS = frozenset(",.;:!?…–—、。，！？；：،؛؟।")
_BONUS = 0.15  # of the length of a cue, for a place behind a mark, and for one at a blank
_HEAD = 4096  # characters that show how lines end


class _Part(NamedTuple):
    """What one of the speakers says in a cue, which is seen from `begin` to `end`, in seconds."""

    text: Text
    begin: float
    end: float
    speakers: int
    has_dash: bool


@DOCUMENTS.register("subtitles")
class Subtitles(SplicedDocument):
    """SubRip, which has no specification, and WebVTT (W3C, WebVTT: The Web Video Text Tracks Format)."""

    endings = (".srt", ".vtt")

    def find(self, content: str) -> Iterator[Text]:
        group: list[_Part] = []
        for part in self._parts(content):
            if group and (len(group) == _MOST_CUES or not _goes_on(group[-1], part)):
                yield self._sentence(content, group)
                group = []
            group.append(part)
        if group:
            yield self._sentence(content, group)

    def _parts(self, content: str) -> Iterator[_Part]:
        is_vtt, cues = content[:9].lstrip("\ufeff").startswith("WEBVTT"), list(_CUE.finditer(content))
        if not cues:
            raise DataError(f"{self.path}: no time stamps, as {_EXAMPLE}; if these are no subtitles, set input.format")
        for cue, end in zip(cues, [*(each.start() for each in cues[1:]), len(content)], strict=True):
            spans = _speakers(content, cue.end(), end, is_vtt)
            said = [(text, dash) for start, stop, dash in spans if (text := _text(content, start, stop, is_vtt))]
            for text, has_dash in said:
                if _UNREADABLE.search(text.source):
                    line = content.count("\n", 0, content.index("-->", text.start)) + 1
                    raise DataError(f"{self.path}:{line}: a time stamp that cannot be read; they look like {_EXAMPLE}")
                yield _Part(text, _seconds(cue[1]), _seconds(cue[2]), len(said), has_dash)

    def _sentence(self, content: str, group: Sequence[_Part]) -> Text:
        """Return the text of the parts, with what stands between their cues."""
        text, texts = group[0].text, [part.text for part in group]
        between = [content[one.end : other.start] for one, other in pairwise(texts)]
        if between:
            parts, end = [part for each in texts for part in (" ", *each.parts)], texts[-1].end
            finish = partial(_with_all_cues, between)
            text = Text(parts, text.start, end, content[text.start : end], escape=text.escape, finish=finish)
        line_end = "\r\n" if "\r\n" in content[:_HEAD] else "\n"
        text.arrange = partial(self._arrange, group, between, line_end)
        return text

    def _arrange(
        self, group: Sequence[_Part], between: Sequence[str], line_end: str, translation: str
    ) -> tuple[list[tuple[int, int, str]], list[str]]:
        pieces = _pieces(translation, [display_width(part.text.source) for part in group], _BONUS)
        doubts = {"repeated"} if len(pieces) < len(group) else set[str]()
        fixed = [(one[1], other[0], raw) for (one, other), raw in zip(pairwise(pieces), between, strict=False)]
        for part, (start, end) in zip(group, pieces, strict=False):
            room = max(self.layout.line_length - 2 * (part.speakers > 1), 1)  # without a dash and a blank
            lines = _lines(translation[start:end], room)
            fixed += [(start + one[1], start + other[0], line_end) for one, other in pairwise(lines)]
            widths = [display_width(translation[start + a : start + b]) for a, b in lines]
            if max(widths) > room or len(lines) > max(2 // part.speakers, 1):
                doubts.add("line_length")
            if sum(widths) > self.layout.reading_speed * (part.end - part.begin) / part.speakers:
                doubts.add("reading_speed")
        return sorted(fixed), sorted(doubts)


def _seconds(stamp: str) -> float:
    hours, minutes, seconds = ["0", *stamp.replace(",", ".").split(":")][-3:]
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def _speakers(content: str, start: int, end: int, is_vtt: bool) -> Iterator[tuple[int, int, bool]]:
    """Yield where the words of each speaker in a cue are, and whether a dash or voice is before them."""
    has_dash = False
    for line in _SPEAKER.finditer(content, start, end):
        yield start, line.start(), has_dash
        start, has_dash = line.end(), not line["blank"]
        if line["blank"] and is_vtt:  # there a blank line ends a cue
            return
    yield start, end, has_dash


def _text(content: str, start: int, end: int, is_vtt: bool) -> Text | None:
    builder = TextBuilder(content) if is_vtt else TextBuilder(content, str)
    for token in _TOKEN.finditer(content, start, end):
        if token["tag"]:
            kind = "lone" if not token["name"] else "close" if token["slash"] else "open"
            builder.add(Code([], kind, token["name"] or ""), *token.span())
        else:
            written = " " if token["line_end"] else token[0]
            builder.add(unescape(written) if is_vtt else written, *token.span())
    return next(builder.finish(), None)


def _goes_on(part: _Part, following: _Part) -> bool:
    """Return whether a sentence goes on in the cue that follows."""
    one, other = part.text, following.text
    return (
        part.speakers == following.speakers == 1
        and not (following.has_dash or one.reason or other.reason)
        and abs(following.begin - part.end) <= _LONGEST_PAUSE
        and not _ENDS.search(f"{one.source}\n{other.source[0]}")
        # Markup inside of one of them might be torn.
        and all(node.kind == "kept" for node in (*one.nodes, *other.nodes))
    )


def _pieces(text: str, shares: Sequence[int], bonus: float) -> list[tuple[int, int]]:
    """Return pieces of a text that have about such shares of its length; fewer if it has too few words."""
    places = [match.span() for match in _PLACE.finditer(text, 1, len(text))]
    reached = [0, *accumulate(map(display_width, text))]
    goals = [reached[-1] * share / sum(shares) for share in accumulate(shares[:-1])][: len(places)]
    weight, cuts, first = bonus * reached[-1] / len(shares), [(0, 0)], 0
    for number, goal in enumerate(goals, 1):
        costs = [
            abs(reached[start] - goal) - weight * ((text[start - 1] in _MARKS) + (end > start))
            for start, end in places[first : len(places) - len(goals) + number]
        ]
        first += costs.index(min(costs)) + 1
        cuts.append(places[first - 1])
    return [(one[1], other[0]) for one, other in pairwise([*cuts, (len(text), len(text))])]


def _lines(text: str, room: int) -> list[tuple[int, int]]:
    """Return as few lines as such a width allows, as even as they can be."""
    fewest = min(max(1, -(-display_width(text) // room)), _MOST_LINES)
    for count in range(fewest, fewest + 3):
        lines = _pieces(text, [1] * count, 0)
        if all(display_width(text[start:end]) <= room for start, end in lines):
            break
    return lines


def _with_all_cues(between: Sequence[str], written: str) -> str:
    """Return a translation in which every cue has text: where there is too little of it, the last one's again."""
    done = ""
    for raw in between:
        piece, found, rest = written.partition(raw)
        done, written = done + piece + raw, rest if found else piece
    return done + written
