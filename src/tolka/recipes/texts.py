"""The texts between the trainings of a recipe: what they share, text in one language, and synthetic pairs."""

import hashlib
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, groupby
from pathlib import Path

from tolka.config.schemas import TrainConfig
from tolka.errors import ConfigError, DataError
from tolka.metrics.languages import has_spaces
from tolka.metrics.pairwise import chrf_of
from tolka.model_directory.verify import LengthRatio
from tolka.recipes.steps import Figures
from tolka.run.texts import open_corpus, read_texts
from tolka.system.atomic import whole_file
from tolka.system.number_format import count_text
from tolka.system.progress import Say, bar
from tolka.text.cleaning.cleaner import Tally, comparison_form, judge, set_aside_marks, set_aside_reason
from tolka.text.direction import Direction
from tolka.text.lines import read_lines
from tolka.text.pairs import Pair
from tolka.translation.flags import differing_numbers, has_odd_length, is_copy, repeats

TAG = "⟦bt⟧"
"""Stands before a synthetic source (Caswell et al. 2019), and is one subword."""
_MOST_OTHER = 0.3  # share of lines in the other language, from which on a file is refused
_SIDE = re.compile(r" (source|on both sides)$")  # of a reason why a pair is left out
_WORDS_TO_TELL = 3  # of a line, by which its language is told
_TRIES = 20  # for a recombined sentence that is new


class SharedTexts:
    """The texts of a corpus, written once for all trainings of a recipe, so that they have the same held-out sets."""

    def __init__(self, config: TrainConfig, folder: Path, say: Say) -> None:
        options = replace(config.corpus, both_directions=False)  # each text once
        self._corpus = corpus = open_corpus(options, config.run.prepared_folder, say)
        self._cleaning, self._metrics, self._say = config.cleaning, config.metrics, say
        self.direction = options.direction
        if corpus.stream:
            raise ConfigError("a recipe reads its text several times: corpus.streaming=true is not for it")
        self._tests = dict[str, str]()  # a file's name -> the test set's
        for source in corpus.tests:
            name = source.name if source.name.startswith("test") else f"test-{source.name}"
            while name in self._tests:
                name += "-2"
            self._tests[name] = source.name
        self.train, self.valid = folder / "train", folder / "valid"
        self.tests = [folder / name for name in self._tests]

    @property
    def sets(self) -> dict[str, list[Path]]:
        """The prefixes of the held-out sets, as the settings name these."""
        # Without test sets, the scores of the validation set are all that there is to compare.
        return {"valid": [self.valid], "test": self.tests or [self.valid]}

    @property
    def files(self) -> list[Path]:
        """The files of both sides of all these texts."""
        return [*chain.from_iterable(map(self.direction.files, (self.train, self.valid, *self.tests)))]

    @property
    def fingerprint(self) -> str:
        """A digest that changes with any of the texts."""
        corpus = self._corpus
        sets = [source.fingerprint() for source in (*corpus.valid, *corpus.tests)]
        return hashlib.sha256("\n".join([corpus.fingerprint(), *sets]).encode()).hexdigest()

    def write(self) -> Figures:
        """Write them; return how many pairs there are."""
        read = read_texts(self._corpus, self._cleaning.characters, self._metrics, self._say)
        apart = set_aside_marks(pair for name in read.set_aside for pair in read.held_out[name])
        given = (pair for source in self._corpus.train for pair in source.read() if not pair.flaw)
        pairs = write_pairs((pair for pair in given if not set_aside_reason(pair, apart)), self.train, self.direction)
        write_pairs(read.validation_pairs, self.valid, self.direction)
        for prefix, name in zip(self.tests, self._tests.values(), strict=True):
            write_pairs(read.tests[name], prefix, self.direction)
        return {"pairs": pairs}

    @cached_property
    def _sides(self) -> list[list[str]]:
        return [[*read_lines(path)] for path in self.direction.files(self.train)]

    def _held_out(self, code: str) -> Iterator[str]:
        for prefix in (self.valid, *self.tests):
            yield from read_lines(Path(f"{prefix}.{code}"))

    def clean_lines(self, files: Sequence[Path], out: Path, is_source: bool = False, recombined: int = 0) -> Figures:
        """Write the usable lines of text in one language, each once; return how many, and why others are not.

        Lines of a held-out set are left out, and those of the training text, whose translation is known. is_source: in
        the source language, not the target's. recombined: sentences that follow, made of the training text, for each of
        its pairs. DataError if much of a file seems to be in the other language.
        """
        sides = self._sides[::-1] if is_source else self._sides
        other, own = ({word for line in lines for word in line.casefold().split()} for lines in sides)
        other, own = other - own, own - other
        source, code = self.direction.swapped if is_source else self.direction
        cleaning = replace(self._cleaning, copies=False, leaks="keep", duplicates="keep")
        foreign, left_out, kept, total = f"in {source}, by its words", Counter[str](), 0, 0

        def cleaned(lines: Iterable[str], tally: Tally) -> Iterator[str]:
            # As a pair of the line and itself: what cleaning does to a side, it does to this.
            pairs = judge((Pair(line, line) for line in lines), cleaning, Direction(code, code), tally)
            return (pair.target for pair in pairs)

        known = {comparison_form(line): "in the training text" for line in cleaned(sides[1], Tally())}
        # As they are, too: cleaning may have left some out.
        for lines in (self._held_out(code), cleaned(self._held_out(code), Tally())):
            known |= {comparison_form(line): "in a held-out set" for line in lines}

        def reason(line: str) -> str:
            found = line.casefold().split()
            if sum(word in other for word in found) >= max(_WORDS_TO_TELL, 2 * sum(word in own for word in found)):
                return foreign
            form = comparison_form(line)
            why = known.get(form, "")
            known.setdefault(form, "twice")
            return why

        with whole_file(out) as stream:
            for path in files:
                tally, before, wrong = Tally(), total, left_out[foreign]
                with bar(f"reading {path.name}", None, " lines") as progress:
                    for line in cleaned(_counted(read_lines(path), progress.update), tally):
                        if why := reason(line):
                            left_out[why] += 1
                        else:
                            kept += 1
                            stream.write(f"{line}\n".encode())
                left_out.update({_SIDE.sub("", why): n for why, n in tally.dropped.items()})
                total = kept + left_out.total()
                wrong, count = left_out[foreign] - wrong, total - before
                if wrong > _MOST_OTHER * count:
                    raise DataError(
                        f"{path}: {wrong} of {count} lines look like {source} by their words, and text in {code} is "
                        "wanted: name another file"
                    )
            drawn = recombine(sides[1], recombined * len(sides[1]), " " if has_spaces(code) else "")
            made = [line for line in drawn if comparison_form(line) not in known]
            stream.write("".join(f"{line}\n" for line in made).encode())
        if not kept + len(made):
            raise DataError(f"none of the {total} lines is left{_left_out_text(left_out)}")
        said = f"{count_text(total, 'line')}, {kept} kept{_left_out_text(left_out)}"
        said += f", {len(made)} recombined" if recombined else ""
        return {"lines": total, "kept": kept, "left out": dict(left_out), "words": said}

    def synthetic(self, texts: Sequence[Path], prefix: Path, *, filter: bool = True, tag: bool = True) -> Figures:
        """Write the pairs whose sources a model made of the targets; return how many, and why others are left out.

        texts: sources and targets. The files `to_train(prefix)` have the sources as the final model reads them. filter:
        whether those are left out that cannot be right. tag: whether sources begin with `TAG`.
        """
        ratio = LengthRatio.of([(target, source) for source, target in zip(*self._sides, strict=True)])
        left_out, pairs = Counter[str](), list[Pair]()
        strict = self._cleaning.leaks == "source"
        held_out = {comparison_form(line) for line in self._held_out(self.direction.source)} if strict else set[str]()
        for source, target in zip(*map(read_lines, texts), strict=True):
            why = _flaw_of(source, target, ratio) if filter else "" if source.strip() else "untranslated"
            # The tag would hide it from cleaning.
            why = why or ("with a held-out source" if comparison_form(source) in held_out else "")
            if why:
                left_out[why] += 1
            else:
                pairs.append(Pair(source, target))
        head = f"{TAG} " if tag else ""
        write_pairs((Pair(f"{head}{pair.source}", pair.target) for pair in pairs), to_train(prefix), self.direction)
        kept = write_pairs(pairs, prefix, self.direction)
        if not kept:
            raise DataError(f"no synthetic pair is left{_left_out_text(left_out)}")
        words = f"{count_text(kept, 'synthetic pair')}{_left_out_text(left_out)}"
        return {"kept": kept, "left out": dict(left_out), "words": words}

    def taught(self, sources: Path, translations: Path, prefix: Path) -> Figures:
        """Write each text with its translation by a model if that may be right; return how many, and why not others."""
        ratio = LengthRatio.of([*zip(*self._sides, strict=True)])
        left_out, pairs = Counter[str](), list[Pair]()
        for source, target in zip(read_lines(sources), read_lines(translations), strict=True):
            if why := _flaw_of(target, source, ratio):
                left_out[why] += 1
            else:
                pairs.append(Pair(source, target))
        kept = write_pairs(pairs, prefix, self.direction)
        words = f"{count_text(kept, 'more pair')} to learn from{_left_out_text(left_out)}"
        return {"kept": kept, "left out": dict(left_out), "words": words}

    def nearest(self, translations: Path, prefix: Path) -> Figures:
        """Write each source with the translation that is nearest to its reference, by sentence chrF.

        translations: n-best lists of the training text's sources, in Moses' format.
        """
        left_out, pairs = Counter[str](), list[Pair]()
        found = groupby((line.split(" ||| ") for line in read_lines(translations)), lambda parts: parts[0])
        # The text itself may have such bars in it.
        listed = [[" ||| ".join(parts[1:-2]) for parts in group] for _, group in found]
        with bar("comparing translations", len(listed), " lines") as progress:
            for source, reference, texts in zip(*self._sides, listed, strict=True):
                progress.update(1)
                best = max(texts, key=lambda text: chrf_of(text, reference)) if len(texts) > 1 else texts[0]
                if best.strip():
                    pairs.append(Pair(source, best))
                else:
                    left_out["untranslated"] += 1
        kept = write_pairs(pairs, prefix, self.direction)
        words = f"{count_text(kept, 'line')} to learn from{_left_out_text(left_out)}"
        return {"kept": kept, "left out": dict(left_out), "words": words}


def write_pairs(pairs: Iterable[Pair], prefix: Path, direction: Direction) -> int:
    """Write pairs as two files, and return how many there are."""
    count = 0
    prefix.parent.mkdir(parents=True, exist_ok=True)
    source, target = direction.files(prefix)
    with whole_file(source) as one, whole_file(target) as two:
        for pair in pairs:
            one.write(f"{pair.source}\n".encode())
            two.write(f"{pair.target}\n".encode())
            count += 1
    return count


def recombine(lines: Sequence[str], count: int, joiner: str = " ") -> Iterator[str]:
    """Yield up to `count` different sentences that are none of `lines`; the same ones at each call.

    Each is the beginning of one and the end of another that has the same word at the seam, as Andreas (2020,
    arXiv:1904.09545) recombines pairs by contexts. Most are nearly grammatical, and none was read before: what a model
    makes of them shows a student more of its teacher than the training text can.

    joiner: what is between two words; "" = each character is one.
    """
    rng = random.Random(1)
    rows = [row for line in lines if len(row := line.split(joiner) if joiner else [*line]) > 1]
    places = defaultdict[str, list[tuple[int, int]]](list)
    for number, row in enumerate(rows):
        for place, word in enumerate(row):
            places[word].append((number, place))
    known, made = {*lines}, 0
    for _ in range(_TRIES * count if rows else 0):
        row = rng.choice(rows)
        seam = rng.randrange(1, len(row))
        other, place = rng.choice(places[row[seam]])
        text = joiner.join([*row[:seam], *rows[other][place:]])
        if place and text not in known:
            known.add(text)
            made += 1
            yield text
            if made == count:
                return


def to_train(prefix: Path) -> Path:
    """Return the prefix of the same pairs as the final model reads them, with a tag."""
    return prefix.with_name(f"{prefix.name}-to-train")


def _left_out_text(left_out: Counter[str]) -> str:
    """Return a phrase of how many were left out, and why; "" if none were."""
    reasons = ", ".join(f"{count} {why}" for why, count in sorted(left_out.items()))
    return f", {left_out.total()} left out: {reasons}" if left_out else ""


def _counted(lines: Iterable[str], tick: Callable[[int], object]) -> Iterator[str]:
    for line in lines:
        tick(1)
        yield line


def _flaw_of(made: str, given: str, ratio: LengthRatio | None) -> str:
    """Return why a text that a model made of another cannot be its translation; "" if nothing says so.

    ratio: of lengths, of given texts to those that they are translated from.
    """
    if not made.strip():
        return "untranslated"
    checks = {
        "copied": is_copy(given, made) or comparison_form(given) == comparison_form(made),
        "repeating a phrase": repeats(given, made),
        "of another length": has_odd_length(given, made, ratio),
        "with other numbers": any(differing_numbers(given, made)),
    }
    return next((why for why, applies in checks.items() if applies), "")
