"""The inputs of a run: the model to start from, the prepared training text, validation and test sets."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from itertools import chain
from pathlib import Path

import numpy as np

from tolka.config.schemas import TrainConfig
from tolka.data.loader import Batches, Loader, Resample
from tolka.data.mixture import Mixture
from tolka.data.preparation import REJECTED, Order, Prepared, prepare
from tolka.data.rewriting import Augmenter, SubwordSampler
from tolka.data.stream_loader import StreamLoader
from tolka.distributed.ranks import ALONE, Ranks
from tolka.errors import DataError
from tolka.evaluation.evidence import FEW_PAIRS
from tolka.evaluation.input_notes import blank_note, form_note
from tolka.formats.any_model import load_any
from tolka.metrics.languages import language_notes
from tolka.model_directory.read import SavedModel
from tolka.model_directory.verify import LengthRatio, TrainingSources
from tolka.run.direction_checks import check_directions
from tolka.run.nearest_language import nearest_language
from tolka.run.teacher import load_teacher
from tolka.run.text_faults import TextFaults, faults_of
from tolka.system.number_format import count_text
from tolka.system.progress import Say
from tolka.terminology.glossary import GlossaryPairs
from tolka.text.check.loss import describe_loss
from tolka.text.cleaning.cleaner import read_held_out
from tolka.text.corpora.base import Corpus
from tolka.text.direction import Direction
from tolka.text.held_out import hold_out_sets
from tolka.text.lines import user_path
from tolka.text.pairs import Pair, PairSource
from tolka.tokenizer.extension import MUCH_UNSPELT, Extension, unspelt_share
from tolka.tokenizer.round_trip import round_trip_notes
from tolka.tokenizer.special_tokens import UNK
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.translation.request import Request
from tolka.translation.splitting import share_of_several

_SAMPLED = 4000  # lines of the training text
_NEEDED = (
    "some 10 000 are needed for rough translations, and some 100 to fine-tune a model that knows both languages "
    "(run.init_from)"
)


def open_corpus(config: TrainConfig, say: Say) -> tuple[Corpus, Path | None]:
    """Return the corpus, with the sets held out of its training text, and the folder that these are in.

    say: is given notes.
    """
    corpus, folder = config.corpus.open(), None
    if corpus.sizes:
        corpus, folder = hold_out_sets(corpus, config.run.prepared_folder, say)
    if config.corpus.glossary:  # no term is held out
        terms = GlossaryPairs(user_path(config.corpus.glossary), config.corpus.direction)
        corpus = replace(corpus, entries=[*corpus.entries, [terms]])
    if config.corpus.both_directions:
        corpus = corpus.with_opposite()
    return corpus.named_by_direction(), folder


class Inputs:
    """Inputs, each read when first needed. Reports what was read and what was left out."""

    def __init__(self, config: TrainConfig, log: Say, ranks: Ranks = ALONE) -> None:
        """log: called with lines for the user. ranks: those that train together."""
        self.config, self.log, self._ranks = config, log, ranks

    def read(self, *, resuming: bool = False) -> None:
        """Read everything now, so that a bad file does not show after a day of training.

        DataError where too much of the training text is left out, unless a run is resumed: it has trained on the rest.
        """
        if self.start is not None:
            self.config.finetuning.check(self.start.model)
        _ = self.teacher
        check_directions(self.corpus, self.start, self.new_languages, self.config.corpus.like)
        _ = self.validation, self.test_pairs
        # To look at the texts once more takes seconds; a run that is resumed has passed this.
        if not resuming:
            if self.faults.unfit:
                raise DataError(f"{self.faults.unfit} (cleaning.allow_loss=true trains all the same)")
            self._note(*self.faults.notes())
        form = self.config.cleaning.characters
        read = [form.of(direction).pair(pair) for direction, pairs in self.validation.items() for pair in pairs]
        self._note(*round_trip_notes(self.prepared.tokenizer, read, "the validation text"))
        if self.loss and not resuming:
            raise DataError(self.loss)
        if (kept := self.prepared.tally.kept) < FEW_PAIRS and not self.start and not self.corpus.stream:
            self._note(f"{kept} pairs are far too few to learn to translate from: {_NEEDED}")
        # A damaged glossary shows now, not in the tests.
        Request.of(self.config.search, self.config.corpus.direction)

    @cached_property
    def languages(self) -> list[str]:
        """The languages that the model shall have tags for; none for a model of one direction."""
        return [*self._known_languages, *self.new_languages]

    @property
    def _known_languages(self) -> list[str]:
        """Those that the model to start from has tags for."""
        return self.start.tokenizer.languages if self.start else []

    @property
    def new_languages(self) -> list[str]:
        """Those of the training text that shall get tags."""
        directions, known = self.corpus.directions, self._known_languages
        trained = sorted({code for each in directions for code in each}) if known or len(directions) > 1 else []
        return [code for code in trained if code not in known]

    def nearest_languages(self) -> dict[str, str]:
        """Return, for each new language of a model with tags, the known one that its tag begins as; says which."""
        if not self.start or not self._known_languages:
            return {}
        like, found = self.config.corpus.like, dict[str, str]()
        for new in self.new_languages:
            found[new] = like or self._ranks.of_first(nearest_language(self.start, new, self.validation))
            why = (
                "corpus.like"
                if like
                else "under which the model finds its text likeliest; corpus.like=CODE names another"
            )
            self.log(f"{new} is new to the model: its tag begins as that of {found[new]} ({why})")
        return found

    @cached_property
    def _valid_by_direction(self) -> dict[Direction, list[PairSource]]:
        by_direction: dict[Direction, list[PairSource]] = {}
        for source in self.corpus.valid:
            by_direction.setdefault(source.direction, []).append(source)
        return by_direction

    def _note(self, *notes: str) -> None:
        for note in filter(None, notes):
            self.log(f"note: {note}")

    @cached_property
    def corpus(self) -> Corpus:
        """The corpus that the settings name, with its held-out sets."""
        corpus, folder = open_corpus(self.config, self.log)
        if corpus.sizes:
            sets = {"valid": corpus.valid, "test": corpus.tests}
            counts = {key: count_text(sum(each.count() for each in sets[key]), "pair") for key in corpus.sizes}
            each = [f"{counts[key]} (corpus.{key}={size.value})" for key, size in corpus.sizes.items()]
            repeated = "pairs that repeat a side of one are left out as well"
            self.log(f"set aside from the training text: {', '.join(each)}: {folder}; {repeated}")
        return corpus

    @cached_property
    def start(self) -> SavedModel | None:
        """The model to start from."""
        name = self.config.run.init_from
        return load_any(name) if name else None

    @cached_property
    def teacher(self) -> SavedModel | None:
        """The model whose probabilities are learnt as well."""
        return load_teacher(self.config, self.corpus.directions, self.start)

    @property
    def _given(self) -> SavedModel | None:
        """The model whose subwords are taken."""
        return self.start or self.teacher

    @cached_property
    def _order(self) -> Order:
        """What to prepare, with a trained tokenizer or how to train or to extend one."""
        kind, tokenizer = self.config.tokenizer, self._given and self._given.tokenizer
        extension = (
            Extension(tokenizer, kind.extend, kind.extend_from, kind.sample, kind.character_coverage)
            if tokenizer and kind.extend
            else None
        )
        # Cleaning drops training pairs that are in a validation or test set: scores on them would mean nothing.
        kept_out = [] if self.config.cleaning.leaks == "keep" else list(chain.from_iterable(self.held_out.values()))
        return Order(
            self.corpus,
            self.config.cleaning,
            extension or tokenizer or kind.load_given() or kind,
            self.config.batching,
            kept_out,
            [pair for name in self.set_aside for pair in self.held_out[name]],
            self.languages,
            kind.tags,
            self.config.corpus.temperature,
        )

    @cached_property
    def prepared(self) -> Prepared:
        """The tokenizer and the token store of the training text."""
        started_at = time.perf_counter()
        prepared = self._prepared
        how = "reused" if prepared.reused else f"made in {time.perf_counter() - started_at:.1f} s"
        self.log(f"{'beginning of the stream' if self.corpus.stream else 'training text'}: {prepared.tally.summary()}")
        if prepared.tally.dropped:
            self.log(f"left out: {prepared.folder / REJECTED}")
        self._note(*prepared.remarks)
        self.log(f"tokenizer: SentencePiece {self._tokenizer_facts(prepared.tokenizer)}")
        self.log(f"token store: {prepared.folder} ({how})")
        if self.start:
            self._note(*self._unspelt_notes(self.start.folder, prepared))
        return prepared

    @cached_property
    def _prepared(self) -> Prepared:
        """The same before anything is logged about it."""
        cache, processes = self.config.run.prepared_folder, self.config.trainer.threads
        own: list[Prepared] = []
        # Every rank opens the store by itself, so that nothing is sent between them: `outcomes` shares the errors.
        self._ranks.outcomes(lambda: own.append(prepare(self._order, cache, processes, self.log)))
        return own[0]

    @cached_property
    def _sample_by_direction(self) -> dict[Direction, list[tuple[list[int], list[int]]]]:
        """The ids of some thousand pairs, spread evenly over the training text."""
        store, ends, directions = self._prepared.store, np.cumsum(self._prepared.parts), self.corpus.entry_directions
        sample: dict[Direction, list[tuple[list[int], list[int]]]] = {}
        for row in map(int, np.linspace(0, len(store) - 1, min(len(store), _SAMPLED))):
            direction = directions[int(np.searchsorted(ends, row, side="right"))]
            sample.setdefault(direction, []).append((store.source(row).tolist(), store.target(row).tolist()))
        return sample

    def sample(self, direction: Direction | None = None) -> list[tuple[list[int], list[int]]]:
        """Return the ids of some thousand pairs of the training text; or of those of one direction."""
        by_direction = self._sample_by_direction
        return (
            list(chain.from_iterable(by_direction.values())) if direction is None else by_direction.get(direction, [])
        )

    def _unspelt_notes(self, model: Path, prepared: Prepared) -> Iterator[str]:
        """Yield a note for each side of which the model spells much as bytes, or something not at all."""
        tokenizer, store, extend = prepared.tokenizer, prepared.store, self.config.tokenizer.extend
        pieces = {"source": tokenizer.source_pieces, "target": tokenizer.target_pieces}
        whole = store.source_ids, store.target_ids
        for (side, pieces_of), rows, ids in zip(pieces.items(), zip(*self.sample(), strict=True), whole, strict=True):
            share = unspelt_share(list(chain.from_iterable(rows)), pieces_of)
            if share > MUCH_UNSPELT and not extend:
                yield (
                    f"{share:.0%} of the {side}'s subwords are bytes, or unknown to {model}: tokenizer.extend=2000 "
                    "would add subwords of this text"
                )
            elif unknown := int(np.count_nonzero(ids == UNK)):
                yield (
                    f"{unknown} of {len(ids)} subwords of the {side} are unknown, and lost: their characters are added "
                    f"by a tokenizer.extend larger than {extend}"
                )

    def _tokenizer_facts(self, tokenizer: Tokenizer) -> str:
        kind = self.config.tokenizer
        sizes = (
            f"{tokenizer.source_size} shared subwords"
            if tokenizer.shared
            else f"{tokenizer.source_size} + {tokenizer.target_size} subwords"
        )
        if self._given:
            old = self._given.tokenizer
            new = tokenizer.source_size - old.source_size, tokenizer.target_size - old.target_size
            added = f", {new[0]} of them new" if tokenizer.shared else f", {new[0]} + {new[1]} of them new"
            return f"of {self._given.folder}, {sizes}{added if any(new) else ''}"
        if kind.model:
            return f"of {', '.join(kind.model)}, {sizes}"
        fallback = "on" if kind.byte_fallback else "off"
        return f"{kind.type}, {sizes}, normalisation {kind.normalization}, byte fallback {fallback}"

    @property
    def target_vocabulary(self) -> str:
        """A phrase for reports: '8000 bpe subwords'."""
        kind = "" if self._given or self.config.tokenizer.model else f"{self.config.tokenizer.type} "
        return f"{self.prepared.tokenizer.target_size} {kind}subwords"

    @property
    def held_out(self) -> dict[str, list[Pair]]:
        """The validation set, which comes first, and the test sets by name, without pairs that have a blank side."""
        names = "-".join(self.validation_names.values())
        tests = {
            name: [pair for pair in pairs if pair.source and pair.target] for name, pairs in self.test_pairs.items()
        }
        return {f"{names} (valid)" if names in tests else names: self.validation_pairs, **tests}

    @property
    def set_aside(self) -> list[str]:
        """Those of them, by name, that were held out of the training text."""
        if not self.corpus.sizes:
            return []
        valid, *tests = self.held_out
        return [*([valid] if "valid" in self.corpus.sizes else []), *(tests if "test" in self.corpus.sizes else [])]

    @property
    def validation_names(self) -> dict[Direction, str]:
        """A name for the validation set of each direction."""
        return {each: "-".join(source.name for source in sources) for each, sources in self._valid_by_direction.items()}

    @property
    def validation_pairs(self) -> list[Pair]:
        """The validation set, of all directions."""
        return list(chain.from_iterable(self.validation.values()))

    @cached_property
    def validation(self) -> dict[Direction, list[Pair]]:
        """The validation set of each direction; blank pairs are left out and counted."""
        sets: dict[Direction, list[Pair]] = {}
        for direction, sources in self._valid_by_direction.items():
            apart = f" from {direction}" if len(self._valid_by_direction) > 1 else ""
            sets[direction], tally = read_held_out(sources, f"corpus.valid{apart}", keeps_blank=False)
            self.log(f"validation text{apart}: {tally.summary()}")
            self._note(self._form_note(sets[direction], f"the validation text{apart}", direction))
        for language in dict.fromkeys(direction.target for direction in sets):
            self._note(*language_notes(self.config.metrics, language))
        return sets

    def direction_of(self, test: str) -> Direction:
        """Return the direction of a test set."""
        return next(source.direction for source in self.corpus.tests if source.name == test)

    @cached_property
    def test_pairs(self) -> dict[str, list[Pair]]:
        """Each test set by name, with its blank lines, which are counted. DataError when two have the same name."""
        sets: dict[str, list[Pair]] = {}
        for source in self.corpus.tests:
            if source.name in sets:
                raise DataError(f"two test sets are called '{source.name}': rename the files of one of them")
            what = f"corpus.test ({source.name})"
            # With blank sides, so that the score is the one of mt-eval and of sacreBLEU, which score every line.
            pairs, tally = read_held_out([source], what, keeps_blank=True)
            sets[source.name] = pairs
            self.log(f"test set {source.name}: {tally.summary()}")
            sides = {f"{source.name}'s sources": [p.source for p in pairs]}
            sides |= {f"{source.name}'s references": [p.target for p in pairs]}
            self._note(self._form_note(pairs, f"the test set {source.name}", source.direction))
            self._note(blank_note(sides.items()))
        return sets

    @cached_property
    def faults(self) -> TextFaults:
        """What is wrong with the texts as they were given, before anything is left out of them."""
        return faults_of(self.corpus, self.held_out, self.set_aside, self.validation, self.config.cleaning)

    @property
    def loss(self) -> str:
        """Why so little of the training text is left, or so much left out, that a training stops; "" if it goes on."""
        tally = self.prepared.tally
        if loss := describe_loss(tally, self.config.cleaning, self.config.batching.max_length):
            return f"{loss} (listed in {self.prepared.folder / REJECTED})"
        if tally.kept > 1 or self.corpus.stream:
            return ""
        return (
            f"the training text has one pair{' left' if tally.total > 1 else ''}, from which nothing can be learnt: "
            f"{_NEEDED}"
        )

    def _form_note(self, pairs: Sequence[Pair], name: str, direction: Direction) -> str:
        return form_note((name, [pair.target for pair in pairs]), self.config.cleaning.characters.of(direction))

    @cached_property
    def training_sources(self) -> TrainingSources:
        """The longest source, and of some thousand lines the share of several sentences and the ratio of lengths.

        With run.init_from, the first two are the larger ones of this text and of the model's.
        """
        store, tokenizer = self.prepared.store, self.prepared.tokenizer
        longest, shares = int(store.source_lengths.max()), list[float]()
        ratios: dict[Direction, LengthRatio] = {}
        for direction, rows in self._sample_by_direction.items():
            # Decoded from their ids, as the store keeps no text.
            lines = tokenizer.decode_source([source for source, _ in rows])
            shares += [share_of_several(lines, direction.source)] * len(lines)
            pairs = list(zip(lines, tokenizer.decode_target([target for _, target in rows]), strict=True))
            if ratio := LengthRatio.of(pairs):
                ratios[direction] = ratio
        directions, share = tuple(self.corpus.directions), sum(shares) / len(shares)
        if not self.start:
            return TrainingSources(longest, share, ratios, directions)
        before = self.start.sources
        either = None if before.several_sentences is None else max(before.several_sentences, share)
        return TrainingSources(max(before.longest, longest), either, ratios, directions)

    def loader(self) -> Batches:
        """Return batches of the training text, its parts mixed as corpus.weights and temperature say."""
        corpus, prepared = self.config.corpus, self.prepared
        if self.corpus.stream:
            return StreamLoader(
                self.corpus.stream,
                prepared.tokenizer,
                self._order.task,
                self.config.batching,
                self.config.run.seed,
                self.corpus.buffer,
                self.log,
                self._rewriters(),
                self._ranks,
            )
        # Each text's weight is that of both its directions.
        weights = corpus.weights * (2 if corpus.both_directions else 1)
        if corpus.glossary and (weights or corpus.glossary_weight != 1):
            *texts, terms = prepared.parts
            of_texts = [share * sum(texts) / sum(weights) for share in weights] if weights else map(float, texts)
            weights = [*of_texts, terms * corpus.glossary_weight]
        mixture = Mixture.of(prepared.parts, weights, corpus.temperature, self.corpus.entry_directions, corpus.cap)
        for name, weight, rows in zip(self.corpus.entry_names, weights, prepared.parts, strict=False):
            if weight and not rows:
                self._note(f"no pair of {name} is left after cleaning, and corpus.weights ({weight:g}) draws none")
        if mixture.draws != mixture.rows:
            self.log(f"an epoch draws: {mixture.summary(self.corpus.entry_names)}")
        return Loader(prepared.store, self.config.batching, self.config.run.seed, self._rewriters(), mixture)

    def _rewriters(self) -> Resample | None:
        """Return what rewrites each epoch's ids: noise first, and then other segmentations; None for neither."""
        batching, tokenizer, seed = self.config.batching, self.prepared.tokenizer, self.config.run.seed
        symbols = self.config.tokenizer.symbols
        directions = self.corpus.entry_directions
        noise = Augmenter(tokenizer, batching.noise, seed, batching.max_length, directions, self._ranks, symbols)
        sampler = SubwordSampler(tokenizer, batching.sampling, seed, batching.max_length, self._ranks)
        wanted = [each for each, is_on in ((noise, batching.noise), (sampler, batching.sampling)) if is_on]
        return (lambda store, epoch: reduce(lambda made, each: each(made, epoch), wanted, store)) if wanted else None
