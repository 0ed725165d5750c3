"""Flags of a file: shares of translations and references, and where they are."""

from tolka.translation.flags import _MOST_COUNTED, count_flags, flag_table

SOURCES = ["He has 12 dogs.", "We saw the old house there.", "Nothing.", "It costs 7.50 euros."]
TRANSLATIONS = ["Er hat Hunde.", "Wir sahen das das das das Haus.", "Nichts.", "Es kostet Euro."]
REFERENCES = ["Er hat 12 Hunde.", "Wir sahen dort das alte Haus.", "Nichts.", "Es kostet einiges."]


def test_shares_and_lines() -> None:
    found = count_flags(SOURCES, TRANSLATIONS, REFERENCES)
    assert found == [("missing_number", 0.5, 0.25, [1, 4]), ("repetition", 0.25, 0.0, [2])]
    assert count_flags(SOURCES, [*REFERENCES[:3], "Es kostet 7,50 Euro."], REFERENCES) == []
    assert flag_table(found).splitlines()[2].split() == ["missing_number", "50.0%", "25.0%", "1,", "4"]


def test_of_a_large_file_lines_are_spread_over_it() -> None:
    times = _MOST_COUNTED // 2
    found = count_flags(SOURCES * times, TRANSLATIONS * times, REFERENCES * times)
    # Every second line is looked at, and so the first and the third of each four.
    assert [(each.flag, each.share) for each in found] == [("missing_number", 0.5)]
    assert found[0].lines == [1, 5, 9, 13, 17]
