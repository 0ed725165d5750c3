"""Texts are split into sentences, and where they are too long, without losing a character."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from rows import each_row

from tolka.translation.splitting import Cut, best_cut, sentences, separator_between, share_of_several

SENTENCES = Path(__file__).parent / "sentences.tsv"


@each_row(
    ("language", "text", "expected"),
    [
        ("en", "I am cold.  Dr. Lee paid $3.50. Why?", ["I am cold.  ", "Dr. Lee paid $3.50. ", "Why?"]),
        ("de", "Am 3. Oktober kam er. Gut, z. B. so.", ["Am 3. Oktober kam er. ", "Gut, z. B. so."]),
        ("ko", "나는 간다. 너는? 그래!", ["나는 간다. ", "너는? ", "그래!"]),
        ("ja", "彼は言った。「行こう。」 はい。", ["彼は言った。", "「行こう。」 ", "はい。"]),
        ("zh", "我爱你。你呢？", ["我爱你。", "你呢？"]),
        ("hi", "मैं जाता हूँ। तुम कहाँ हो?", ["मैं जाता हूँ। ", "तुम कहाँ हो?"]),
        ("deu", "Ich gehe. Du bleibst.", ["Ich gehe. ", "Du bleibst."]),
        ("xx", "I go. You stay.", ["I go. ", "You stay."]),
        ("en", "1. First one. 2. Second one.", ["1. First one. ", "2. Second one."]),
        ("en", "It ends here. ...", ["It ends here. ..."]),
        ("fr", "M. Dupont arrive. Mme. Durand dort.", ["M. Dupont arrive. ", "Mme. Durand dort."]),
        ("fr", "L'art. 5 du code. Il aime l'art. Il peint.", ["L'art. 5 du code. ", "Il aime l'art. ", "Il peint."]),
        ("hi", "डॉ. शर्मा आए। श्री. वर्मा गए।", ["डॉ. शर्मा आए। ", "श्री. वर्मा गए।"]),
        ("tr", "Sn. Yılmaz geldi. Gitti.", ["Sn. Yılmaz geldi. ", "Gitti."]),
        ("pl", "Np. Kowalski, dr. Nowak i prof. Wiśniewski.", ["Np. Kowalski, dr. Nowak i prof. Wiśniewski."]),
        ("nl", "Dhr. Jansen en mevr. De Vries komen.", ["Dhr. Jansen en mevr. De Vries komen."]),
        ("en", "It is approx. 5 km. Go.", ["It is approx. 5 km. ", "Go."]),
        ("de", "Die Fa. Meier liefert. Siehe Abb. 3.", ["Die Fa. Meier liefert. ", "Siehe Abb. 3."]),
        ("pt", "A Profa. Costa, na Av. Brasil.", ["A Profa. Costa, na Av. Brasil."]),
        ("ru", "Это т. е. Пример. Да.", ["Это т. е. Пример. ", "Да."]),
        ("hu", "Dr. Nagy és ifj. Kovács.", ["Dr. Nagy és ifj. Kovács."]),
        ("km", "ខ្ញុំស្រឡាញ់អ្នក។ តោដេក។", ["ខ្ញុំស្រឡាញ់អ្នក។ ", "តោដេក។"]),
        ("km", "ខ្ញុំស្រឡាញ់អ្នក។តោដេក៕", ["ខ្ញុំស្រឡាញ់អ្នក។", "តោដេក៕"]),
        ("fr", "Il a dit M.", ["Il a dit M."]),
        ("en", "...", ["..."]),
        ("en", "", []),
    ],
)
def test_sentences(language: str, text: str, expected: list[str]) -> None:
    assert sentences(text, language) == expected


@each_row(("language", "text"), [row.split("\t") for row in SENTENCES.read_text(encoding="utf-8").splitlines()[1:]])
def test_sentences_are_those_that_a_reader_sees(language: str, text: str) -> None:
    """Stops, quotes, abbreviations and numbers in fifty languages; what only its reader can tell is left whole."""
    assert sentences(text.replace("¦", ""), language) == text.split("¦")


@given(
    st.text(alphabet="aB 。.!?…「」\"'“”»()\u00a0\u3000\t한é😀\u0301\u200d1*-—\n\0។།༎|क"),
    st.sampled_from(["en", "ja", "hi", "km", "de", "xx"]),
)
def test_sentences_joined_are_the_text(text: str, language: str) -> None:
    assert "".join(sentences(text, language)) == text


def test_a_text_at_which_sentencex_fails_is_whole() -> None:
    text = "B\u3000.*」1"
    assert sentences(text, "ja") == [text]


def test_the_share_of_several() -> None:
    assert share_of_several(["I go. You stay.", "I go.", "You stay.", "Mr. Lee stays."], "en") == 0.25
    assert share_of_several([], "en") == 0.0


@each_row(
    ("text", "cut"),
    [
        ("One here. Two there, three.", Cut(9, 10, True)),
        ("甲乙。 丙丁", Cut(3, 4, True)),
        ("甲乙。丙丁", Cut(3, 3, True)),
        ("甲乙、 丙丁", Cut(3, 4, True)),
        ("one two  three", Cut(7, 9, False)),
        ("abcdef", Cut(3, 3, False)),
        ("abe\u0301fg", Cut(2, 2, False)),  # not between e and its accent
        ("a👨‍👩‍👧b", Cut(1, 1, False)),  # a family of three: five code points, one character
        ("e\u0301", Cut(1, 1, False)),  # nothing else is left to cut
        ("a", None),
        ("", None),
    ],
)
def test_the_best_cut(text: str, cut: Cut | None) -> None:
    assert best_cut(text) == cut


@each_row(
    ("blank", "at_mark", "target", "expected"),
    [
        (" ", True, "ko", " "),
        ("  ", True, "en", "  "),
        ("", True, "en", " "),
        ("", False, "en", ""),
        ("", True, "zh", ""),
        (" ", True, "zh-Hant", ""),
        (" ", False, "ja", ""),
        ("\u3000", True, "ja", "\u3000"),
        (" ", True, "", " "),
        ("", True, "xb", ""),
        ("", True, "", ""),
    ],
)
def test_parts_are_rejoined_as_the_target_is_written(blank: str, at_mark: bool, target: str, expected: str) -> None:
    assert separator_between(blank, at_mark, target) == expected
