"""From text to a token store: read, clean, train SentencePiece, encode; reused when nothing changed."""

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tolka.atomic import alone, whole_folder
from tolka.data.buckets import BatchingConfig
from tolka.data.store import TokenStore, write_store
from tolka.errors import DataError
from tolka.progress import bar, say
from tolka.text.cleaning import Reject, Tally, clean
from tolka.text.cleaning_steps import CleaningConfig
from tolka.text.corpus import Corpus, CorpusConfig, Pair, in_chunks
from tolka.text.tokenizer import Tokenizer, TokenizerConfig, train_tokenizer

_FORMAT = 2
_REPORT = "report.json"
REJECTED = "rejected.tsv"
"""The file of a store's folder that has what was left out: reason, source, target."""
_NO_CELL = re.compile(r"[\t\n\r]")
_CHUNK_PAIRS = 10_000


@dataclass(frozen=True)
class Prepared:
    """What training reads. tally: what became of the pairs. remarks: what the tokenizer had to say."""

    folder: Path
    tokenizer: Tokenizer
    store: TokenStore
    tally: Tally
    remarks: list[str]
    reused: bool


def prepare(
    corpus: Corpus,
    config: CorpusConfig,
    cleaning: CleaningConfig,
    tokenizer: TokenizerConfig | Tokenizer,
    batching: BatchingConfig,
    cache: Path,
) -> Prepared:
    """Open the store of this corpus and these settings under `cache`, or make it first.

    tokenizer: how to train one, or one that is trained already. The store's name is a digest of the training text and
    of all that shapes the ids. REJECTED in it has the pairs left out, each after the reason. DataError when cleaning
    leaves nothing to train on.
    """
    key = _key(corpus, config, cleaning, tokenizer, batching)
    folder = cache / key
    reused = (folder / _REPORT).is_file()
    if not reused:
        with alone(cache / f".{key}.lock", lambda: say("waiting for another process that prepares the same text")):
            reused = (folder / _REPORT).is_file()
            if not reused:
                with whole_folder(folder) as work:
                    _make(work, corpus, config, cleaning, tokenizer, batching)
    try:
        report = json.loads((folder / _REPORT).read_text(encoding="utf-8"))
        tally, remarks = Tally.of(report["pairs"]), list(report["remarks"])
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{folder / _REPORT} is damaged ({error}); delete the folder to have it made again") from None
    return Prepared(folder, Tokenizer.load(folder), TokenStore.open(folder), tally, remarks, reused)


def _key(
    corpus: Corpus,
    config: CorpusConfig,
    cleaning: CleaningConfig,
    tokenizer: TokenizerConfig | Tokenizer,
    batching: BatchingConfig,
) -> str:
    settings = {
        "format": _FORMAT,
        "text": corpus.fingerprint(),
        "cleaning": dataclasses.asdict(cleaning),
        "languages": [config.source, config.target],
        "tokenizer": tokenizer.digests if isinstance(tokenizer, Tokenizer) else dataclasses.asdict(tokenizer),
        "max_length": batching.max_length,
    }
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


def _make(
    folder: Path,
    corpus: Corpus,
    config: CorpusConfig,
    cleaning: CleaningConfig,
    tokenizer: TokenizerConfig | Tokenizer,
    batching: BatchingConfig,
) -> None:
    total = sum(source.count() for source in corpus.train)

    def pairs(title: str, into: Tally, reject: Reject) -> Iterator[Pair]:
        with bar(title, total, " pairs") as progress:
            raw = (pair for source in corpus.train for pair in source.read())
            languages = config.source, config.target
            yield from clean(_ticking(raw, progress.update), cleaning, languages, into, reject)

    with (folder / REJECTED).open("w", encoding="utf-8") as stream:

        def reject(pair: Pair, reason: str) -> None:
            stream.write("\t".join(_NO_CELL.sub(" ", text) for text in (reason, pair.source, pair.target)) + "\n")

        tally = Tally()
        for _ in pairs("reading and cleaning", tally, reject):
            pass
        if not tally.kept:
            raise DataError(f"no training pair is left after cleaning ({tally.summary()})")
        remarks: list[str] = []
        if isinstance(tokenizer, TokenizerConfig):
            title = f"training SentencePiece ({tokenizer.type})"
            tokenizer = train_tokenizer(tokenizer, lambda: pairs(title, Tally(), _ignore), remarks.append)
        tokenizer.save(folder)
        kept = write_store(
            folder,
            _encoded(pairs("encoding", Tally(), _ignore), tokenizer, batching.max_length, tally, reject),
            (tokenizer.source_size, tokenizer.target_size),
        )
    if not kept:
        raise DataError(f"no training pair fits batching.max_length ({batching.max_length}): {tally.summary()}")
    report = {"pairs": tally.as_dict(), "remarks": remarks}
    (folder / _REPORT).write_text(json.dumps(report, ensure_ascii=False, indent=1), encoding="utf-8")


def _ignore(pair: Pair, reason: str) -> None:
    """What a first pass has written down already."""


def _ticking(pairs: Iterator[Pair], tick: Callable[[int], object]) -> Iterator[Pair]:
    """The same pairs; counts them on a progress bar in steps that cost nothing."""
    number = 0
    for number, pair in enumerate(pairs, start=1):
        if number % 1000 == 0:
            tick(1000)
        yield pair
    tick(number % 1000)


def _encoded(
    pairs: Iterator[Pair], tokenizer: Tokenizer, max_length: int, tally: Tally, reject: Reject
) -> Iterator[tuple[list[int], list[int]]]:
    """Id rows of the pairs that fit; moves those that do not from those kept to their reason."""
    reason = f"over {max_length} pieces"
    for chunk in in_chunks(pairs, _CHUNK_PAIRS):
        sources = tokenizer.encode_source([pair.source for pair in chunk])
        targets = tokenizer.encode_target([pair.target for pair in chunk])
        for pair, source, target in zip(chunk, sources, targets, strict=True):
            if max(len(source), len(target)) <= max_length:
                yield source, target
            else:
                tally.dropped[reason] += 1
                tally.kept -= 1
                reject(pair, reason)
