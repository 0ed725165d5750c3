"""The encoding that a line of text is probably in, where it is not UTF-8; for advice, which a person judges."""

import re

# Words with letters beyond ASCII have few of them in the Latin alphabet, and hardly other letters in any other script.
_WORD = re.compile(rb"[A-Za-z\x80-\xff]+")
_MOST_LATIN = 0.67  # share of bytes beyond ASCII in these words, as in été
_LATIN = "WINDOWS-1252", "WINDOWS-1250", "CP850"
_SIGN_IN_WORD = re.compile(r"[^\W\d_](?:(?![’\xad·–—…])[^\w\x00-\x7f]|[¹³])[^\W\d_]")
# Encoding -> characters that are common in it, and which share of a text they are.
_RUSSIAN = "оеаинтсрвлкмдпуяызьбгчй"
_OTHERS = {
    "EUC-KR": ("[가-힣]", 1.0),
    "EUC-JP": ("[ぁ-んァ-ヶー。、]", 0.6),
    "CP932": ("[ぁ-んァ-ヶー。、]", 0.6),
    "GB18030": ("[的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能，。]", 0.15),
    "BIG5": ("[的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能，。]", 0.15),
    "CP949": ("[가-힣]", 1.0),
    "WINDOWS-1251": (f"[{_RUSSIAN}]", 0.9),
    "KOI8-R": (f"[{_RUSSIAN}]", 0.9),
    "WINDOWS-1253": ("[αοιετσνηυρπκμλςάίόέή]", 0.9),
    "WINDOWS-1255": ("[א-ת]", 1.0),
    "WINDOWS-1256": ("[اليمونترب ةعدسهكفقح]", 0.9),
    "CP874": ("[านรอกเงมยลว่้ดทสตะปบคหัิีแไ]", 0.9),
}


def likely_encoding(line: bytes) -> str:
    """Return the encoding in which a line that is not UTF-8 reads most like text, named as iconv and Python do.

    Windows-1252 stands for ISO-8859-1, whose letters it has: the bytes 0x80 to 0x9f are text in it alone.
    """
    words = b"".join(word for word in _WORD.findall(line) if not word.isascii())
    beyond = sum(byte > 0x7F for byte in words)
    if beyond <= _MOST_LATIN * len(words) or beyond == 1:
        found = {name: _decoded(line, name) for name in _LATIN}
        return next((name for name, text in found.items() if text and not _SIGN_IN_WORD.search(text)), _LATIN[0])
    shares = {name: _likeness(_decoded(line, name), *common) for name, common in _OTHERS.items()}
    best = max(shares, key=lambda name: shares[name])
    return best if shares[best] > 0.5 else _LATIN[0]


def _decoded(text: bytes, encoding: str) -> str:
    """Return the text; "" if it is not in the encoding."""
    try:
        return text.decode(encoding)
    except UnicodeDecodeError:
        return ""


def _likeness(text: str, common: str, expected: float) -> float:
    """Return how near the share of common characters comes to what is expected of them, at most 1."""
    beyond = [character for character in text if not character.isascii()]
    return min(1.0, len(re.findall(common, "".join(beyond))) / (expected * max(1, len(beyond))))
