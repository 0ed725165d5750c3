"""Fonts of pictures: the plainest that has the characters, and one note, not a warning each, where none has them."""

import logging
import warnings
from pathlib import Path

import pytest

from tolka.report import fonts
from tolka.report.attention import AttentionFolder
from tolka.report.fonts import families_for

KOREAN, JAPANESE, CHINESE = "친구야", "猫がカ", "这个猫"
# Families as FreeType reads them from the fonts of Debian's packages, and which of the three texts each can write.
DEBIAN = {
    "fonts-noto-cjk": {"Noto Sans Mono CJK KR": "kjc", "Noto Sans CJK JP": "kjc", "Noto Sans CJK HK": "kjc"},
    "fonts-nanum": {"NanumMyeongjo": "k", "NanumSquareRound": "k", "NanumGothic": "k"},
    "fonts-unfonts-core": {"UnBatang": "k", "UnGungseo": "k", "UnPilgi": "k", "UnDotum": "k"},
    "fonts-baekmuk": {"Baekmuk Batang": "k", "Baekmuk Headline": "k", "Baekmuk Dotum": "k"},
    "fonts-ipafont": {"IPAMincho": "j", "IPAPMincho": "j", "IPAPGothic": "j"},
    "fonts-takao": {"TakaoExMincho": "j", "TakaoPGothic": "j"},
    "fonts-wqy-zenhei": {"AR PL UKai CN": "jc", "WenQuanYi Zen Hei": "kjc"},
    "fonts-wqy-microhei": {"AR PL UKai CN": "jc", "WenQuanYi Micro Hei": "kjc"},
    "fonts-droid-fallback": {"AR PL UKai CN": "jc", "Droid Sans Fallback": "jc"},
}
# Families that come with the systems; the last of each language's is the one that is wanted.
MACOS = {
    ".LastResort": "kjc", "Last Resort High-Efficiency": "kjc", "Apple Myungjo": "k", "AppleMyungjo": "k",
    "Hiragino Mincho ProN": "j", "Kaiti SC": "c", "STSong": "c", "Hiragino Sans": "j", "Heiti SC": "c",
    "Apple SD Gothic Neo": "k",
}  # fmt: skip
WINDOWS = {
    "Batang": "k", "Gungsuh": "k", "FangSong": "c", "KaiTi": "c", "MS Mincho": "j", "Yu Gothic": "j",
    "Microsoft YaHei": "c", "Malgun Gothic": "k",
}  # fmt: skip


@pytest.mark.parametrize(
    ("installed", "wanted"),
    [
        *((families, (list(families)[-1],)) for families in DEBIAN.values()),
        (MACOS, ("Hiragino Sans", "Heiti SC", "Apple SD Gothic Neo")),
        (WINDOWS, ("Yu Gothic", "Microsoft YaHei", "Malgun Gothic")),
    ],
    ids=[*DEBIAN, "macOS", "Windows"],
)
def test_the_plain_font_of_each_system(
    installed: dict[str, str], wanted: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = {"k": KOREAN, "j": JAPANESE, "c": CHINESE}
    monkeypatch.setattr(fonts, "_installed_families", lambda: fonts._rank_families(installed))
    monkeypatch.setattr(
        fonts,
        "_characters_in",
        lambda family, missing: missing & {*"".join(scripts[each] for each in installed[family])},
    )
    for family in wanted:
        for script in installed[family]:
            _, *families = families_for(["ab", scripts[script]])
            assert families[-1] == family  # none after it: each costs time for each label


def test_fonts_without_glyphs_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """They have every character, as a box."""
    monkeypatch.setattr(
        fonts, "_installed_families", lambda: fonts._rank_families([".LastResort", "Last Resort High-Efficiency"])
    )
    assert families_for(["친"]) == ["DejaVu Sans"]


def test_one_note_and_no_warning_for_what_no_font_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("matplotlib")
    # The second has no regular weight, which matplotlib reports as well.
    monkeypatch.setattr(fonts, "_installed_families", lambda: ["DejaVu Sans Light"])
    each = {"map": "m", "head": "mean", "rows": list(KOREAN), "columns": [*KOREAN, "a"], "weights": [[0.25] * 4] * 3}
    folder = AttentionFolder(tmp_path)
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        folder.write("01", "s", "t", [each])
        folder.write("02", "s", "t", [each])
    assert sorted(path.name for path in tmp_path.glob("*.png")) == ["01.png", "02.png"]
    assert caplog.messages == []
    assert folder.complaint.startswith("no font on this machine has 구야친: drawn as boxes; install one")
    assert folder.complaint.count("drawn as boxes") == 1


def test_other_fonts_are_taken_only_where_the_usual_one_lacks_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(fonts, "_installed_families", lambda: ["STIXGeneral", "cmex10", "DejaVu Serif"])
    assert families_for(["plain text", "▁ä ж"]) == ["DejaVu Sans"]
    georgian, mathematical = "ა", "\N{MATHEMATICAL BOLD CAPITAL A}"  # which DejaVu Serif and STIX have
    assert families_for(["plain text", georgian]) == ["DejaVu Sans", "DejaVu Serif"]
    assert families_for([georgian, mathematical]) == ["DejaVu Sans", "STIXGeneral", "DejaVu Serif"]
    assert families_for(["अ"]) == ["DejaVu Sans"]  # none of them has it


def test_new_fonts_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    font_manager = pytest.importorskip("matplotlib.font_manager")
    added: list[str] = []
    monkeypatch.setattr(font_manager.fontManager, "addfont", lambda path: added.append(path))
    new = str(tmp_path / "installed_since.ttf")
    known = [entry.fname for entry in font_manager.fontManager.ttflist]
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [*known, new])
    assert fonts._installed_families.__wrapped__()
    assert added == [new]


def test_what_is_too_large_is_not_drawn_and_said(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    folder, names = AttentionFolder(tmp_path), ["a"] * 300
    folder.write("01", "s", "t", [{"map": "m", "rows": names, "columns": names, "weights": [[0.0] * 300] * 300}])
    assert folder.complaint == "too large to draw: 01; their JSON files have the numbers"
    assert [path.name for path in tmp_path.iterdir()] == ["01.json"]
