"""Tables as a terminal shows them."""

import unicodedata

from rows import each_row

from tolka.metrics.scores import Score
from tolka.metrics.tables import display_width, score_table, table


def test_columns_align_left_and_right() -> None:
    assert table([["tiny", "7"], ["x", "1234"]], ["model", "steps"], "lr").split("\n") == [
        "model  steps",
        "-----  -----",
        "tiny       7",
        "x       1234",
    ]


def test_header_alone_and_no_trailing_blanks() -> None:
    assert table([], ["a", "b"], "ll") == "a  b\n-  -"
    assert table([["one", ""]], ["a", "note"], "ll").split("\n")[-1] == "one"


@each_row(
    ("text", "columns"),
    [
        ("", 0),
        ("abc", 3),
        ("河边", 4),
        ("한국", 4),
        (unicodedata.normalize("NFD", "한국"), 4),
        ("ｶﾅ", 2),  # half-width katakana
        ("Ａ", 2),  # full-width Latin
        ("e\u0301", 1),
        ("x\u0323\u0302", 1),  # marks without a composed form
        ("ក្រុម", 3),  # two letters stand below or above others
        ("a\u200db", 2),
    ],
)
def test_display_width(text: str, columns: int) -> None:
    assert display_width(text) == columns


def test_wide_cells_keep_the_next_column_in_line() -> None:
    rows = table([["河边", "1"], ["ab", "2"], ["e\u0301", "3"]], ["w", "n"], "lr").split("\n")
    assert rows == ["w     n", "----  -", "河边  1", "ab    2", "e\u0301     3"]


def test_score_table_has_intervals_and_signatures() -> None:
    scores = [Score("BLEU", 7.126, (6.5, 7.75), "nrefs:1|tok:13a"), Score("TER", 71.0, None, "nrefs:1|case:lc")]
    assert score_table(scores).split("\n") == [
        "metric  score  95% interval",
        "------  -----  ------------",
        "BLEU     7.13  6.50 to 7.75",
        "TER     71.00",
        "",
        "BLEU: nrefs:1|tok:13a",
        "TER: nrefs:1|case:lc",
    ]


def test_score_table_without_intervals_has_no_column_for_them() -> None:
    assert score_table([Score("BLEU", 7.0, None, "s")]) == "metric  score\n------  -----\nBLEU     7.00\n\nBLEU: s"


def test_tables_in_other_forms() -> None:
    scores = [Score("BLEU", 7.126, (6.5, 7.75), "nrefs:1|tok:13a"), Score("my, own", 0.71234, None, "s", digits=4)]
    assert score_table(scores, "markdown").split("\n")[:3] == [
        "| metric | score | 95% interval |",
        "| --- | ---: | --- |",
        "| BLEU | 7.13 | 6.50 to 7.75 |",
    ]
    assert table([["a|b"]], ["x"], "l", "markdown").endswith("| a\\|b |")
