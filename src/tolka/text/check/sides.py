"""Faults of sides, seen in a sample: exchanged, both in one language, the same text twice, or one tokenised alone."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from tolka.system.number_format import count_text
from tolka.text.direction import UNDETERMINED, Direction
from tolka.text.languages import installed_identifier
from tolka.text.pairs import Pair, PairSource, Swapped
from tolka.text.scripts import han_script, is_in_other_script, is_known, letters_of, named_han_script, variety_of
from tolka.text.typography import spellings

_SAMPLED_PAIRS, _READ_PAIRS = 400, 40_000
_MOST, _MANY, _FEW = 0.5, 0.2, 0.1  # of the pairs or lines; a line may be too short to tell its language
_LEAST_LINES = 10  # with punctuation, to tell whether a text is tokenised
# Moses' tokenizer sets punctuation apart, and escapes some characters. French sets a blank before ! ? ; and :, so that
# only full stops, commas and their like in other scripts count.
_ESCAPED = r"&(?:apos|quot|#124|#91|#93);|@[-/]@"
_APART = re.compile(rf"(?<=[^\s.,]) (?:[.,。，、।۔]|\.\.\.)(?: |$)|{_ESCAPED}")
_MARKS = re.compile(rf"[.,।۔](?:\s|$)|[。，、]|{_ESCAPED}")
_HAN = {"Hans": "Simplified", "Hant": "Traditional"}
_RARE = 0.01  # of the lines; names are written so in the other script, too
_TOKENISED = (
    "is tokenised, as by Moses (in {share:.0%} of the lines punctuation stands apart, as in 'red .'), and that of "
    "{other} is not: take the text as it was before, or undo it (sacremoses detokenize); nothing need be tokenised for "
    "SentencePiece"
)
_SPELT = "has {name} in {share:.0%} of the lines with either, and that of {other} has not: it is scored as another text"
_EXCHANGE = "exchange corpus.source and corpus.target, or what names the sides: files, corpus.columns, language codes"
SWAPPED = "the sides are swapped"


def spread_sample(source: PairSource) -> Iterator[Pair]:
    """Yield some hundred pairs, spread over the beginning of a text, which is all of most texts."""
    step = max(1, min(source.count(), _READ_PAIRS) // _SAMPLED_PAIRS)
    return islice(source.read(), 0, _READ_PAIRS, step)


def fault_of_sides(pairs: Iterable[Pair], direction: Direction) -> str:
    """Return the fault of the sides of most of some hundred pairs; "" if there is none, or nobody can say."""
    counts: Counter[str] = Counter()
    is_in_the_other = _other_language_test(direction)
    for pair in islice(pairs, _SAMPLED_PAIRS):
        if pair.source and pair.target and not pair.flaw:
            are_other = is_in_the_other(pair.source, 0), is_in_the_other(pair.target, 1)
            counts["pairs"] += 1
            counts["copied"] += pair.source.casefold() == pair.target.casefold()
            counts.update(side for side, is_other in zip(("source", "target"), are_other, strict=True) if is_other)
    (source, target), least, many = direction, _MOST * counts["pairs"], _MANY * counts["pairs"]
    if counts["copied"] > least:
        return (
            f"both sides are the same text in {_of(counts, 'copied')}: was one file, or one column (corpus.columns), "
            "named twice?"
        )
    fewer, more = sorted((counts["source"], counts["target"]))
    if more > least and fewer > many:
        others = "" if fewer == counts["pairs"] else " (the rest could not be told apart)"
        return (
            f"{SWAPPED}: the source is {target} in {_of(counts, 'source')}, and the target {source} in "
            f"{counts['target']}{others}; {_EXCHANGE}"
        )
    for side, own, other in (("source", source, target), ("target", target, source)):
        if counts[side] > least:
            return (
                f"both sides are {other}: so is the {side} in {_of(counts, side)}, where corpus.{side} says {own}; was "
                "the right file or column named?"
            )
    return ""


def _of(counts: Counter[str], what: str) -> str:
    return f"{counts[what]} of {count_text(counts['pairs'], 'pair')} looked at"


def _other_language_test(direction: Direction) -> Callable[[str, int], bool]:
    """Return a test whether a text and its side, 0 or 1, is in the other's language: by letters, or else py3langid."""
    are_known = all(map(is_known, direction))
    if are_known and letters_of(direction[0]) != letters_of(direction[1]):
        return lambda text, side: is_in_other_script(text, direction[side], direction[1 - side])
    identifier = installed_identifier() if are_known else None
    if identifier is None:
        return lambda text, side: False
    likelihoods, is_surely = identifier.likelihoods, identifier.is_surely
    return lambda text, side: is_surely(likelihoods(text), direction[1 - side], direction[side])


def varieties(source: PairSource, sample: Sequence[Pair], drops_scripts: bool = False) -> Iterator[str]:
    """Yield a sentence for each side of Chinese that is also in the other of Simplified and Traditional characters.

    sample: of the source, which has been read for it. drops_scripts: whether cleaning.script does.
    """
    for side, language in () if isinstance(source, Swapped) else source.direction._asdict().items():
        asked, named = variety_of(language), named_han_script(language)
        if asked.script in _HAN and not (named and drops_scripts):
            counts = Counter(han_script(getattr(pair, side)) for pair in sample)
            kept = named or max(_HAN, key=lambda script: counts[script])
            (other,) = _HAN.keys() - {kept}
            if counts[other] > _RARE * len(sample):
                typed = "" if named else f"corpus.{side}={asked.language}-{kept} "
                yield (
                    f"{source.name}: {counts[other]} of {count_text(len(sample), side)} looked at are in {_HAN[other]} "
                    f"characters, {counts[kept]} in {_HAN[kept]} ones; {typed}cleaning.script=true leaves these out"
                )


def _is_tokenised(text: str) -> bool | None:
    """Return whether punctuation stands apart; None if there is none."""
    return bool(_APART.search(text)) if _MARKS.search(text) else None


def _share(is_other: Callable[[str], bool | None], texts: Iterable[str]) -> float | None:
    """Return in which share of the texts that have either of two ways it is the other one; None if too few have."""
    found = [way for text in texts if (way := is_other(text)) is not None]
    return sum(found) / len(found) if len(found) >= _LEAST_LINES else None


def differences(
    training: Sequence[Pair], held_out: Mapping[str, Sequence[Pair]], direction: Direction
) -> Iterator[str]:
    """Yield a sentence for each way in which a side of the training text is written and held-out text is not.

    Ways are tokenisation and the spellings of a language. direction: unknown where there are several.
    """
    for side, language in zip(("source", "target"), direction, strict=True):
        yield from _unlike(side, training, held_out, _is_tokenised, _MOST, _TOKENISED)
        found = (
            _unlike(side, training, held_out, each.is_other, 1 - _FEW, _SPELT.replace("{name}", each.name))
            for each in spellings(language or UNDETERMINED)
        )
        # Of the spellings one, as "’ for '" is among the apostrophes, too.
        yield from islice(chain.from_iterable(found), 1)


def _unlike(
    side: str,
    training: Sequence[Pair],
    held_out: Mapping[str, Sequence[Pair]],
    is_other: Callable[[str], bool | None],
    most: float,
    words: str,
) -> Iterator[str]:
    """Yield a sentence if training text is written in one of two ways, and held-out text in the other.

    most: share of the lines from which on a text is in a way. words: about the share of one, and the name of the other.
    """
    trained = _share(is_other, (getattr(pair, side) for pair in training))
    shares = {name: _share(is_other, (getattr(pair, side) for pair in pairs)) for name, pairs in held_out.items()}
    few = ", ".join(name for name, share in shares.items() if share is not None and share < _FEW)
    many = ", ".join(name for name, share in shares.items() if share is not None and share > most)
    if trained is not None and trained > most and few:
        yield f"the {side} of the training text {words.format(share=trained, other=few)}"
    if trained is not None and trained < _FEW and many:
        share = max(filter(None, shares.values()))
        yield f"the {side} of {many} {words.format(share=share, other='the training text')}"
