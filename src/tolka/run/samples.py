"""Example sentences with their translation and attention, for the report page."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tolka.errors import ConfigError
from tolka.report.attention import AttentionFolder
from tolka.text.pairs import Pair
from tolka.translation.attention_maps import AttentionReader
from tolka.translation.torch_engine import TorchEngine
from tolka.translation.translator import Translator

_SHARES = (0.1, 0.5, 0.9)  # of the sentences that are shorter than those shown


def choose_sentences(pairs: Sequence[Pair]) -> list[str]:
    """Return a short, a medium and a long source (in words); fewer if there are not three."""
    ordered = sorted((pair.source for pair in pairs), key=lambda source: len(source.split()))
    return list(dict.fromkeys(ordered[int(share * len(ordered))] for share in _SHARES)) if ordered else []


def show(
    translator: Translator[TorchEngine], sentences: Sequence[str], references: Mapping[str, str], folder: Path
) -> str:
    """Translate sentences; write a JSON file and a picture of each into a folder, replacing what it had.

    The map is the mean over the heads of the last layer's cross-attention; there is none for an architecture without
    it. references: source -> reference, where one is known. Returns why maps could not be drawn well, or "".
    """
    translations = translator.translate(sentences)
    try:
        maps = AttentionReader(translator)(translations)
    except ConfigError:  # nothing to look at
        maps = [[] for _ in sentences]
    folder.mkdir(exist_ok=True)
    for old in (*folder.glob("*.json"), *folder.glob("*.png")):
        old.unlink()
    written = AttentionFolder(folder)
    for number, (source, translation, found) in enumerate(zip(sentences, translations, maps, strict=True), 1):
        numbers = [each.as_dict() for each in found]
        written.write(f"{number:02d}", source, translation.text, numbers, references.get(source, ""))
    return written.complaint
