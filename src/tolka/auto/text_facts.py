"""Facts of a training text that settings are chosen by."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from tolka.metrics.languages import has_spaces
from tolka.text.characters import CharacterForm
from tolka.text.corpora.base import Corpus
from tolka.text.direction import Direction
from tolka.text.pairs import Pair
from tolka.tokenizer.extension import new_side, unspelt_share
from tolka.tokenizer.special_tokens import UNK
from tolka.tokenizer.tokenizer import Tokenizer

_MOST_READ = 200_000  # pairs; their averages do not change with more of them, and reading them takes a second
_OFTEN = 10  # times that a character comes which is worth a subword where no language is new
_SPELT, _LEAST_SPELT = 1000, 50  # pairs that are cut into a model's subwords, of all texts and of each
_LONGEST_WORD = 20  # characters on average; a text of longer "words" has no spaces between words
_WORD = 2  # characters of such a text that count as a word: about as many subwords as a spaced text has for its words


@dataclass(frozen=True)
class TextFacts:
    """Facts of a training text, before cleaning.

    pairs: of the whole text, without those that have a blank side, and those that an earlier one equals. words: of
    a pair's longer side, on average. repetition: how often a word comes, on average over the different words of
    both sides. characters: different ones of both sides. unspelt: share of a side's subwords, the larger of both,
    that are bytes or unknown to the model to start from; 0 without one. validation: pairs of the validation set.
    streamed: whether the text is only the beginning of a stream. unknown: number of characters that the model cannot
    spell at all. new_languages: those that a model with tags has none for. subwords: of the model's, that spell a word
    of that one of them which has the most, on average. new_pairs: those of texts in new languages.
    """

    pairs: int
    words: float
    repetition: float
    characters: int
    unspelt: float
    validation: int
    streamed: bool
    unknown: int = 0
    new_languages: tuple[str, ...] = ()
    subwords: float = 0.0
    new_pairs: int = 0

    @classmethod
    def of(cls, corpus: Corpus, tokenizer: Tokenizer | None = None, form: CharacterForm | None = None) -> "TextFacts":
        """Read the beginning of each training text, in proportion to its length; DataError where one is unreadable.

        tokenizer: of the model to start from, to which subwords of the text could be added. form: that training text
        gets.
        """
        sources = corpus.train
        counts = [source.count() for source in sources]
        share = min(1.0, _MOST_READ / max(sum(counts), 1))
        read, whole, longer, both = 0, 0, 0, 0
        pairs: set[int] = set()
        vocabularies: tuple[set[str], set[str]] = set(), set()
        characters: set[str] = set()
        # With a model to start from: of each text, pairs to cut into its subwords, and characters that are worth one.
        spelt: list[tuple[Direction, list[Pair]]] = []
        known = tokenizer.languages if tokenizer else []
        new = [new_side(source.direction, known) for source in sources]
        occurrences: Counter[str] = Counter()
        rare_too: set[str] = set()
        for source, count, side in zip(sources, counts, new, strict=True):
            spaced = [has_spaces(language) for language in source.direction]
            spelt.append((source.direction, []))
            for pair in islice(source.read(), max(1, round(share * count))):
                read += 1
                if pair.flaw or not (pair.source.strip() and pair.target.strip()):
                    continue
                whole += 1
                if tokenizer and len(spelt[-1][1]) < max(_LEAST_SPELT, _SPELT // len(sources)):
                    spelt[-1][1].append(form.of(source.direction).pair(pair) if form else pair)
                pairs.add(hash((pair.source, pair.target)))
                texts = pair.source, pair.target
                sides = [_words(text, spaces) for text, spaces in zip(texts, spaced, strict=True)]
                characters.update(*texts)
                if tokenizer:
                    occurrences.update("".join(texts))
                    rare_too.update(*texts if side else ())
                longer += max(map(len, sides))
                both += sum(map(len, sides))
                for vocabulary, words in zip(vocabularies, sides, strict=True):
                    vocabulary.update(words)
        frequent = [each for each, number in occurrences.items() if number >= _OFTEN or each in rare_too]
        distinct = len(pairs) / max(read, 1)
        return cls(
            pairs=round(distinct * sum(counts)),
            words=longer / max(whole, 1),
            repetition=both / max(sum(map(len, vocabularies)), 1),
            characters=len(characters),
            unspelt=max(_unspelt(own, tokenizer) for _, own in spelt) if tokenizer else 0.0,
            # That of a stream is not known before it is read.
            validation=sum(source.count() or sum(1 for _ in source.read()) for source in corpus.valid),
            streamed=corpus.stream is not None,
            unknown=_unknown(frequent, tokenizer, form) if tokenizer else 0,
            new_languages=tuple({code: None for each, _ in spelt if known for code in each if code not in known}),
            subwords=max(_subwords(own, tokenizer, each) for each, own in spelt) if tokenizer else 0.0,
            new_pairs=round(distinct * sum(count for side, count in zip(new, counts, strict=True) if side)),
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


def _subwords(pairs: Sequence[Pair], tokenizer: Tokenizer, direction: Direction) -> float:
    """Return `TextFacts.subwords` of some pairs."""
    shares, new = [0.0], new_side(direction, tokenizer.languages)
    encoders = {"source": tokenizer.encode_source, "target": tokenizer.encode_target}
    for (side, encode), language in zip(encoders.items(), direction, strict=True):
        if new in (side, "both"):
            texts, spaced = [getattr(pair, side) for pair in pairs], has_spaces(language)
            words = sum(len(_words(text, spaced)) for text in texts)
            shares.append(sum(map(len, encode(texts))) / max(words, 1))
    return max(shares)


def _unknown(characters: Iterable[str], tokenizer: Tokenizer, form: CharacterForm | None) -> int:
    """Return how many of some characters the model cannot spell, on the side that knows fewer of them."""
    texts = [text for each in characters if (text := (form.source(each) if form else each).strip())]
    sides = tokenizer.encode_source(texts), tokenizer.encode_target(texts)
    return max(sum(UNK in row for row in rows) for rows in sides)
