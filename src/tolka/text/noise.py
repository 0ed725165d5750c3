"""What people do to text that a model has not been trained on: capitals, typing errors, missing full stops, tags.

Each noise changes a pair so that its sides are still translations of each other: what a translation should keep, as a
tag or capitals, is changed on both sides, and what it should correct, as a typing error, in the source alone.
"""

import random
import re
from collections.abc import Callable, Sequence
from functools import partial

import regex

from tolka.text import casing
from tolka.text.direction import UNKNOWN, Direction
from tolka.text.pairs import Pair
from tolka.text.scripts import UNSPACED, sentence_blank

Noise = Callable[[Pair, random.Random], Pair]
"""Returns the changed pair; the pair itself where it has nothing to change."""
_END = regex.compile(r"[\p{Sentence_Terminal}…]+$")
# Where words have no blanks between them, nobody sees where one ends: such text gets no noise of letters or words.
_UNSPACED = regex.compile(f"[{UNSPACED}]")
# Of four letters or more, of which one more or less leaves the rest to be recognised.
_WORD = regex.compile(rf"((?![{UNSPACED}])\p{{L}}\p{{M}}*+){{4,}}")
_BESIDE_NUMBER = rf"[[\w.,]--[{UNSPACED}]]"
_ROWS = ("qwertzuiop", "qwertyuiop", "asdfghjkl", "yxcvbnm", "zxcvbnm", "йцукенгшщзхъ", "фывапролджэ", "ячсмитьбю")
_NEIGHBOURS = {
    letter: {*row[max(place - 1, 0) : place], *row[place + 1 : place + 2]}
    for row in reversed(_ROWS)
    for place, letter in enumerate(row)
}
_WRAPPED = ("<b>", "</b>"), ("<i>", "</i>"), ("<a>", "</a>"), ("<g1>", "</g1>"), ("[b]", "[/b]")
_PLACEHOLDER = re.compile(r"(<[^<>]*>|\{+[^{}]*\}+|%\w|\$\w+|@@\d+@@|__\w+__|&\w+;)")
_PLACED = "{name}", "{0}", "%s", "%d", "$NAME", "<br>", "<x1/>", "{{user}}", "__NAME__", "@@1@@"
_UNSEEN = " ", "\u200b", "\u00a0", "\u00ad"  # a second blank; of no width; that does not break; a soft hyphen
_NAME = regex.compile(r"\b\p{Lu}\p{Ll}{2,}\b")
_INVENTED = "Zorvak", "Mirelda", "Tandrow", "Quibley", "Ostrenko", "Velmarra"
_PATHS = "help?id=", "a/b_", "Index-", "news/2031/"
_PICTURES = "😀", "🎉", "❤️", "👍🏽", "🚀", "☕"
_FEWEST = 4  # words of which one may be lacking


def upper(pair: Pair, draw: random.Random, direction: Direction = UNKNOWN) -> Pair:
    """Write both sides in the capitals of their languages, except tags and placeholders."""
    return Pair(_in_capitals(pair.source, direction.source), _in_capitals(pair.target, direction.target))


def _in_capitals(text: str, language: str) -> str:
    parts = enumerate(_PLACEHOLDER.split(text))
    return "".join(part if number % 2 else casing.upper(part, language) for number, part in parts)


def title(pair: Pair, draw: random.Random, direction: Direction = UNKNOWN) -> Pair:
    """Begin each word of the source with a capital, as in an English headline; the translation is as it would be."""
    words = (casing.capitalized(word, direction.source) for word in pair.source.split(" "))
    return Pair(" ".join(words), pair.target)


def no_end(pair: Pair, draw: random.Random) -> Pair:
    """Leave out the end marks of both sides."""
    source, target = (str(_END.sub("", text)).rstrip() for text in (pair.source, pair.target))
    return Pair(source, target) if source and target else pair


def typos(pair: Pair, draw: random.Random) -> Pair:
    """Make a typing error in one word of the source in six, and in at least one."""
    text = pair.source
    # A letter and its marks are one: between them nobody mistypes.
    found = [(match.span(), match.captures(1)) for match in _WORD.finditer(text)]
    for (start, end), letters in sorted(draw.sample(found, max(1, len(found) // 6)) if found else (), reverse=True):
        text = f"{text[:start]}{_mistyped(letters, draw)}{text[end:]}"
    return Pair(text, pair.target)


def _mistyped(letters: Sequence[str], draw: random.Random) -> str:
    """Return a word with two letters exchanged, or with one lacking, doubled, or that of a neighbouring key."""
    place = draw.randrange(1, len(letters) - 1)
    before, (letter, following, *after) = letters[:place], letters[place:]
    # Of a script without such keys, the letter before.
    others: list[str] = sorted(_NEIGHBOURS.get(letter.casefold(), ())) or [before[-1]]
    kinds = ["", following], [letter, letter, following], [draw.choice(others), following], [following, letter]
    return "".join([*before, *draw.choice(kinds), *after])


def words(pair: Pair, draw: random.Random) -> Pair:
    """Write a word of the source twice, or leave one out of a longer one."""
    listed = pair.source.split(" ")
    place = draw.randrange(len(listed))
    if _UNSPACED.search(listed[place]):
        return pair
    if len(listed) > _FEWEST and draw.random() < 0.5:
        del listed[place]
    else:
        listed.insert(place, listed[place])
    return Pair(" ".join(listed), pair.target)


def tags(pair: Pair, draw: random.Random) -> Pair:
    """Put tags around both sides, or a placeholder before or behind both."""
    if draw.random() < 0.5:
        begin, end = draw.choice(_WRAPPED)
        return Pair(f"{begin}{pair.source}{end}", f"{begin}{pair.target}{end}")
    placed = draw.choice(_PLACED)
    if draw.random() < 0.5:
        return Pair(f"{placed} {pair.source}", f"{placed} {pair.target}")
    return Pair(f"{pair.source} {placed}", f"{pair.target} {placed}")


def numbers(pair: Pair, draw: random.Random) -> Pair:
    """Exchange a number that both sides have once for another one of as many digits."""
    pattern = _number("[0-9]{1,9}")
    found = [pattern.findall(text) for text in (pair.source, pair.target)]
    both = [number for number in found[0] if found[0].count(number) == found[1].count(number) == 1]
    if not both:
        return pair
    old = draw.choice(both)
    # One of a single digit may decide the form of a word: 1 day, 2 days.
    low, high = (2, 9) if len(old) == 1 else (10 ** (len(old) - 1), 10 ** len(old) - 1)
    new = str(draw.randint(low, high)) if old != "1" else old
    pattern = _number(old)
    return Pair(*(pattern.sub(new, text) for text in (pair.source, pair.target)))


def _number(digits: str) -> regex.Pattern[str]:
    """Return a pattern of a number of these digits that is not part of another one, or of a name."""
    return regex.compile(rf"(?V1)(?<!{_BESIDE_NUMBER}){digits}(?!{_BESIDE_NUMBER}*\d)")


def blanks(pair: Pair, draw: random.Random) -> Pair:
    """Double a blank of the source, or put a character there that nobody sees."""
    places = [match.start() for match in re.finditer(" ", pair.source)]
    place = draw.choice(places) if places else len(pair.source)
    return Pair(f"{pair.source[:place]}{draw.choice(_UNSEEN)}{pair.source[place:]}", pair.target)


def names(pair: Pair, draw: random.Random) -> Pair:
    """Exchange a name, as which counts a word with a capital that both sides have, for one that nobody has."""
    both = sorted({*_NAME.findall(pair.source)} & {*_NAME.findall(pair.target)})
    if not both:
        return pair
    pattern, new = re.compile(rf"\b{re.escape(draw.choice(both))}\b"), draw.choice(_INVENTED)
    return Pair(pattern.sub(new, pair.source), pattern.sub(new, pair.target))


def urls(pair: Pair, draw: random.Random) -> Pair:
    """Put an address behind both sides."""
    address = f"https://example.org/{draw.choice(_PATHS)}{draw.randrange(100, 1000)}"
    return Pair(f"{pair.source} {address}", f"{pair.target} {address}")


def emoji(pair: Pair, draw: random.Random) -> Pair:
    """Put a picture character behind both sides."""
    picture = draw.choice(_PICTURES)
    return Pair(f"{pair.source} {picture}", f"{pair.target} {picture}")


_TRAINED: tuple[Noise, ...] = upper, title, no_end, typos, words, tags, numbers
NOISES = {noise.__name__: noise for noise in _TRAINED}
"""Name -> what changes one pair."""
UNTRAINED: dict[str, Noise] = {noise.__name__: noise for noise in (blanks, names, urls, emoji)}
"""The same of further noises, by which models are tested alone."""


def noises(direction: Direction) -> dict[str, Noise]:
    """Return all of these noises, with capitals as the languages of a direction have them."""
    cased = {noise.__name__: partial(noise, direction=direction) for noise in (upper, title)}
    return {**NOISES, **UNTRAINED, **cased}


def joined(pairs: Sequence[Pair], direction: Direction) -> Pair:
    """Return several pairs on one line, with the blank that their languages have between sentences."""
    source, target = map(sentence_blank, direction)
    return Pair(source.join(pair.source for pair in pairs), target.join(pair.target for pair in pairs))


JOIN = "join"
"""The noise of two pairs: both on one line."""
KINDS = (*NOISES, JOIN)
