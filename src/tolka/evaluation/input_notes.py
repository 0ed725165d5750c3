"""Notes on texts that are to be scored: what is likely a mistake. Nothing is refused, and no score changes."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import regex

from tolka.errors import DataError
from tolka.metrics.languages import language_notes
from tolka.metrics.metric import References
from tolka.metrics.options import MetricsConfig
from tolka.metrics.scores import line_chrf, score
from tolka.system.number_format import count_text
from tolka.text.characters import CharacterForm
from tolka.text.languages import certain_language, installed_identifier
from tolka.text.scripts import is_in_other_script, is_known
from tolka.text.typography import spellings

_LOOKED_AT = 200  # lines that show a text's language
_MANY = 100  # lines that end in " .", from which on sacrebleu warns; in a shorter text a tenth of them
# Description for the message -> what lines that are not plain text match, and the advice.
_NOT_PLAIN_TEXT = {
    "contain subword tokens (▁ or @@)": (regex.compile(r"▁|\S@@(?: |$)"), "join them to words first"),
    "are rows of an n-best list": (regex.compile(r"^\d+ \|\|\| "), "give the best translation of each line alone"),
    "contain escapes such as &quot;": (regex.compile(r"&(?:[a-zA-Z]+\d*|#x?\p{AHex}+);"), "unescape them first"),
    "are JSON": (regex.compile(r"^\{.*\}$"), "give the text alone"),
    "contain a tab": (regex.compile("\t"), "give the column of the text alone"),
}
# By which letters a text of an unnamed language is recognised: kana come before Han, which Japanese has as well.
_SCRIPTS = {
    "ja": regex.compile(r"[\p{Hiragana}\p{Katakana}]"),
    "ko": regex.compile(r"\p{Hangul}"),
    "zh": regex.compile(r"\p{Han}"),
    "th": regex.compile(r"\p{Thai}"),
    "lo": regex.compile(r"\p{Lao}"),
    "km": regex.compile(r"\p{Khmer}"),
    "my": regex.compile(r"\p{Myanmar}"),
}
# Shares of equal lines that are noted: a file given twice; a model that copies, of whose lines some are names.
_REPRODUCED, COPIED = 0.95, 0.5
# Lines, and chrF2, from which on a shift is noted: unrelated sentences have a chrF2 of about 13.
_FEWEST_SHIFTED, _SHIFTED = 10, 10.0
_SHARE_OF_SCRIPT = 0.2  # of the letters: Japanese has kana between its kanji
_LEAST_GAIN = 1.0  # points, from which on a difference in spelling is noted: less is seen in any two translators

NamedText = tuple[str, Sequence[str]]
"""The name of a text for messages, such as its file, and its lines."""


def as_text(hypotheses: NamedText) -> tuple[NamedText, str]:
    """Return the texts, also of the JSON lines that `output.format=jsonl` wrote, and a note if they are such lines."""
    name, lines = hypotheses
    try:
        texts = [json.loads(line)["hypotheses"][0]["text"] for line in lines]
        "".join(texts).encode()  # an error for what is not a text, or has half a surrogate pair
    except (ValueError, LookupError, TypeError, RecursionError):
        return hypotheses, ""
    return (name, texts), f"{name} has JSON lines: the first hypothesis of each is scored"


def notes_on(
    systems: Sequence[NamedText],
    references: Sequence[NamedText],
    metrics: MetricsConfig,
    language: str,
    source: NamedText | None,
) -> Iterator[str]:
    """Yield what is likely a mistake in systems' translations, references or sources, "" included.

    language: of the target; "" if unknown. source: None if it is not known. DataError for line counts that differ.
    """
    yield from text_notes(source, references[0]) if source else ()
    for number, system in enumerate(systems):
        if len(system[1]) != len(references[0][1]):
            raise count_error(system, references[0])
        yield from text_notes(system, references[0])
        yield shift_note(system, references[0])
        yield spelling_note(system, references, metrics, language)
        yield from (equal_note(system, each, _REPRODUCED) for each in references)
        yield from (equal_note(earlier, system, 1.0) for earlier in systems[:number])
    # The references, too: the language, and not the translation, may be the mistake.
    yield from (language_note(each, language) for each in (*systems, *references))
    yield unnamed_language_note(references[0]) if not language else ""
    yield from language_notes(metrics, language)


def without_repeats(notes: Iterable[str]) -> list[str]:
    """Return the notes that say something, each once: two looks at the references may have found the same."""
    return [*dict.fromkeys(filter(None, notes))]


def count_error(system: NamedText, references: NamedText) -> DataError:
    """Return the error for texts that differ in their number of lines."""
    (name, lines), (other, wanted) = system, references
    times, rest = divmod(len(lines), max(len(wanted), 1))
    hint = "" if rest or times < 2 else f" (is it an n-best list with {times} of each? one of each can be scored)"
    count = count_text(len(lines), "line")
    return DataError(f"{name} has {count} but {other} has {len(wanted)}; scores compare line by line{hint}")


def blank_note(texts: Iterable[NamedText]) -> str:
    """Return how many lines of a test set are blank; "" if none is."""
    blank = [(sum(not line.strip() for line in lines), len(lines), name) for name, lines in texts]
    counts = ", ".join(f"{count} of {total} lines of {name}" for count, total, name in blank if count)
    return counts and (
        f"blank: {counts}; they are scored as all others, as sacreBLEU does. A blank translation misses all words, and "
        "with a blank reference any word is wrong: if such lines are not part of the test, leave them out of all files"
    )


def text_notes(hypotheses: NamedText, references: NamedText) -> Iterator[str]:
    """Yield notes on what does not look like plain text. Each text is a name and its lines."""
    (name, own), (other, wanted) = hypotheses, references
    counts = [sum(line.endswith(" .") for line in lines) for lines in (own, wanted)]
    if max(counts) >= min(_MANY, max(1, len(own) / 10)):
        yield (
            f"{_counted(counts, (name, other))} end in a tokenised period (' .'), as if they were not detokenised: "
            "scores are of plain text, and those of tokenised text do not compare"
        )
    for what, (pattern, remedy) in _NOT_PLAIN_TEXT.items():
        counts = [sum(bool(pattern.search(line)) for line in lines) for lines in (own, wanted)]
        # What both texts have about as often belongs to the test set.
        if max(counts) > len(own) / 100 and min(counts) < max(counts) / 2:
            yield f"{_counted(counts, (name, other))} {what}: {remedy}"


def spelling_note(system: NamedText, references: Sequence[NamedText], metrics: MetricsConfig, language: str) -> str:
    """Return a note if a text and its references are written differently, and what they score when they are not."""
    texts, counts, count = [system[1], *(lines for _, lines in references)], list[str](), len(system[1])
    whole = "\n".join([*texts[0], *texts[1]])
    for spelling in spellings(language):
        if spelling.rewrite(whole) == whole:  # as of nearly all texts, in a twentieth of the time that the lines take
            continue
        ways = [{spelling.is_other(line) for line in lines} for lines in zip(*texts[:2], strict=True)]
        differing = ways.count({True, False})
        if differing and differing >= spelling.least * count:
            counts.append(f"{spelling.name} in {differing}")
            texts = [[spelling.rewrite(line) for line in lines] for lines in texts]
    if not counts:
        return ""
    suited = [each for each in metrics.names if each in ("bleu", "chrf", "chrf++")]
    config = replace(metrics, names=suited[:1] or ["chrf"], command="", bootstrap=0)
    (before,) = score(system[1], References([lines for _, lines in references]), config, language)
    (equal,) = score(texts[0], References(texts[1:]), config, language)
    if equal.value < before.value + _LEAST_GAIN:
        return ""
    return (
        f"{system[0]} and {references[0][0]} are written differently ({', '.join(counts)} of {count} lines): with "
        f"these made equal, {before.name} is {equal.value:.1f} and not {before.value:.1f}"
    )


def form_note(references: NamedText, form: CharacterForm) -> str:
    """Return a note if references are not in the form in which a model writes them."""
    (name, lines), letters = references, replace(form, control="keep", blanks="keep")
    others = sum(letters.target(line) != line.strip() for line in lines)
    settings = [f"cleaning.{key}={value}" for key, value in vars(letters).items() if value in ("nfc", "standard")]
    note = (
        f"{others} of {len(lines)} references of {name} have other characters than the model writes "
        f"({', '.join(settings)}): BLEU, chrF and TER take references exactly as they are, and PPL has the model's"
    )
    return note if others else ""


def _counted(counts: Sequence[int], names: Sequence[str]) -> str:
    return " and ".join(f"{count} lines of {name}" for count, name in zip(counts, names, strict=True) if count)


def shift_note(system: NamedText, references: NamedText) -> str:
    """Return a note if the last translations are those of the lines before or after theirs; else ""."""
    (name, own), (other, wanted) = (system[0], system[1][-_LOOKED_AT:]), (references[0], references[1][-_LOOKED_AT:])
    if len(own) < _FEWEST_SHIFTED:
        return ""
    ends = len(own) - 1
    as_they_are, before, after = (
        float(line_chrf(own[row : row + ends], wanted[to : to + ends]).mean()) for row, to in ((0, 0), (1, 0), (0, 1))
    )
    if max(before, after) < as_they_are + _SHIFTED:
        return ""
    found, place = (before, "one line earlier") if before > after else (after, "one line later")
    return (
        f"the last {len(own)} lines of {name} fit {other} {place} (chrF2 {found:.0f}, not {as_they_are:.0f}): is a "
        "line missing, or one too many?"
    )


def equal_note(one: NamedText, other: NamedText, share: float) -> str:
    """Return a note if at least this share of the lines, blank ones aside, is the same in both texts; else ""."""
    (name, lines), (other_name, other_lines) = one, other
    pairs = [(line.strip(), other_line.strip()) for line, other_line in zip(lines, other_lines, strict=True)]
    is_equal = [line == other_line for line, other_line in pairs if line or other_line]
    if not any(is_equal) or sum(is_equal) < share * len(is_equal):
        return ""
    if name == other_name:
        return f"{name} is given twice, for two sides of the comparison: is it the right file?"
    return f"{sum(is_equal)} of {len(lines)} lines of {name} are those of {other_name}: is it the right file?"


def language_note(text: NamedText, language: str) -> str:
    """Return a note if the text is surely not in this language: by its script, or by py3langid if it is installed."""
    name, lines = text
    beginning = "\n".join(lines[:_LOOKED_AT])
    if is_in_other_script(beginning, language):
        return f"most letters of {name} are not of the script of {language!r}: is it the right file, the right model?"
    identifier = installed_identifier() if is_known(language) else None
    likelihoods = identifier.likelihoods(beginning) if identifier else {}
    other = certain_language(likelihoods) if identifier and identifier.is_other(likelihoods, language) else ""
    return other and f"{name} looks like {other!r}, not {language!r}: is it the right file, the right model?"


def unnamed_language_note(references: NamedText) -> str:
    """Return a note if the script shows a language that BLEU or TER splits in its own way; none was named."""
    name, lines = references
    text = "".join(lines[:_LOOKED_AT])
    # Digits, signs and blanks are of no script.
    letters = len(regex.findall(r"\p{L}", text))
    for language, pattern in _SCRIPTS.items():
        if len(pattern.findall(text)) > _SHARE_OF_SCRIPT * letters:
            return f"{name} looks like {language!r}: say language={language}, as BLEU and TER depend on it"
    return ""
