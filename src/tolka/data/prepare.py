"""From text to a token store: read, clean, train SentencePiece, encode; reused when nothing changed."""

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tolka.atomic import alone, whole_folder
from tolka.data.buckets import BatchingConfig
from tolka.data.store import TokenStore, in_chunks, write_store
from tolka.errors import DataError
from tolka.progress import bar, say
from tolka.text.corpus import Corpus, CorpusConfig, Pair, clean, summary
from tolka.text.tokenizer import Tokenizer, TokenizerConfig, train_tokenizer

_FORMAT = 1
_REPORT = "report.json"
_CHUNK_PAIRS = 10_000


@dataclass(frozen=True)
class Prepared:
    """What training reads. counts: pairs kept, and pairs left out by reason. remarks: what the tokenizer had to say."""

    folder: Path
    tokenizer: Tokenizer
    store: TokenStore
    counts: Counter[str]
    remarks: list[str]
    reused: bool


def prepare(
    corpus: Corpus,
    config: CorpusConfig,
    tokenizer: TokenizerConfig | Tokenizer,
    batching: BatchingConfig,
    cache: Path,
) -> Prepared:
    """Open the store of this corpus and these settings under `cache`, or make it first.

    tokenizer: how to train one, or one that is trained already. The store's name is a digest of the training text and
    of all that shapes the ids. DataError when cleaning leaves nothing to train on.
    """
    key = _key(corpus, config, tokenizer, batching)
    folder = cache / key
    reused = (folder / _REPORT).is_file()
    if not reused:
        with alone(cache / f".{key}.lock", lambda: say("waiting for another process that prepares the same text")):
            reused = (folder / _REPORT).is_file()
            if not reused:
                with whole_folder(folder) as work:
                    _make(work, corpus, config, tokenizer, batching)
    try:
        report = json.loads((folder / _REPORT).read_text(encoding="utf-8"))
        counts, remarks = Counter(report["counts"]), list(report["remarks"])
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{folder / _REPORT} is damaged ({error}); delete the folder to have it made again") from None
    return Prepared(folder, Tokenizer.load(folder), TokenStore.open(folder), counts, remarks, reused)


def _key(corpus: Corpus, config: CorpusConfig, tokenizer: TokenizerConfig | Tokenizer, batching: BatchingConfig) -> str:
    settings = {
        "format": _FORMAT,
        "text": corpus.fingerprint(),
        "cleaning": [config.max_characters, config.drop_duplicates],
        "tokenizer": tokenizer.digests if isinstance(tokenizer, Tokenizer) else dataclasses.asdict(tokenizer),
        "max_length": batching.max_length,
    }
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


def _make(
    folder: Path, corpus: Corpus, config: CorpusConfig, tokenizer: TokenizerConfig | Tokenizer, batching: BatchingConfig
) -> None:
    counts: Counter[str] = Counter()
    total = sum(source.count() for source in corpus.train)

    def pairs(title: str, into: Counter[str]) -> Iterator[Pair]:
        with bar(title, total, " pairs") as progress:
            raw = (pair for source in corpus.train for pair in source.read())
            yield from clean(_ticking(raw, progress.update), into, config.max_characters, config.drop_duplicates)

    for _ in pairs("reading and cleaning", counts):
        pass
    if not counts["kept"]:
        raise DataError(f"no training pair is left after cleaning ({summary(counts)})")
    remarks: list[str] = []
    if isinstance(tokenizer, TokenizerConfig):
        title = f"training SentencePiece ({tokenizer.type})"
        tokenizer = train_tokenizer(tokenizer, lambda: pairs(title, Counter()), remarks.append)
    tokenizer.save(folder)
    kept = write_store(
        folder,
        _encoded(pairs("encoding", Counter()), tokenizer, batching.max_length, counts),
        (tokenizer.source_size, tokenizer.target_size),
    )
    if not kept:
        raise DataError(f"no training pair fits batching.max_length ({batching.max_length}): {summary(counts)}")
    report = {"counts": counts, "remarks": remarks}
    (folder / _REPORT).write_text(json.dumps(report, ensure_ascii=False, indent=1), encoding="utf-8")


def _ticking(pairs: Iterator[Pair], tick: Callable[[int], object]) -> Iterator[Pair]:
    """The same pairs; counts them on a progress bar in steps that cost nothing."""
    number = 0
    for number, pair in enumerate(pairs, start=1):
        if number % 1000 == 0:
            tick(1000)
        yield pair
    tick(number % 1000)


def _encoded(
    pairs: Iterator[Pair], tokenizer: Tokenizer, max_length: int, counts: Counter[str]
) -> Iterator[tuple[list[int], list[int]]]:
    """Id rows of the pairs that fit; moves those that do not from "kept" to their reason."""
    for chunk in in_chunks(((pair.source, pair.target) for pair in pairs), _CHUNK_PAIRS):
        sources = tokenizer.encode_source([source for source, _ in chunk])
        targets = tokenizer.encode_target([target for _, target in chunk])
        for source, target in zip(sources, targets, strict=True):
            if max(len(source), len(target)) <= max_length:
                yield source, target
            else:
                counts[f"over {max_length} pieces"] += 1
                counts["kept"] -= 1
