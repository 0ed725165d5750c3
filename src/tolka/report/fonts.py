"""Fonts for plots that have the characters of the text. Needs matplotlib."""

import logging
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache

from tolka.system.loggers import loggers_at

_DEFAULT = "DejaVu Sans"  # comes with matplotlib
_OF_DEFAULT = re.compile("[\0-\u06ff\u2000-\u2bff]*")  # Latin, Greek, Cyrillic, Arabic, Hebrew and many signs
# Fonts that have a box, or nothing, for every character. Those of macOS whose name begins with a dot are for itself.
_WITHOUT_GLYPHS = ("Last Resort", "LastResort", "Adobe Blank", ".")
_PLAIN = re.compile("Sans|Gothic|Hei|Dotum")  # in the names of plain faces, not brush, serif or monospaced ones
WHERE_TO_GET = "install one, such as fonts-noto-cjk of Debian and Ubuntu, or put one into ~/.local/share/fonts"


def families_for(texts: Iterable[str]) -> list[str]:
    """Return the font families to draw texts with; matplotlib takes each glyph from the first of them that has it."""
    # Only those that are needed: matplotlib looks every one up for every label, and a machine may have hundreds.
    missing, families = {each for each in set().union(*texts) if not _OF_DEFAULT.fullmatch(each)}, [_DEFAULT]
    for family in _installed_families() if missing else ():
        if found := _characters_in(family, missing):
            families.append(family)
            missing -= found
    return families


@contextmanager
def quiet_fonts() -> Iterator[set[str]]:
    """Suppress matplotlib's complaints about fonts; yield a set, afterwards of the characters that none has."""
    missing = set[str]()
    with loggers_at(logging.ERROR, "matplotlib.font_manager"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield missing
    for each in caught:
        if glyph := re.match(r"Glyph (\d+) .* missing from", str(each.message)):
            missing.add(chr(int(glyph[1])))
        else:  # not about fonts
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)


def _characters_in(family: str, characters: set[str]) -> set[str]:
    """Return those of the characters that a family has."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    with quiet_fonts():
        font = get_font(findfont(FontProperties(family=[family])))
    return {each for each in characters if font.get_char_index(ord(each))}


@cache
def _installed_families() -> list[str]:
    """Return the families on this machine, plain faces first."""
    from matplotlib import font_manager

    known = {entry.fname for entry in font_manager.fontManager.ttflist}
    for path in font_manager.findSystemFonts():
        if path not in known:  # installed since matplotlib wrote its list
            with suppress(RuntimeError, OSError):  # a file that is not a font
                font_manager.fontManager.addfont(path)
    return _rank_families(entry.name for entry in font_manager.fontManager.ttflist)


def _rank_families(names: Iterable[str]) -> list[str]:
    """Return the families that have glyphs, plain faces first."""
    usable = (name for name in set(names) - {_DEFAULT} if not name.startswith(_WITHOUT_GLYPHS))
    return sorted(usable, key=lambda name: (not _PLAIN.search(name), name))
