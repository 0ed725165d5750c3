"""Make a model of many languages smaller: leave out the subwords that some of them do not use, and compare."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from tolka.errors import ConfigError
from tolka.interchange.parity import LINES, Threshold, TolkaSide, compare, sample_of
from tolka.model_directory.read import SavedModel
from tolka.model_directory.settings import direction_of
from tolka.models.embeddings import with_rows
from tolka.models.options import resolved_options
from tolka.nn.initialization import SkipInitialization
from tolka.options.suggestions import some_of
from tolka.system.progress import Say
from tolka.text.direction import UNDETERMINED, Direction
from tolka.text.lines import read_lines
from tolka.text.new_languages import check_new_languages
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.tokenizer.trimming import trim_tokenizer

_ADVICE = (
    ". What to do: give more text in these languages ('text=[FILE,FILE]'), or none, which leaves all of their scripts; "
    "name the languages whose words such translations have as well ('languages=[CODE,CODE,CODE]'); compare by lines of "
    "real text (--sample FILE); or leave out languages=, and the whole model is imported"
)


def trim(
    saved: SavedModel, languages: Sequence[str], texts: Sequence[Path], lines: list[str], say: Say
) -> tuple[SavedModel, str]:
    """Return the model with the subwords of some languages alone, and the section of a model card about it.

    languages: codes, of which some may be new to the model. texts: files in these languages, see `trim_tokenizer`.
    lines: the sample that both translate; [] = lines of the texts, or made-up ones. ConfigError if the model knows none
    of the languages; CheckpointError if it does not translate as the whole one does.
    """
    check_languages(saved, languages)
    known = saved.tokenizer.languages
    small = _trimmed(saved, *trim_tokenizer(saved.tokenizer, languages, chain.from_iterable(map(read_lines, texts))))
    facts = small.scores["facts"]
    say(f"trimmed to {facts['languages']}: {facts['trimmed to']}")
    named = [code for code in languages if code in known]
    usual = direction_of(small.config)
    # Into one of the named languages: of others in their scripts the text has no words. From one that is alone, into
    # itself.
    direction = usual if {*usual} <= {*named} else Direction(named[0], named[-1])
    sample = sample_of(small, lines or _sample(texts, direction.source), say)
    config = {**small.config, "corpus": {**small.config["corpus"], **direction._asdict()}}
    ours, whole = (
        TolkaSide(replace(each, config=config), name=f"the {kind} model", has_logits=False)
        for each, kind in ((small, "trimmed"), (saved, "whole"))
    )
    section = compare(ours, whole, sample, ours.beginning).check(Threshold(advice=_ADVICE), say)
    return small, section.replace("## Parity", "## Trimmed", 1)


def check_languages(saved: SavedModel, languages: Sequence[str]) -> None:
    """Raise ConfigError for languages that a model cannot be trimmed to."""
    known = saved.tokenizer.languages
    if not known:
        raise ConfigError(
            f"languages ({','.join(languages)}) is for models of several, and {saved.folder} has one direction"
        )
    check_new_languages([code for code in languages if code not in known], known)
    if not {*languages} & {*known}:
        raise ConfigError(f"languages ({','.join(languages)}) must name one that the model knows: {some_of(known)}")


def _trimmed(saved: SavedModel, tokenizer: Tokenizer, ids: Sequence[int]) -> SavedModel:
    """Return the model with another tokenizer. ids: the old ones of its subwords, in their new order."""
    options = resolved_options(saved.config["model"], tokenizer.shared)
    with SkipInitialization():
        model = options.build(tokenizer.source_size, tokenizer.target_size, tokenizer.shared)
    model.load_state_dict(with_rows(saved.model.state_dict(), ids, ids))
    usual = direction_of(saved.config)
    if not {*usual} <= {*tokenizer.languages}:
        usual = Direction(UNDETERMINED, UNDETERMINED)
    before, after = (each.parameter_count() for each in (saved.model, model))
    facts = {
        **saved.scores["facts"],
        "architecture": saved.scores["facts"]["architecture"].replace(f"{before:,}", f"{after:,}"),
        "languages": ", ".join(tokenizer.languages),
        "trimmed to": f"{len(ids):,} of {saved.tokenizer.source_size:,} subwords, {after:,} of {before:,} parameters",
    }
    config = {**saved.config, "corpus": {**saved.config["corpus"], **usual._asdict()}}
    return replace(
        saved, model=model.eval(), tokenizer=tokenizer, config=config, scores={**saved.scores, "facts": facts}
    )


def _sample(texts: Sequence[Path], source: str) -> list[str]:
    """Return the first lines that are not blank of the texts in a language, by their endings; of all if none has it."""
    own = [path for path in texts if path.name.endswith(f".{source}")] or texts
    share = -(-LINES // max(len(own), 1))
    return [line for path in own for line in islice(filter(str.strip, read_lines(path)), share)]
