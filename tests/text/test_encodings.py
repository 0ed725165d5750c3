"""The encoding that is advised is the one that the text was written in."""

import pytest
from rows import each_row

from tolka.text.encodings import likely_encoding

TEXTS = {
    "WINDOWS-1252": [
        "Der Laden öffnet um neun.",
        "Er sagte „nein“ und ging.",
        "5 € – l’été, «Où ?»",
        "é",
        "São Paulo não é a capital.",
        "Il file non può essere aperto, perché non è più qui.",
        "Það er ekki hægt að opna skrána; þú mátt reyna síðar.",
    ],
    "WINDOWS-1250": [
        "Zażółć gęślą jaźń",
        "Příliš žluťoučký kůň úpěl ďábelské ódy.",
        "Árvíztűrő tükörfúrógép",
        "Ștergeți fișierul și încercați din nou, vă rugăm.".translate(str.maketrans("Șșț", "Şşţ")),
        "Datoteka se ne može pročitati; već postoji.",
    ],
    "ISO-8859-2": ["Gdzieś są książki, źle ułożone.", "Soubor nelze otevřít, protože neexistuje."],
    "WINDOWS-1254": ["Bu dosya açılamadı; lütfen başka bir ad seçiniz."],
    "WINDOWS-1257": ["Nepavyko išsaugoti šių failų, kurių jūs ieškojote.", "Lūdzu, ņemiet vērā šo kļūdu."],
    "CP850": ["für Übung", "Der Laden öffnet um neun, wir hören."],
    "CP949": ["안녕하세요, 오늘은 날씨가 좋습니다.", "Price 3만 원입니다"],
    "CP932": ["こんにちは、元気ですか。", "カタカナのテストです", "保存された環境データを読み込み中"],
    "EUC-JP": ["こんにちは、元気ですか。"],
    "GB18030": ["我不是中国人，但是我在北京。", "忘记了您的密码或用户名？"],
    "BIG5": ["這個城市很大，我們在台北。", "建立帳號後即可編輯更多用戶選項。"],
    "WINDOWS-1251": ["Привет, как дела?"],
    "KOI8-R": ["Привет, как дела?"],
    "WINDOWS-1253": ["Η Ελλάδα είναι όμορφη."],
    "WINDOWS-1255": ["שלום, מה שלומך?"],
    "WINDOWS-1256": ["مرحبا، كيف حالك؟"],
    "CP874": ["สวัสดีครับ วันนี้อากาศดี"],
}


@each_row(("encoding", "text"), [(name, text) for name, texts in TEXTS.items() for text in texts])
def test_likely_encoding(encoding: str, text: str) -> None:
    assert likely_encoding(text.encode(encoding)) == encoding
    assert likely_encoding(b"An English sentence.\t" + text.encode(encoding)) == encoding


def test_lines_that_are_utf_8_say_nothing_of_the_others() -> None:
    assert likely_encoding("안녕하세요\n".encode() * 9 + "Soubor nelze otevřít.".encode("cp1250")) == "WINDOWS-1250"


@pytest.mark.slow
def test_a_long_word_takes_no_longer_than_its_length() -> None:
    assert likely_encoding(b"a" * 10**6 + b" caf\xe9") == "WINDOWS-1252"  # many minutes, if each letter began a search
