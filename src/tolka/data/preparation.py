"""From text to a token store: read, clean, train SentencePiece, encode; reused when nothing changed.

Intermediate files are in a folder beside the stores, so that an interrupted preparation resumes where it stopped. Of
several commands that need the same text one makes it, in several processes, and the others wait.
"""

import dataclasses
import hashlib
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from tolka.data.buckets import BatchingConfig
from tolka.data.mixture import Mixture
from tolka.data.shards import SHARD_PAIRS, Shard, Task, work_on
from tolka.data.store import PartTags, TokenStore, write_store
from tolka.errors import ConfigError, DataError
from tolka.system.atomic import name_in_disk_errors, one_at_a_time, replace_text, whole_folder
from tolka.system.progress import Say, bar, silent
from tolka.system.workers import call_each, cores
from tolka.text.check.loss import main_reason
from tolka.text.cleaning.cleaner import MarkSet, Tally, duplicate_key, held_out_marks, set_aside_marks
from tolka.text.cleaning.steps import RULES, CleaningConfig, own_modules, steps_of
from tolka.text.corpora.base import Corpus
from tolka.text.pairs import Pair, Swapped
from tolka.text.windows import full_windows
from tolka.tokenizer.extension import Extension, add_tags, extend_tokenizer
from tolka.tokenizer.tokenizer import Tokenizer, TokenizerConfig
from tolka.tokenizer.training import train_tokenizer

# Of what a store holds: stores of another format have other names, and are made again.
_FORMAT = 5
# Written last, so that a folder that has it is whole.
_REPORT = "report.json"
REJECTED = "rejected.tsv"
"""Name of the file of dropped pairs in a store's folder: reason, source and target of each."""
_ABANDONED_DAYS = 7
# These take about as long as it takes to start a process.
_PAIRS_PER_PROCESS = 10_000
_LOST_PROCESS = (
    "a process that prepared the text ended with {}. The same command continues from there; trainer.threads=1 needs "
    "the least memory"
)


@dataclass(frozen=True)
class Prepared:
    """A prepared training text. tally: counts of its pairs. parts: number of pairs of each entry of corpus.train.

    remarks: notes for the user from training the tokenizer.
    """

    folder: Path
    tokenizer: Tokenizer
    store: TokenStore
    tally: Tally
    parts: list[int]
    remarks: list[str]
    reused: bool


@dataclass(frozen=True)
class Order:
    """A training text, and all that determines how it is prepared.

    tokenizer: a trained one, how to train one, or how to extend one. held_out: the pairs of validation and test sets,
    for cleaning.leaks. set_aside: those of them that were held out of the training text. tagged: languages that the
    tokenizer shall have tags of. tag_form: see `add_tags`. temperature: see `Mixture.of`; the tokenizer learns from
    small texts as often as an epoch draws from them.
    """

    corpus: Corpus
    cleaning: CleaningConfig
    tokenizer: TokenizerConfig | Tokenizer | Extension
    batching: BatchingConfig
    held_out: Sequence[Pair] = ()
    set_aside: Sequence[Pair] = ()
    tagged: Sequence[str] = ()
    tag_form: str = "source"
    temperature: float = 1.0

    @cached_property
    def task(self) -> Task:
        """The task of every shard."""
        held_out, set_aside = self.corpus.seen_in(self.held_out), self.corpus.seen_in(self.set_aside)
        marks = held_out_marks(self.cleaning, held_out, self.corpus.sole_direction), set_aside_marks(set_aside)
        return Task(self.cleaning, self.batching.max_length, *marks)

    @cached_property
    def learnt_from(self) -> dict[str, list[int]]:
        """Which entries of corpus.train a tokenizer is extended by: side, as `Extension.sides` -> their numbers."""
        assert isinstance(self.tokenizer, Extension)
        entries, directions = self.corpus.entries, self.corpus.entry_directions
        # A model of both sides would count the words of a text once more in its opposite direction.
        once = len(self.tokenizer.base.models) == 1
        read = [number for number, entry in enumerate(entries) if not (once and isinstance(entry[0], Swapped))]
        found: dict[str, list[int]] = {}
        for number, side in zip(read, self.tokenizer.sides([directions[number] for number in read]), strict=True):
            found.setdefault(side, []).append(number)
        return found

    def key(self) -> str:
        """Return a digest of the training text and of all that determines the ids."""
        settings = {
            "format": _FORMAT,
            "text": self.corpus.fingerprint(),
            "cleaning": self._cleaning_key(),
            "held_out": [
                hashlib.sha256(b"".join(sorted(marks))).hexdigest()
                for marks in (self.task.held_out, self.task.set_aside)
            ],
            "languages": [self.corpus.entry_directions, self.tagged, self.tag_form],
            "tokenizer": self._tokenizer_key(),
            "max_length": self.batching.max_length,
        }
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]

    def _cleaning_key(self) -> dict[str, Any]:
        """Return the steps that are taken, the versions of their rules, and the code of one's own."""
        settings = dataclasses.asdict(self.cleaning)
        # What does nothing is left out, so that a new step leaves the names of stores without it as they are.
        steps = {key: value for key, value in settings.items() if value not in ("keep", False) and key != "allow_loss"}
        rules = {f"{key} rules": version for key, version in RULES.items() if key in steps}
        return {**steps, **rules, "modules": own_modules(self.cleaning)}

    def _tokenizer_key(self) -> Any:
        if isinstance(self.tokenizer, Tokenizer):
            return self.tokenizer.digests
        if isinstance(self.tokenizer, Extension):
            return vars(self.tokenizer) | {"base": self.tokenizer.base.digests, "texts": self.learnt_from}
        known = dataclasses.asdict(self.tokenizer) | {"temperature": self.temperature}
        # Extensions are of a model's alone, and tags are part of the key where there are any.
        return {key: value for key, value in known.items() if not key.startswith(("extend", "tags"))}


def prepare(order: Order, cache: Path, processes: int = 0, say: Say = silent) -> Prepared:
    """Return the prepared text of an order: its store under `cache`, named after its key, is made unless it exists.

    processes: number of processes that clean and encode; 0 = as many as there are cores. The result does not depend on
    it. The file REJECTED in the folder lists the pairs left out with their reasons. say: is given notes. DataError when
    no pair is left.
    """
    key = order.key()
    folder = cache / key
    reused = (folder / _REPORT).is_file()
    if not reused:
        lock = cache / f".{key}.lock"
        with one_at_a_time(lock, lambda: say("waiting for another process that prepares the same text")):
            # Looked for again: another process may have made it while this one waited.
            if not (folder / _REPORT).is_file():
                _Workshop(cache / f".{key}.work", order, processes or cores(), say).make(folder)
    try:
        report = json.loads((folder / _REPORT).read_text(encoding="utf-8"))
        tally, parts, remarks = Tally.of(report["pairs"]), list(map(int, report["parts"])), list(report["remarks"])
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{folder / _REPORT} is damaged ({error}); delete the folder to have it made again") from None
    tokenizer = Tokenizer.load(folder)
    tags = PartTags(tuple(map(tokenizer.tags, order.corpus.entry_directions)), tuple(parts))
    store = replace(TokenStore.open(folder), tags=tags)
    return Prepared(folder, tokenizer, store, tally, parts, remarks, reused)


def _remove_abandoned(cache: Path) -> None:
    """Delete unfinished work that nobody has continued for days."""
    for work in cache.glob(".*.work"):
        with suppress(FileNotFoundError):  # removed by its maker
            if time.time() - work.stat().st_mtime > _ABANDONED_DAYS * 24 * 3600:
                shutil.rmtree(work, ignore_errors=True)


class _Workshop:
    """The stages of a preparation; their results are files in the folder `work`."""

    def __init__(self, work: Path, order: Order, processes: int, say: Say) -> None:
        self._work, self._order, self._processes, self._say = work, order, processes, say
        self._read = work / "plan.json"
        self._tokenizer = work / "tokenizer.json"
        for direction in order.corpus.directions:
            steps_of(order.cleaning, direction)  # raises its ConfigError before any work is done

    def make(self, folder: Path) -> None:
        """Go through all stages, and write the result to `folder`."""
        _remove_abandoned(folder.parent)
        try:
            with name_in_disk_errors(self._work):
                self.read()
                self.clean()
                self.train_tokenizer()
                self.encode()
            with whole_folder(folder) as final:
                self.deliver(final)
        # The same text and settings would fail again; after any other error the work continues where it stopped.
        except (ConfigError, DataError):
            shutil.rmtree(self._work, ignore_errors=True)
            raise
        shutil.rmtree(self._work, ignore_errors=True)

    @cached_property
    def _plan(self) -> tuple[list[list[int]], list[Shard]]:
        """The [first, last) shard of each entry of corpus.train, and all shards."""
        plan = json.loads(self._read.read_text())
        directions = zip(plan["entries"], self._order.corpus.entry_directions, strict=True)
        numbers = ((number, direction) for entry, direction in directions for number in range(*entry))
        return plan["entries"], [Shard(self._folder(n), plan["pairs"][n], direction) for n, direction in numbers]

    @property
    def _shards(self) -> list[Shard]:
        return self._plan[1]

    def _folder(self, number: int) -> Path:
        return self._work / f"shard-{number:06}"

    def read(self) -> None:
        """Copy the text into shards; each entry of corpus.train begins a new one."""
        if self._read.exists():
            self._say("continuing with what was prepared before an interruption")
            return
        self._work.mkdir(parents=True, exist_ok=True)
        sources = self._order.corpus.train
        entries, sizes = [], list[int]()
        with bar("reading", sum(source.count() for source in sources), " pairs") as progress:
            for entry in self._order.corpus.entries:
                # A shard is of one entry, so that the pairs of each can be counted after cleaning.
                first = len(sizes)
                for pairs in full_windows(chain.from_iterable(source.read() for source in entry), SHARD_PAIRS):
                    Shard(self._folder(len(sizes))).write(pairs)
                    sizes.append(len(pairs))
                    progress.update(len(pairs))
                entries.append([first, len(sizes)])
        replace_text(self._read, json.dumps({"entries": entries, "pairs": sizes}))

    def clean(self) -> None:
        """Clean each shard by itself, then drop duplicates across all of them."""
        self._work_on_shards("cleaning")
        if duplicate_key(self._order.cleaning):
            seen = MarkSet()
            for shard in self._shards:
                shard.save_new(seen.add(shard.marks()))
        if not any(shard.kept for shard in self._shards):
            order, tally = self._order, sum((shard.tally("cleaned") for shard in self._shards), Tally())
            if not tally.total:
                names, languages = ", ".join(order.corpus.entry_names), " and ".join(order.corpus.directions[0])
                raise DataError(f"corpus.train ({names}): there is no pair of {languages} in it; check the file")
            reason = main_reason(tally, order.cleaning, order.batching.max_length)
            raise DataError(f"no training pair is left after cleaning ({tally.summary()}); most are left out {reason}")

    def train_tokenizer(self) -> None:
        """Train the tokenizer, unless the order has a trained one."""
        if self._tokenizer.exists():
            return
        order, tokenizer, remarks = self._order, self._order.tokenizer, list[str]()
        if not isinstance(tokenizer, Tokenizer):
            entries, shards = self._plan
            texts = [shards[first:last] for first, last in entries]
            if isinstance(tokenizer, Extension):
                title, read = "extending the tokenizer", order.learnt_from
                if "" in read:
                    of = len([*chain(*read.values())])
                    few = f"{of - len(read[''])} of {of} training texts"
                    remarks.append(f"subwords are learnt from {few}, characters from all")
            else:
                title = f"training SentencePiece ({tokenizer.type})"
                texts = [shards] if order.temperature == 1 else texts
                read = {"both": [*range(len(texts))]}
            total = sum(shard.kept for number in chain(*read.values()) for shard in texts[number])
            sample_size = min(tokenizer.sample or total, total)
            if sample_size < total:
                remarks.append(f"the tokenizer learns from {sample_size} of {total} pairs (tokenizer.sample)")
            draws = self._draws(texts, sample_size / total)

            def pairs(side: str) -> Iterator[Pair]:
                with bar(title, sum(draws[number] for number in read[side]), " pairs") as progress:
                    for pair in chain.from_iterable(_sample(texts[number], draws[number]) for number in read[side]):
                        yield pair
                        progress.update()

            if isinstance(tokenizer, Extension):
                tokenizer = extend_tokenizer(tokenizer, {side: partial(pairs, side) for side in read}, remarks.append)
            else:
                tokenizer = train_tokenizer(tokenizer, partial(pairs, "both"), remarks.append)
        tokenizer = add_tags(tokenizer, order.tagged, order.tag_form)
        tokenizer.save(self._work)
        replace_text(self._tokenizer, json.dumps({"remarks": remarks}, ensure_ascii=False))

    def _draws(self, texts: Sequence[Sequence[Shard]], share: float) -> list[int]:
        """Return how many pairs of each text the tokenizer learns from. share: of all pairs."""
        sizes = [sum(shard.kept for shard in shards) for shards in texts]
        order = self._order
        if len(texts) == 1 or isinstance(order.tokenizer, Extension):
            return [round(size * share) for size in sizes]
        mixture = Mixture.of(sizes, temperature=order.temperature, directions=order.corpus.entry_directions)
        return [round(draws * share) for draws in mixture.draws]

    def encode(self) -> None:
        """Encode the text of each shard as ids."""
        self._work_on_shards("encoding", Tokenizer.load(self._work))

    def deliver(self, final: Path) -> None:
        """Write the store of the whole text, the tokenizer, the dropped pairs and the report."""
        tokenizer = Tokenizer.load(self._work)
        tokenizer.save(final)
        sizes = tokenizer.source_size, tokenizer.target_size
        pairs = write_store(final, (TokenStore.open(shard.folder) for shard in self._shards), sizes)
        cleaned, encoded = ([shard.tally(step) for shard in self._shards] for step in ("cleaned", "encoded"))
        tally = replace(sum([*cleaned, *encoded], Tally()), kept=pairs)
        assert tally.total == sum(shard.count for shard in self._shards)
        if not pairs:
            max_length = self._order.batching.max_length
            raise DataError(f"no training pair fits batching.max_length ({max_length}): {tally.summary()}")
        with (final / REJECTED).open("wb") as stream:
            for shard in self._shards:
                stream.write(shard.rejected())
        report = {
            "pairs": tally.as_dict(),
            "parts": [sum(each.kept for each in encoded[first:last]) for first, last in self._plan[0]],
            "remarks": json.loads(self._tokenizer.read_text(encoding="utf-8"))["remarks"],
        }
        (final / _REPORT).write_text(json.dumps(report, ensure_ascii=False, indent=1), encoding="utf-8")

    def _work_on_shards(self, title: str, tokenizer: Tokenizer | None = None) -> None:
        """Clean all shards, or with a tokenizer encode them, except those for which it is done."""
        waiting = [shard for shard in self._shards if not shard.is_done("encoded" if tokenizer else "cleaned")]
        total, left = (sum(shard.count for shard in shards) for shards in (self._shards, waiting))
        task, modules = self._order.task, [*own_modules(self._order.cleaning)]
        work = partial(work_on, task=task, tokenizer=tokenizer, modules=modules)
        processes = min(self._processes, len(waiting), left // _PAIRS_PER_PROCESS)
        with bar(title, total, " pairs", initial=total - left) as progress:
            for pairs in call_each(work, waiting, processes, _LOST_PROCESS):
                progress.update(pairs)


def _sample(shards: Sequence[Shard], count: int) -> Iterator[Pair]:
    """Yield a random sample of `count` pairs in order, always the same; more than there are repeat all of them."""
    # Shard by shard, so that memory does not grow with the text. A share of an urn with `size` of `remaining` balls is
    # hypergeometric: every set of `count` pairs is equally likely.
    rng = np.random.default_rng(0)
    sizes = [shard.kept for shard in shards]
    remaining = sum(sizes)
    while remaining and count >= remaining:
        yield from chain.from_iterable(shard.pairs() for shard in shards)
        count -= remaining
    if not count:
        return
    for shard, size in zip(shards, sizes, strict=True):
        share = int(rng.hypergeometric(size, remaining - size, count)) if size else 0
        chosen = np.zeros(size, dtype=np.bool_)
        chosen[rng.choice(size, share, replace=False)] = True
        yield from (pair for pair, is_chosen in zip(shard.pairs(), chosen.tolist(), strict=True) if is_chosen)
        count, remaining = count - share, remaining - size
