"""What is wrong with the texts of a training as they were given: sides, overlaps, tokenisation."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import chain

from tolka.report.data_check import in_validation_set
from tolka.run.texts import RunTexts
from tolka.text.check.diagnosis import Finding, overlaps
from tolka.text.check.sides import SWAPPED, differences, fault_of_sides, spread_sample, varieties
from tolka.text.cleaning.steps import CleaningConfig


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
