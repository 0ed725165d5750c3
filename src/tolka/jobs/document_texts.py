"""Translate the texts of documents: by a memory, by the model, and with their markup in its place."""

from collections.abc import Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

from tolka.documents.placing import SoftAlignment, all_kept, lacks_kept_text, needs_alignment, place
from tolka.documents.text import Text
from tolka.errors import ConfigError, DataError
from tolka.jobs.formats import LineResult
from tolka.jobs.notes import UnusualLines
from tolka.jobs.options import TranslateConfig
from tolka.text.direction import Direction
from tolka.text.lines import read_lines, user_path
from tolka.text.readers import FORMATS, reader_of
from tolka.translation.attention_maps import character_alignment
from tolka.translation.request import Request
from tolka.translation.segments import TextError

if TYPE_CHECKING:
    from tolka.translation.batch_decoder import Tick
    from tolka.translation.results import Translation
    from tolka.translation.translator import Translator


class Outcome(NamedTuple):
    """What became of a text. how: translated or reused. why: a person should look at it."""

    how: str
    written: str
    translation: str
    why: list[str]


class TextTranslation:
    """Translates texts, and counts what was unusual."""

    def __init__(self, translator: "Translator[Any]", memory: dict[str, str], tally: UnusualLines) -> None:
        """memory: translations that stand in for the model's, by their sources."""
        self._translator, self._memory, self._tally = translator, memory, tally

    def outcomes(self, texts: Sequence[Text], tick: "Tick") -> list[Outcome]:
        """Translate texts in order, those inside of another one before it. tick: receives each batch's share of them.

        DataError, with its place, for one that cannot be translated.
        """
        new = [text for text in texts if text.source not in self._memory]
        tick(len(texts) - len(new))
        self._tally.counts["lines"] += len(texts) - len(new)
        read, translations = self._translated(new, tick)
        sources = [text.source for text in read]
        flagged = self._translator.flags(sources, translations)
        self._tally.add(LineResult(*each) for each in zip(sources, translations, strict=True))
        from_model = zip(read, translations, self._alignments(read, translations), flagged, strict=True)
        outcomes = []
        for text in texts:
            if text.source in self._memory:
                outcomes.append(self._placed(text, "reused", self._memory[text.source]))
                continue
            as_read, translation, alignment, flags = next(from_model)
            why = [flag for flag in flags if flag != "missing_placeholder"]  # which is put in its place
            outcome = self._placed(as_read, "translated", translation.text, alignment, why)
            for own, numbered in zip(all_kept(text.nodes), all_kept(as_read.nodes), strict=True):
                shown = outcome.translation.replace(numbered.code.text, own.code.text)
                outcome = outcome._replace(translation=shown)
            text.written = outcome.written
            outcomes.append(outcome)
        return outcomes

    def _alignments(self, texts: Sequence[Text], translations: "Sequence[Translation]") -> list[SoftAlignment | None]:
        """Return the alignment of each translation; None where nothing needs it, or the model has none to give."""
        pairs = list(zip(texts, translations, strict=True))
        needed = [needs_alignment(text, translation.text) for text, translation in pairs]
        try:
            maps = iter(self._translator.attention(list(compress(translations, needed))) if any(needed) else ())
        except ConfigError:  # an ensemble
            return [None] * len(pairs)
        return [
            character_alignment(text.source, translation.text, next(maps)) if is_needed else None
            for (text, translation), is_needed in zip(pairs, needed, strict=True)
        ]

    def _translated(self, texts: Sequence[Text], tick: "Tick") -> "tuple[list[Text], list[Translation]]":
        """Return the texts as the model has read them, and their translations."""
        read, request = list(texts), Request(scored=False)
        try:
            translations = self._translator.translate([text.source for text in texts], request, tick)
        except TextError as error:
            raise DataError(f"{texts[error.number].where}: {error}") from None
        lacking = [n for n, text in enumerate(texts) if lacks_kept_text(text, translations[n].text)]
        numbered = [texts[n].numbered() for n in lacking]
        again = self._translator.translate([text.source for text in numbered], request, lambda share: None)
        for n, text, translation in zip(lacking, numbered, again, strict=True):
            if not lacks_kept_text(text, translation.text):
                read[n], translations[n] = text, translation
        return read, translations

    def _placed(
        self,
        text: Text,
        how: str,
        translation: str,
        alignment: SoftAlignment | None = None,
        flags: Sequence[str] = (),
    ) -> Outcome:
        """Write a translation in its place; a text whose translation is blank stays as it is."""
        why = [*flags, *place(text, translation, alignment)] if translation.strip() else ["untranslated"]
        self._tally.count_flags(why)
        return Outcome(how, text.written, translation, why)


def read_memory(config: TranslateConfig, direction: Direction) -> dict[str, str]:
    """Return the translations of input.memory by their sources; the first of several."""
    if not config.input.memory:
        return {}
    path = user_path(config.input.memory)
    reader = reader_of(path)
    if reader is None:
        raise ConfigError(f"input.memory ({path}) is no file of translations: {', '.join(sorted(FORMATS))} are")
    # Two columns that nobody has named are source and target.
    is_table = path.suffix.lower() in (".tsv", ".csv")
    first = next(read_lines(path, limit=config.decoding.line_limit), "") if is_table else ""
    columns = ["1", "2"] if is_table and not all(language in first for language in direction) else []
    pairs = reader(path, str(path), direction, columns, config.decoding.line_limit).read()
    memory: dict[str, str] = {}
    for pair in pairs:
        if not pair.flaw and pair.target.strip():
            memory.setdefault(pair.source, pair.target)
    if not memory:
        raise DataError(f"{path} has no translations from {direction}")
    return memory
