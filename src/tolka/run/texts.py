"""The texts of a run, the corpus, its validation set and its test sets, and what is wrong with them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path

from tolka.documents.parallel import register_documents
from tolka.errors import DataError
from tolka.evaluation.input_notes import blank_note, form_note
from tolka.metrics.languages import language_notes
from tolka.metrics.options import MetricsConfig
from tolka.report.data_check import in_validation_set
from tolka.system.number_format import count_text
from tolka.system.progress import Say
from tolka.terminology.glossary import GlossaryPairs
from tolka.text.characters import CharacterForm
from tolka.text.check.diagnosis import Finding, overlaps
from tolka.text.check.sides import SWAPPED, differences, fault_of_sides, spread_sample, varieties
from tolka.text.cleaning.cleaner import read_held_out
from tolka.text.cleaning.steps import CleaningConfig
from tolka.text.corpora.base import Corpus, CorpusConfig
from tolka.text.direction import Direction
from tolka.text.held_out import hold_out_sets
from tolka.text.lines import user_path
from tolka.text.pairs import Pair, PairSource


@dataclass(frozen=True)
class RunTexts:
    """The texts of a run.

    validation: the validation set of each direction, without pairs that have a blank side. tests: each test set by
    name, with its blank lines, so that the score is the one of mt-eval and of sacreBLEU, which score every line.
    """

    corpus: Corpus
    validation: Mapping[Direction, list[Pair]]
    tests: Mapping[str, list[Pair]]

    @property
    def validation_pairs(self) -> list[Pair]:
        """The validation set, of all directions."""
        return list(chain.from_iterable(self.validation.values()))

    @property
    def validation_names(self) -> dict[Direction, str]:
        """A name for the validation set of each direction."""
        sets = _by_direction(self.corpus).items()
        return {direction: "-".join(source.name for source in sources) for direction, sources in sets}

    @property
    def held_out(self) -> dict[str, list[Pair]]:
        """The validation set, which comes first, and the test sets by name, without pairs that have a blank side."""
        name = "-".join(self.validation_names.values())
        tests = {name: [pair for pair in pairs if pair.source and pair.target] for name, pairs in self.tests.items()}
        return {f"{name} (valid)" if name in tests else name: self.validation_pairs, **tests}

    @property
    def set_aside(self) -> list[str]:
        """Those of `held_out`, by name, that were taken out of the training text."""
        valid, *tests = self.held_out
        kept = {"valid": [valid], "test": tests}
        return [name for key, names in kept.items() if key in self.corpus.sizes for name in names]

    def direction_of(self, test: str) -> Direction:
        """Return the direction of a test set."""
        return next(source.direction for source in self.corpus.tests if source.name == test)


def open_corpus(options: CorpusConfig, cache: Path, say: Say) -> Corpus:
    """Open the corpus that the settings name, with the sets that are held out of its training text.

    cache: gets these sets; run.prepared. say: is given notes.
    """
    register_documents()
    corpus = options.open()
    if corpus.sizes:
        corpus, folder = hold_out_sets(corpus, cache, say)
        sets = {"valid": corpus.valid, "test": corpus.tests}
        counts = {key: count_text(sum(each.count() for each in sets[key]), "pair") for key in corpus.sizes}
        each = [f"{counts[key]} (corpus.{key}={size.value})" for key, size in corpus.sizes.items()]
        repeated = "pairs that repeat a side of one are left out as well"
        say(f"set aside from the training text: {', '.join(each)}: {folder}; {repeated}")
    if options.glossary:  # no term is held out
        terms = GlossaryPairs(user_path(options.glossary), options.direction)
        corpus = replace(corpus, entries=[*corpus.entries, [terms]])
    if options.both_directions:
        corpus = corpus.with_opposite()
    return corpus.named_by_direction()


def read_texts(corpus: Corpus, characters: CharacterForm, metrics: MetricsConfig, log: Say) -> RunTexts:
    """Read the validation and test sets; log what is in them, what is left out, and what is odd about them.

    characters: the form that every text for the model gets. DataError for a set without text, and for two test sets of
    one name.
    """
    validation = dict[Direction, list[Pair]]()
    sets = _by_direction(corpus)
    for direction, sources in sets.items():
        apart = f" from {direction}" if len(sets) > 1 else ""
        validation[direction], tally = read_held_out(sources, f"corpus.valid{apart}", keeps_blank=False)
        log(f"validation text{apart}: {tally.summary()}")
        note_all(log, [_form_note(validation[direction], f"the validation text{apart}", characters.of(direction))])
    for language in dict.fromkeys(direction.target for direction in validation):
        note_all(log, language_notes(metrics, language))
    tests = dict[str, list[Pair]]()
    for source in corpus.tests:
        if source.name in tests:
            raise DataError(f"two test sets are called '{source.name}': rename the files of one of them")
        pairs, tally = read_held_out([source], f"corpus.test ({source.name})", keeps_blank=True)
        tests[source.name] = pairs
        log(f"test set {source.name}: {tally.summary()}")
        sides = {f"{source.name}'s sources": [pair.source for pair in pairs]}
        sides |= {f"{source.name}'s references": [pair.target for pair in pairs]}
        odd_form = _form_note(pairs, f"the test set {source.name}", characters.of(source.direction))
        note_all(log, [odd_form, blank_note(sides.items())])
    return RunTexts(corpus, validation, tests)


@dataclass(frozen=True)
class TextFaults:
    """wrong_sides: text -> what is wrong with its sides. overlaps: of test sets with the validation set.

    unlike: sentences about training text that is written otherwise than held-out text. varieties: about text of another
    variety than the one asked for. unfit: what a training stops for; "" if it goes on.
    """

    wrong_sides: dict[str, str] = field(default_factory=dict)
    overlaps: list[Finding] = field(default_factory=list)
    unlike: list[str] = field(default_factory=list)
    varieties: list[str] = field(default_factory=list)
    unfit: str = ""

    def notes(self) -> Iterator[str]:
        """Yield a sentence about each of them."""
        yield from (f"{name}: {fault}" for name, fault in self.wrong_sides.items())
        yield from (in_validation_set(asdict(overlap)) for overlap in self.overlaps)
        yield from (*self.unlike, *self.varieties)


def faults_of(texts: RunTexts, cleaning: CleaningConfig) -> TextFaults:
    """Look at some hundred pairs of each training text, and at the held-out sets.

    Sets that were held out of the training text need no look of their own.
    """
    corpus, held_out = texts.corpus, texts.held_out
    samples = {source.name: list(spread_sample(source)) for source in corpus.train}
    looked_at = [(source.name, source.direction, samples[source.name]) for source in corpus.train]
    (valid, pairs), *tests = held_out.items()
    if valid not in texts.set_aside:
        firsts = {source.direction: source for source in reversed(corpus.valid)}
        for direction, own in texts.validation.items():
            name = valid if len(texts.validation) == 1 else firsts[direction].name
            title = f"{name} (valid)" if name in samples else name
            looked_at.append((title, direction, list(own)))
    faults = {name: fault_of_sides(sample, direction) for name, direction, sample in looked_at}
    wrong_sides = {name: fault for name, fault in faults.items() if fault}
    # Where a step of the cleaning would drop such pairs anyway, and always where sides are exchanged: after hours of
    # training such a model translates nothing.
    drops = cleaning.script or cleaning.language or cleaning.copies
    grave = [f"{name}: {fault}" for name, fault in wrong_sides.items() if drops or fault.startswith(SWAPPED)]
    return TextFaults(
        wrong_sides,
        overlaps(pairs, dict(tests)),
        list(differences(list(chain.from_iterable(samples.values())), held_out, corpus.sole_direction)),
        [note for source in corpus.train for note in varieties(source, samples[source.name], cleaning.script)],
        "" if cleaning.allow_loss else "; ".join(grave),
    )


def note_all(log: Say, notes: Sequence[str]) -> None:
    """Log notes, except empty ones."""
    for note in filter(None, notes):
        log(f"note: {note}")


def _by_direction(corpus: Corpus) -> dict[Direction, list[PairSource]]:
    """Return the parts of the validation set by their directions."""
    parts = dict[Direction, list[PairSource]]()
    for source in corpus.valid:
        parts.setdefault(source.direction, []).append(source)
    return parts


def _form_note(pairs: Sequence[Pair], name: str, form: CharacterForm) -> str:
    return form_note((name, [pair.target for pair in pairs]), form)
