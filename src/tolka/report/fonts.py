"""Fonts for plots that have the characters of the text. Needs matplotlib."""

import importlib.util
import logging
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

_DEFAULT = "DejaVu Sans"  # comes with matplotlib: Latin, Greek, Cyrillic, Arabic, Hebrew and many signs
# East Asian families as FreeType names them, the plainest first: a plain face before brush, serif and monospaced ones.
# Korean ones come last, since many of them have kana and some Chinese characters too.
_PREFERRED = (
    # All scripts: Debian's fonts-noto-cjk (JP is the one that matplotlib before 3.11 sees), Adobe's builds of the same;
    # one script each, as Google distributes them.
    *("Noto Sans CJK JP", "Noto Sans CJK", "Source Han Sans"),
    *("Noto Sans JP", "Noto Sans SC", "Noto Sans TC", "Noto Sans HK"),
    # Japanese: macOS; Windows; Debian's fonts-ipaexfont, -ipafont, -takao, -vlgothic, -sawarabi-gothic, -mplus.
    *("Hiragino Sans", "Hiragino Kaku Gothic", "Yu Gothic", "Meiryo", "MS PGothic", "MS Gothic"),
    *("IPAexGothic", "IPAPGothic", "IPAGothic", "TakaoPGothic", "TakaoGothic", "VL PGothic", "VL Gothic"),
    *("Sawarabi Gothic", "M PLUS 1"),
    # Chinese: macOS; Windows; Debian's fonts-wqy-zenhei, -wqy-microhei, -arphic-uming, -droid-fallback.
    *("Heiti SC", "Heiti TC", "STHeiti", "PingFang", "Microsoft YaHei", "Microsoft JhengHei", "DengXian", "SimHei"),
    *("SimSun", "PMingLiU", "MingLiU", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Droid Sans Fallback"),
    "AR PL UMing",
    # Korean: macOS; Windows; Debian's fonts-nanum, -unfonts-core, -baekmuk.
    *("Noto Sans KR", "Apple SD Gothic Neo", "AppleGothic", "Malgun Gothic", "Gulim", "Dotum"),
    *("NanumGothic", "Nanum Gothic", "NanumBarunGothic", "UnDotum", "Baekmuk Dotum", "Baekmuk Gulim"),
    # Many scripts: macOS and Microsoft Office.
    "Arial Unicode MS",
)
# Fonts that have a box, or nothing, for every character. Those of macOS whose name begins with a dot are for itself.
_WITHOUT_GLYPHS = ("Last Resort", "LastResort", "Adobe Blank", ".")
# Python packages that bring fonts, in their folder `fonts`: all East Asian scripts, Korean, Japanese.
_PACKAGES = ("mplfonts", "koreanize_matplotlib", "japanize_matplotlib")
WHERE_TO_GET = "install one, such as fonts-noto-cjk of Debian and Ubuntu, or the Python package mplfonts"


def families_for(texts: Iterable[str]) -> tuple[list[str], str]:
    """Return font families that have every character of the texts, in order of use, and the characters that none has.

    matplotlib takes each glyph from the first of them that has it.
    """
    missing = {character for text in texts for character in text if character.isprintable()} - _characters(_DEFAULT)
    families = [_DEFAULT]
    if not missing:
        return families, ""
    preferred, others = _installed()
    # The preferred family that has most of the characters, so that a text is seldom set in several.
    ordered = sorted(preferred, key=lambda family: -len(missing & _characters(family)))
    for family in (*ordered, *others):
        if not missing:
            break
        covered = missing & _characters(family)
        if covered:
            families.append(family)
            missing -= covered
    return families, "".join(sorted(missing))


@contextmanager
def quiet_fonts() -> Iterator[None]:
    """Suppress matplotlib's warnings about missing glyphs and font weights.

    `families_for` returns the characters that no font has.
    """
    log = logging.getLogger("matplotlib.font_manager")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
            yield
    finally:
        log.setLevel(level)


@cache
def _installed() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the families on this machine and of font packages: preferred ones in their order, and the others."""
    from matplotlib import font_manager

    known = {entry.fname for entry in font_manager.fontManager.ttflist}
    for path in [*font_manager.findSystemFonts(), *_packaged()]:
        if path not in known:  # installed since matplotlib wrote its list
            with suppress(RuntimeError, OSError):  # a file that is no font
                font_manager.fontManager.addfont(path)
    return _ranked({entry.name for entry in font_manager.fontManager.ttflist})


def _ranked(names: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the preferred families in the order of _PREFERRED, and the others, without any that has no glyphs."""
    usable = sorted(name for name in set(names) - {_DEFAULT} if not name.startswith(_WITHOUT_GLYPHS))
    preferred = [name for start in _PREFERRED for name in usable if name.startswith(start)]
    return tuple(dict.fromkeys(preferred)), tuple(name for name in usable if name not in preferred)


def _packaged() -> list[str]:
    """Return the font files of _PACKAGES, none of which is imported."""
    paths = []
    for package in _PACKAGES:
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            paths += [str(path) for path in sorted(Path(folder, "fonts").glob("*.[ot]tf"))]
    return paths


@cache
def _characters(family: str) -> frozenset[str]:
    """Return the characters of the family's regular font."""
    from matplotlib import font_manager
    from matplotlib.ft2font import FT2Font

    try:
        with quiet_fonts():
            path = font_manager.findfont(font_manager.FontProperties(family=family), fallback_to_default=False)
        return frozenset(chr(code) for code in FT2Font(path).get_charmap())
    except (ValueError, RuntimeError, OSError):  # a font that matplotlib knows of and cannot open
        return frozenset()
