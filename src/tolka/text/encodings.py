"""The encoding that text is probably in, where it is not UTF-8; for advice, which a person judges."""

import re

# Words with letters beyond ASCII have few of them in the Latin alphabet, and hardly other letters in any other script.
_WORD = re.compile(rb"[A-Za-z\x80-\xff]+")
_MOST_LATIN = 0.67  # share of bytes beyond ASCII in these words, as in été
_SIGNS = "„“”‚‘’«»‹›–—…·§°€£©®™±¡¿ªºµ×²½\xa0\xad"
# What is not text: a sign inside of a word, one that stands nowhere but before a word or a number at the end of one,
# and control characters.
_MISPLACED = re.compile(
    r"(?<=[^\W\d_])(?:(?![’\xad·–—…ªº])[^\w\x00-\x7f\ufffd]|[¹²³])(?=[^\W\d_])|(?<=[^\W\d_])[¿¡£¥¼¾¹]|(?<![mk])[²³]"
    r"|[\x80-\x9f\ufffd]"
)
# Encoding -> letters beyond ASCII of languages that are written in it; of encodings that tie, the first is chosen.
# Italian has its own only where a word ends, and Portuguese one before an e alone: elsewhere they are Czech's and
# Hungarian's in Windows-1250.
_ALPHABETS = {
    "WINDOWS-1252": (
        "[äöüß]",
        "[àâæçéèêëîïôùûüÿœ]",
        "[áéíñóúü]",
        "[àáâãçéêíóôúü]|õ(?=e)",
        r"[àèéìòù]\b",
        "[åäöé]",
        "[äöõüšž]",
        "[æøåé]",
        "[éëèïóöü]",
        "[àçèéíïòóúü·]",
        r"[áéíóúýæö]|\bþ|\Bð",  # Icelandic; Turkish in Windows-1254 has these letters elsewhere in a word
    ),
    "WINDOWS-1250": ("[áčďéěíňóřšťúůýž]", "[áäčďéíĺľňóôŕšťúýž]", "[ąćęłńóśźż]", "[áéíóöőúüű]", "[ăâîşţ]", "[čćđšž]"),
    "WINDOWS-1254": ("[çğıöşüâî]",),
    "WINDOWS-1257": ("[ąčęėįšųūž]", "[āčēģīķļņšūž]", "[äöõüšž]"),
    "CP850": ("[äöüß]", "[àâæçéèêëîïôùûü]", "[áéíñóúü]", "[àáâãçéêíóôúü]|õ(?=e)", "[åäöé]", "[æøåé]"),
}
_ALPHABETS["ISO-8859-2"] = _ALPHABETS["CP852"] = _ALPHABETS["WINDOWS-1250"]
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


def likely_encoding(text: bytes) -> str:
    """Return the encoding in which the lines that are not UTF-8 read most like text, named as iconv and Python do.

    Windows-1252 stands for ISO-8859-1, whose letters it has: the bytes 0x80 to 0x9f are text in it alone.
    """
    lines = [line for line in text.split(b"\n") if _decoded(line, "utf-8") is None]
    words = b"".join(word for word in _WORD.findall(b"\n".join(lines)) if len(word) > 1 and not word.isascii())
    if sum(byte > 0x7F for byte in words) > _MOST_LATIN * len(words):
        shares = {name: _likeness(lines, name, *common) for name, common in _OTHERS.items()}
        best = max(shares, key=lambda name: shares[name])
        if shares[best] > 0.5:
            return best
    return max(_ALPHABETS, key=lambda name: _coverage(b"\n".join(lines).decode(name, "replace"), *_ALPHABETS[name]))


def _coverage(text: str, *alphabets: str) -> float:
    """Return the share of characters beyond ASCII that are letters of one language, or signs in their place."""
    text = text.replace("İ", "ı").lower()  # in lower case İ would be two characters
    misplaced = len(_MISPLACED.findall(text))
    beyond = [character for character in text if not character.isascii()]
    signs = sum(character in _SIGNS for character in beyond)
    covered = max(len(re.findall(alphabet, text)) for alphabet in alphabets)
    return (covered + signs - 2 * misplaced) / max(1, len(beyond))


def _likeness(lines: list[bytes], encoding: str, common: str, expected: float) -> float:
    """Return how near the share of common characters comes to what is expected of them, at most 1.

    A line that is not in the encoding has none of them.
    """
    texts = [_decoded(line, encoding) for line in lines]
    beyond = [character for text in texts for character in text or "" if not character.isascii()]
    share = min(1.0, len(re.findall(common, "".join(beyond))) / (expected * max(1, len(beyond))))
    return share * sum(len(line) for line, text in zip(lines, texts, strict=True) if text) / sum(map(len, lines))


def _decoded(text: bytes, encoding: str) -> str | None:
    """Return the text; None if it is not in the encoding."""
    try:
        return text.decode(encoding)
    except UnicodeDecodeError:
        return None
