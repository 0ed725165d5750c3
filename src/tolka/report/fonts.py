"""Fonts for pictures: whatever the text is written in, its characters as glyphs and not as boxes. Needs matplotlib."""

import importlib.util
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

_DEFAULT = "DejaVu Sans"  # comes with matplotlib: Latin, Greek, Cyrillic, Arabic, Hebrew and many signs
# Preferred of several that have a script, the plainest first.
_PREFERRED = ("Noto Sans CJK", "Noto Sans KR", "Noto Sans JP", "Noto Sans SC", "NanumGothic", "Source Han Sans")
# Python packages that bring fonts, in their folder `fonts`: all East Asian scripts, Korean, Japanese.
_PACKAGES = ("mplfonts", "koreanize_matplotlib", "japanize_matplotlib")
WHERE_TO_GET = "install one, such as fonts-noto-cjk of Debian and Ubuntu, or the Python package mplfonts"


def families_for(texts: Iterable[str]) -> tuple[list[str], str]:
    """Font families that have every character of the texts, in order of use; and the characters that none has.

    matplotlib takes each glyph from the first of them that has it.
    """
    missing = {character for text in texts for character in text if character.isprintable()} - _characters(_DEFAULT)
    families = [_DEFAULT]
    for family in _installed():
        if not missing:
            break
        found = missing & _characters(family)
        if found:
            families.append(family)
            missing -= found
    return families, "".join(sorted(missing))


@cache
def _installed() -> tuple[str, ...]:
    """Families on this machine and of font packages, preferred ones first."""
    from matplotlib import font_manager

    known = {entry.fname for entry in font_manager.fontManager.ttflist}
    for path in [*font_manager.findSystemFonts(), *_packaged()]:
        if path not in known:  # installed since matplotlib wrote its list
            with suppress(RuntimeError, OSError):  # a file that is no font
                font_manager.fontManager.addfont(path)
    names = {entry.name for entry in font_manager.fontManager.ttflist} - {_DEFAULT}
    rank = {name: next((n for n, start in enumerate(_PREFERRED) if name.startswith(start)), 99) for name in names}
    return tuple(sorted(names, key=lambda name: (rank[name], name)))


def _packaged() -> list[str]:
    """Font files of _PACKAGES, none of which is imported."""
    found = []
    for package in _PACKAGES:
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            found += [str(path) for path in sorted(Path(folder, "fonts").glob("*.[ot]tf"))]
    return found


@cache
def _characters(family: str) -> frozenset[str]:
    """What the family's regular font can write."""
    from matplotlib import font_manager
    from matplotlib.ft2font import FT2Font

    try:
        path = font_manager.findfont(font_manager.FontProperties(family=family), fallback_to_default=False)
        return frozenset(chr(code) for code in FT2Font(path).get_charmap())
    except (ValueError, RuntimeError, OSError):  # a font that matplotlib knows of and cannot open
        return frozenset()
