"""The inputs of a run: its texts, the models it has to do with, and the training text as token ids."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain

import numpy as np

from tolka.config.schemas import TrainConfig
from tolka.data.loader import Batches, Loader, Resample
from tolka.data.mixture import Mixture
from tolka.data.preparation import REJECTED, Order, Prepared, prepare
from tolka.data.rewriting import Augmenter, SubwordSampler
from tolka.data.stream_loader import StreamLoader
from tolka.distributed.ranks import ALONE, Ranks
from tolka.errors import DataError
from tolka.evaluation.verdict_evidence import FEW_PAIRS
from tolka.model_directory.verify import LengthRatio, TrainingSources
from tolka.run.parents import Parents, check_directions, load_parents
from tolka.run.texts import RunTexts, TextFaults, faults_of, note_all, open_corpus, read_texts
from tolka.system.progress import Say
from tolka.text.check.loss import describe_loss
from tolka.text.direction import Direction
from tolka.text.pairs import Pair
from tolka.tokenizer.extension import Extension
from tolka.tokenizer.special_tokens import UNK
from tolka.tokenizer.tokenizer import Tokenizer, TokenizerConfig
from tolka.translation.request import Request
from tolka.translation.splitting import share_of_several

_SAMPLED = 4000  # lines of the training text
_NEEDED = (
    "some 10 000 are needed for rough translations, and some 100 to fine-tune a model that knows both languages "
    "(run.init_from)"
)
Ids = tuple[list[int], list[int]]
"""A pair, as subwords."""


@dataclass(frozen=True)
class Inputs:
    """The inputs of a training. order: what `prepared` was made by."""

    texts: RunTexts
    faults: TextFaults
    parents: Parents
    order: Order
    prepared: Prepared

    @cached_property
    def sample_by_direction(self) -> Mapping[Direction, list[Ids]]:
        """The ids of some thousand pairs, spread evenly over the training text."""
        store, ends = self.prepared.store, np.cumsum(self.prepared.parts)
        sample = dict[Direction, list[Ids]]()
        for row in map(int, np.linspace(0, len(store) - 1, min(len(store), _SAMPLED))):
            direction = self.texts.corpus.entry_directions[int(np.searchsorted(ends, row, side="right"))]
            sample.setdefault(direction, []).append((store.source(row).tolist(), store.target(row).tolist()))
        return sample

    @property
    def sample(self) -> list[Ids]:
        """The same of all directions."""
        return list(chain.from_iterable(self.sample_by_direction.values()))


def read_inputs(config: TrainConfig, log: Say, ranks: Ranks = ALONE, *, resuming: bool = False) -> Inputs:
    """Read and prepare everything, so that a bad file does not show after a day of training; log what is there.

    ranks: those that train together. DataError where too much of the training text is left out, unless a run is
    resumed: it has trained on the rest.
    """
    corpus = open_corpus(config.corpus, config.run.prepared_folder, log)
    parents = load_parents(config.run.init_from, corpus)
    if parents.start:
        config.finetuning.check(parents.start.model)
    check_directions(corpus, parents, config.corpus.like)
    texts = read_texts(corpus, config.cleaning.characters, config.metrics, log)
    faults = faults_of(texts, config.cleaning)
    if not resuming:
        if faults.unfit:
            raise DataError(f"{faults.unfit} (cleaning.allow_loss=true trains all the same)")
        note_all(log, [*faults.notes()])
    inputs = prepare_inputs(config, texts, faults, parents, log, ranks)
    prepared, form = inputs.prepared, config.cleaning.characters
    read = [form.of(direction).pair(pair) for direction, pairs in texts.validation.items() for pair in pairs]
    note_all(log, [*round_trip_notes(prepared.tokenizer, read, "the validation text")])
    if (loss := loss_of(inputs, config)) and not resuming:
        raise DataError(loss)
    if (kept := prepared.tally.kept) < FEW_PAIRS and not parents.start and not corpus.stream:
        log(f"note: {kept} pairs are far too few to learn to translate from: {_NEEDED}")
    # A damaged glossary shows now, not in the tests.
    Request.of(config.search, config.corpus.direction)
    return inputs


def prepare_inputs(
    config: TrainConfig, texts: RunTexts, faults: TextFaults, parents: Parents, log: Say, ranks: Ranks = ALONE
) -> Inputs:
    """Prepare the training text, or open what was prepared before; log what came of it."""
    started_at = time.perf_counter()
    order = _order(config, texts, parents)
    own: list[Prepared] = []
    # Every rank opens the store by itself, so that nothing is sent between them: `outcomes` shares the errors.
    cache, processes = config.run.prepared_folder, config.trainer.threads
    ranks.outcomes(lambda: own.append(prepare(order, cache, processes, log)))
    inputs = Inputs(texts, faults, parents, order, own[0])
    prepared = inputs.prepared
    how = "reused" if prepared.reused else f"made in {time.perf_counter() - started_at:.1f} s"
    log(f"{'beginning of the stream' if texts.corpus.stream else 'training text'}: {prepared.tally.summary()}")
    if prepared.tally.dropped:
        log(f"left out: {prepared.folder / REJECTED}")
    note_all(log, prepared.remarks)
    log(f"tokenizer: SentencePiece {_tokenizer_facts(inputs, config.tokenizer)}")
    log(f"token store: {prepared.folder} ({how})")
    note_all(log, [*_unknown_notes(inputs, config.tokenizer.extend)])
    return inputs


def _order(config: TrainConfig, texts: RunTexts, parents: Parents) -> Order:
    """Return the order to prepare, with a trained tokenizer or how to train or to extend one."""
    kind, start = config.tokenizer, parents.start
    tokenizer, extension = start and start.tokenizer, None
    if start and kind.extend:
        known = start.tokenizer.languages or sorted({code for each in start.facts.directions for code in each if code})
        extension = Extension(start.tokenizer, kind.extend, known, kind.sample, kind.character_coverage)
    held_out = texts.held_out
    return Order(
        texts.corpus,
        config.cleaning,
        extension or tokenizer or kind.load_given() or kind,
        config.batching,
        # Cleaning drops training pairs that are in a validation or test set: scores on them would mean nothing.
        [] if config.cleaning.leaks == "keep" else list(chain.from_iterable(held_out.values())),
        [pair for name in texts.set_aside for pair in held_out[name]],
        parents.languages,
        kind.tags,
        config.corpus.temperature,
    )


def loss_of(inputs: Inputs, config: TrainConfig) -> str:
    """Return why too little of the training text is left, or too much left out, to train on it; "" if it is enough."""
    tally = inputs.prepared.tally
    if loss := describe_loss(tally, config.cleaning, config.batching.max_length):
        return f"{loss} (listed in {inputs.prepared.folder / REJECTED})"
    if tally.kept > 1 or inputs.texts.corpus.stream:
        return ""
    return (
        f"the training text has one pair{' left' if tally.total > 1 else ''}, from which nothing can be learnt: "
        f"{_NEEDED}"
    )


def round_trip_notes(tokenizer: Tokenizer, pairs: Sequence[Pair], name: str) -> Iterator[str]:
    """Yield a note, with examples, for each side on which tokenizing and detokenizing changes a text."""
    sides = {
        "sources": ([pair.source for pair in pairs], tokenizer.encode_source, tokenizer.decode_source),
        "targets": ([pair.target for pair in pairs], tokenizer.encode_target, tokenizer.decode_target),
    }
    for side, (texts, encode, decode) in sides.items():
        both = zip(texts, decode(encode(texts)), strict=True)
        # SentencePiece makes one space of several, which loses nothing.
        changes = [each for each in both if len({tuple(filter(None, text.split(" "))) for text in each}) > 1]
        if changes:
            examples = "; ".join(f"{before!r:.90} comes back as {after!r:.90}" for before, after in changes[:2])
            yield f"{len(changes)} of {len(texts)} {side} of {name} change in the tokenizer: {examples}"


def _unknown_notes(inputs: Inputs, extend: int) -> Iterator[str]:
    """Yield a note for each side of which the model to start from cannot spell something. extend: tokenizer.extend."""
    store = inputs.prepared.store
    for side, ids in {"source": store.source_ids, "target": store.target_ids}.items() if inputs.parents.start else ():
        if unknown := int(np.count_nonzero(ids == UNK)):
            yield (
                f"{unknown} of {len(ids)} subwords of the {side} are unknown, and lost: their characters are added "
                f"by a tokenizer.extend larger than {extend}"
            )


def _tokenizer_facts(inputs: Inputs, kind: TokenizerConfig) -> str:
    tokenizer, given = inputs.prepared.tokenizer, inputs.parents.start
    files = [str(given.folder)] if given else kind.model
    fallback = "on" if kind.byte_fallback else "off"
    trained = f"{kind.type}, normalisation {kind.normalization}, byte fallback {fallback}"
    sizes = f"{tokenizer.source_size} {'shared' if tokenizer.shared else f'+ {tokenizer.target_size}'} subwords"
    return f"of {', '.join(files)}, {sizes}" if files else f"{trained}, {sizes}"


def describe_sources(inputs: Inputs) -> TrainingSources:
    """Return the longest source, and of some thousand lines the share of several sentences and the ratio of lengths.

    With a model to start from, the first two are the larger ones of this text and of the model's.
    """
    tokenizer, start = inputs.prepared.tokenizer, inputs.parents.start
    longest, shares = int(inputs.prepared.store.source_lengths.max()), list[float]()
    ratios: dict[Direction, LengthRatio] = {}
    for direction, rows in inputs.sample_by_direction.items():
        # Decoded from their ids, as the store keeps no text.
        lines = tokenizer.decode_source([source for source, _ in rows])
        shares += [share_of_several(lines, direction.source)] * len(lines)
        pairs = list(zip(lines, tokenizer.decode_target([target for _, target in rows]), strict=True))
        if ratio := LengthRatio.of(pairs):
            ratios[direction] = ratio
    directions, share = tuple(inputs.texts.corpus.directions), sum(shares) / len(shares)
    if not start:
        return TrainingSources(longest, share, ratios, directions)
    either = None if start.sources.several_sentences is None else max(start.sources.several_sentences, share)
    return TrainingSources(max(start.sources.longest, longest), either, ratios, directions)


def make_loader(inputs: Inputs, config: TrainConfig, log: Say, ranks: Ranks = ALONE) -> Batches:
    """Return batches of the training text, its parts mixed as corpus.weights and temperature say."""
    options, batching, seed = config.corpus, config.batching, config.run.seed
    corpus, prepared = inputs.texts.corpus, inputs.prepared
    rewrite = _rewriters(inputs, config, ranks)
    if corpus.stream:
        return StreamLoader(
            corpus.stream, prepared.tokenizer, inputs.order.task, batching, seed, corpus.buffer, log, rewrite, ranks
        )
    # Each text's weight is that of both its directions.
    weights = options.weights * (2 if options.both_directions else 1)
    if options.glossary and weights:
        *texts, terms = prepared.parts
        weights = [*(share * sum(texts) / sum(weights) for share in weights), terms]
    mixture = Mixture.of(prepared.parts, weights, options.temperature, corpus.entry_directions)
    for name, weight, rows in zip(corpus.entry_names, weights, prepared.parts, strict=False):
        if weight and not rows:
            log(f"note: no pair of {name} is left after cleaning, and corpus.weights ({weight:g}) draws none")
    if mixture.draws != mixture.rows:
        each = zip(corpus.entry_names, mixture.draws, mixture.rows, strict=True)
        log(f"an epoch draws: {', '.join(f'{name} {draws} of {rows}' for name, draws, rows in each)}")
    return Loader(prepared.store, batching, seed, rewrite, mixture)


def _rewriters(inputs: Inputs, config: TrainConfig, ranks: Ranks) -> Resample | None:
    """Return the rewriting of each epoch's ids: noise first, and then other segmentations; None for neither."""
    tokenizer, directions = inputs.prepared.tokenizer, inputs.texts.corpus.entry_directions
    batching, seed, symbols = config.batching, config.run.seed, config.tokenizer.symbols
    noise = Augmenter(tokenizer, batching.noise, seed, batching.max_length, directions, ranks, symbols)
    sampler = SubwordSampler(tokenizer, batching.sampling, seed, batching.max_length, ranks)
    wanted = [each for each, is_on in ((noise, batching.noise), (sampler, batching.sampling)) if is_on]
    return (lambda store, epoch: reduce(lambda made, each: each(made, epoch), wanted, store)) if wanted else None
