"""Abbreviations after whose stop a sentence goes on, by language: the table is abbreviations.yaml."""

import re
from collections.abc import Sequence
from functools import cache

from tolka.system.package_data import table_beside

RARE, COMMON = "rare", "common"
"""The lists of the table: what sentencex lacks, and what it has."""


@cache
def abbreviation_before(code: str, lists: Sequence[str] = (RARE,)) -> re.Pattern[str] | None:
    """Return a pattern of an abbreviation, \\0 and the character after it; None if none is listed for the language."""
    table = table_beside(__file__)
    listed = " ".join(table[name].get(code, "") for name in lists).replace(".", r"\.\s?").split()
    starts = [f"{each[:-1]}\\.\\s*\0\\d" if each.endswith("#") else f"{each}\\.\\s*\0\\S" for each in listed]
    return re.compile(rf"""(?:^|[\s(\["'’„“«-])(?:{"|".join(starts)})""", re.IGNORECASE) if starts else None


def spelt_abbreviations(code: str) -> set[str]:
    """Return the abbreviations of a language with their stops, in small letters, and days if a pattern has some."""
    listed = " ".join(table_beside(__file__)[name].get(code, "") for name in (RARE, COMMON)).lower().split()
    days = range(1, 32) if any("\\d" in each for each in listed) else ()
    return {f"{each}." for each in (*map(str, days), *(word.rstrip("#") for word in listed if "\\" not in word))}
