"""Facts of a training text that settings are chosen by."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from tolka.metrics.languages import has_spaces
from tolka.text.characters import CharacterForm
from tolka.text.corpora.base import Corpus
from tolka.text.pairs import Pair
from tolka.tokenizer.extension import unspelt_share
from tolka.tokenizer.special_tokens import UNK
from tolka.tokenizer.tokenizer import Tokenizer

_MOST_READ = 200_000  # pairs; their averages do not change with more of them, and reading them takes a second
_OFTEN = 10  # times that a character comes which is worth a subword where no language is new
_SPELT = 1000  # pairs that are cut into a model's subwords
_LONGEST_WORD = 20  # characters on average; a text of longer "words" has no spaces between words
_WORD = 2  # characters of such a text that count as a word: about as many subwords as a spaced text has for its words


@dataclass(frozen=True)
class TextFacts:
    """Facts of a training text, before cleaning.

    pairs: of the whole text, without those that have a blank side, and those that an earlier one equals. words: of
    a pair's longer side, on average. repetition: how often a word comes, on average over the different words of
    both sides. characters: different ones of both sides. unspelt: share of a side's subwords, the larger of both,
    that are bytes or unknown to the model to start from; 0 without one. validation: pairs of the validation set.
    streamed: whether the text is only the beginning of a stream. unknown: number of characters of the first text
    that the model cannot spell at all. new_language, new_side: of the first text, the language that a model with
    tags has none for, and its side; "" if there is none. subwords: of the model's, that spell a word in that
    language, on average. first_pairs: those of the first text.
    """

    pairs: int
    words: float
    repetition: float
    characters: int
    unspelt: float
    validation: int
    streamed: bool
    unknown: int = 0
    new_language: str = ""
    new_side: str = ""
    subwords: float = 0.0
    first_pairs: int = 0

    @property
    def running_words(self) -> float:
        """Words of the longer sides; inf for a stream, whose end is not known."""
        return math.inf if self.streamed else self.pairs * self.words

    @classmethod
    def of(
        cls,
        corpus: Corpus,
        tokenizer: Tokenizer | None = None,
        form: CharacterForm | None = None,
    ) -> "TextFacts":
        """Read the beginning of each training text, in proportion to its length; DataError where one is unreadable.

        tokenizer: of the model to start from, to which subwords of the first text could be added. form: that training
        text gets.
        """
        sources = corpus.train
        counts = [source.count() for source in sources]
        share = min(1.0, _MOST_READ / max(sum(counts), 1))
        read, whole, longer, both = 0, 0, 0, 0
        pairs: set[int] = set()
        vocabularies: tuple[set[str], set[str]] = set(), set()
        characters: set[str] = set()
        spelt: list[Pair] = []
        occurrences: Counter[str] = Counter()  # of characters of the first text
        for source, count in zip(sources, counts, strict=True):
            spaced = [has_spaces(language) for language in source.direction]
            for pair in islice(source.read(), max(1, round(share * count))):
                read += 1
                if pair.flaw or not (pair.source.strip() and pair.target.strip()):
                    continue
                whole += 1
                if tokenizer and source is sources[0] and len(spelt) < _SPELT:
                    spelt.append(form.pair(pair) if form else pair)
                pairs.add(hash((pair.source, pair.target)))
                texts = pair.source, pair.target
                sides = [_words(text, spaces) for text, spaces in zip(texts, spaced, strict=True)]
                characters.update(*texts)
                if tokenizer and source is sources[0]:
                    occurrences.update("".join(texts))
                longer += max(map(len, sides))
                both += sum(map(len, sides))
                for vocabulary, words in zip(vocabularies, sides, strict=True):
                    vocabulary.update(words)
        tagged = {*tokenizer.languages} if tokenizer else set[str]()
        named = zip(("target", "source"), reversed(sources[0].direction), strict=True) if tagged else ()
        new_side, new_language = next(((side, code) for side, code in named if code not in tagged), ("", ""))
        distinct = len(pairs) / max(read, 1)
        return cls(
            pairs=round(distinct * sum(counts)),
            words=longer / max(whole, 1),
            repetition=both / max(sum(map(len, vocabularies)), 1),
            characters=len(characters),
            unspelt=_unspelt(spelt, tokenizer) if tokenizer else 0.0,
            # That of a stream is not known before it is read.
            validation=sum(source.count() or sum(1 for _ in source.read()) for source in corpus.valid),
            streamed=corpus.stream is not None,
            unknown=_unknown(occurrences, tokenizer, form, 1 if new_language else _OFTEN) if tokenizer else 0,
            new_language=new_language,
            new_side=new_side,
            subwords=_subwords(spelt, tokenizer, new_side, new_language) if tokenizer and new_side else 0.0,
            first_pairs=round(distinct * counts[0]),
        )


def _words(text: str, has_spaces: bool) -> Sequence[str]:
    """Return the words of a text; pieces of two characters where there are no spaces between words."""
    words = text.split()
    if has_spaces and len(text) <= _LONGEST_WORD * len(words):
        return words
    return [text[start : start + _WORD] for start in range(0, len(text), _WORD)]


def _unspelt(pairs: Sequence[Pair], tokenizer: Tokenizer) -> float:
    """Return `TextFacts.unspelt` of some pairs."""
    source = list(chain.from_iterable(tokenizer.encode_source([pair.source for pair in pairs])))
    target = list(chain.from_iterable(tokenizer.encode_target([pair.target for pair in pairs])))
    return max(unspelt_share(source, tokenizer.source_pieces), unspelt_share(target, tokenizer.target_pieces))


def _subwords(pairs: Sequence[Pair], tokenizer: Tokenizer, side: str, language: str) -> float:
    """Return `TextFacts.subwords` of some pairs."""
    texts, spaced = [getattr(pair, side) for pair in pairs], has_spaces(language)
    encode = tokenizer.encode_source if side == "source" else tokenizer.encode_target
    return sum(map(len, encode(texts))) / max(sum(len(_words(text, spaced)) for text in texts), 1)


def _unknown(counts: Mapping[str, int], tokenizer: Tokenizer, form: CharacterForm | None, least: int) -> int:
    """Return `TextFacts.unknown` of characters that come `least` times, on the side that knows fewer of them."""
    frequent = [character for character, number in counts.items() if number >= least]
    texts = [text for each in frequent if (text := (form.source(each) if form else each).strip())]
    sides = tokenizer.encode_source(texts), tokenizer.encode_target(texts)
    return max(sum(UNK in row for row in rows) for rows in sides)
