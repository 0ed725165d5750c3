"""Facts of a training text that settings are chosen by."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from tolka.text.corpora.base import Corpus

_MOST_READ = 200_000  # pairs; their averages do not change with more of them, and reading them takes a second
_LONGEST_WORD = 20.0  # characters on average; a text of longer "words" has no spaces between words
_CHARACTERS_PER_WORD = 2.0  # of such a text: about as many subwords as a spaced text has for its words


@dataclass(frozen=True)
class TextFacts:
    """Facts of a training text, before cleaning.

    pairs: of the whole text. words: of a pair's longer side, on average. distinct: share of the pairs that no earlier
    one equals. vocabulary: different words of both sides. read: the pairs that these facts come from. validation: pairs
    of the validation set. streamed: whether the text is only the beginning of a stream.
    """

    pairs: int
    words: float
    distinct: float
    vocabulary: int
    read: int
    validation: int
    streamed: bool

    @classmethod
    def of(cls, corpus: Corpus) -> "TextFacts":
        """Read the beginning of each training text, in proportion to its length; DataError where one is unreadable."""
        sources = corpus.train
        counts = [source.count() for source in sources]
        share = min(1.0, _MOST_READ / max(sum(counts), 1))
        read, words = 0, 0.0
        pairs: set[int] = set()
        vocabulary: set[str] = set()
        for source, count in zip(sources, counts, strict=True):
            for pair in islice(source.read(), max(1, round(share * count))):
                sides = pair.source.split(), pair.target.split()
                read += 1
                pairs.add(hash((pair.source, pair.target)))
                words += max(map(_word_count, sides))
                vocabulary.update(*sides)
        validation = sum(source.count() for source in corpus.valid)
        return cls(
            pairs=sum(counts),
            words=words / max(read, 1),
            distinct=len(pairs) / max(read, 1),
            vocabulary=len(vocabulary),
            read=read,
            validation=validation,
            streamed=corpus.stream is not None,
        )


def _word_count(words: Sequence[str]) -> float:
    """Return how many words a side has, or would have if there were spaces between them."""
    characters = sum(map(len, words))
    return characters / _CHARACTERS_PER_WORD if characters > _LONGEST_WORD * len(words) else len(words)
