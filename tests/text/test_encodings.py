"""The encoding that is advised is the one that the text was written in."""

import pytest

from tolka.text.encodings import likely_encoding

TEXTS = {
    "WINDOWS-1252": [
        "Der Laden öffnet um neun.",
        "Er sagte „nein“ und ging.",
        "5 € – l’été, «Où ?»",
        "3 m² – ca. 20 °C, süß",
        "é",
        "São Paulo não é a capital.",
    ],
    "WINDOWS-1250": ["Zażółć gęślą jaźń"],
    "CP850": ["für Übung"],  # 0x81 is nothing in Windows-1252
    "EUC-KR": ["안녕하세요, 오늘은 날씨가 좋습니다.", "Price 3만 원입니다"],
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


@pytest.mark.parametrize(("encoding", "text"), [(name, text) for name, texts in TEXTS.items() for text in texts])
def test_likely_encoding(encoding: str, text: str) -> None:
    assert likely_encoding(text.encode(encoding)) == encoding
    assert likely_encoding(b"An English sentence.\t" + text.encode(encoding)) == encoding


def test_bytes_of_no_text() -> None:
    assert likely_encoding(b"\x81\xff\xfe\x81\x8d") == "WINDOWS-1252"


def test_a_long_word_takes_no_longer_than_its_length() -> None:
    assert likely_encoding(b"a" * 10**6 + b" caf\xe9") == "WINDOWS-1252"  # many minutes, if each letter began a search
