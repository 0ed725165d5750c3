"""The model that a training begins with: run.init_from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tolka.distributed.ranks import Ranks
from tolka.engines.options import DecodingConfig
from tolka.errors import ConfigError
from tolka.formats.any_model import load_any
from tolka.model_directory.read import SavedModel
from tolka.options.suggestions import some_of
from tolka.search.greedy import GreedyConfig
from tolka.system.progress import Say
from tolka.text.corpora.base import Corpus
from tolka.text.direction import Direction
from tolka.text.new_languages import check_new_languages
from tolka.text.pairs import Pair
from tolka.text.scripts import script_of
from tolka.translation.translator import Translator

_MEASURED = 320  # pairs, of all candidates together: some minutes for a model of 600 million parameters


@dataclass(frozen=True)
class Parents:
    """The model to start from, and the languages of the training text that shall get tags in it, if it has several."""

    start: SavedModel | None
    new_languages: list[str]

    @property
    def languages(self) -> list[str]:
        """The languages that the model shall have tags for; none for a model of one direction."""
        return [*(self.start.tokenizer.languages if self.start else []), *self.new_languages]


def load_parents(start: str, corpus: Corpus) -> Parents:
    """Load the model of run.init_from; "" = none."""
    begun = load_any(start) if start else None
    known = begun.tokenizer.languages if begun else []
    several = known or len(corpus.directions) > 1
    trained = sorted({code for each in corpus.directions for code in each}) if several else []
    new = [code for code in trained if code not in known]
    return Parents(begun, new)


def check_directions(corpus: Corpus, parents: Parents, like: str) -> None:
    """Raise ConfigError for a direction that nothing validates, and for one that the model cannot translate in.

    like: corpus.like.
    """
    start, new, trained = parents.start, parents.new_languages, corpus.directions
    if start:
        check_new_languages(new, start.tokenizer.languages, like)
    if start and new and start.tokenizer.listed and not start.tokenizer.languages:
        raise ConfigError(
            f"{start.folder} has the vocabulary of another program without tags of languages, which cannot be added to "
            "it: train one direction"
        )
    validated = {source.direction for source in corpus.valid}
    if not corpus.sizes and (lacking := [each for each in trained if each not in validated]):
        raise ConfigError(
            f"no text of corpus.valid is from {lacking[0]}, as one of corpus.train is: add one, as in "
            f"{{text: FILE, source: {lacking[0].source}, target: {lacking[0].target}}}, or set pairs of all aside "
            "(corpus.valid=auto)"
        )
    languages = parents.languages
    for source in (*corpus.valid, *corpus.tests):
        if not languages and source.direction not in trained:
            raise ConfigError(
                f"{source.name} is from {source.direction}, and the model translates from {trained[0]} alone"
            )
        if unknown := [code for code in source.direction if languages and code not in languages]:
            raise ConfigError(
                f"{source.name} is from {source.direction}, and no training text has {unknown[0]}; the model's "
                f"languages are {some_of(languages)}"
            )


def nearest_languages(
    parents: Parents, like: str, validation: Mapping[Direction, Sequence[Pair]], ranks: Ranks, log: Say
) -> dict[str, str]:
    """Return, for each new language of a model with tags, the known one that its tag begins as; log which.

    like: corpus.like; "" = the known language under whose tag the model finds the validation text likeliest.
    """
    found = dict[str, str]()
    if parents.start and parents.start.tokenizer.languages:
        for new in parents.new_languages:
            found[new] = like or ranks.of_first(_nearest(parents.start, new, validation))
            why = "under which the model finds its text likeliest; corpus.like=CODE names another"
            log(f"{new} is new to the model: its tag begins as that of {found[new]} ({'corpus.like' if like else why})")
    return found


def _nearest(start: SavedModel, language: str, validation: Mapping[Direction, Sequence[Pair]]) -> str:
    """Return the known language under whose tag the model finds text in a new one likeliest; of its script, if any is.

    validation: text of each direction that is trained. The log-probability of the references is compared, which are of
    the new language if it is ever translated into; tags, which are given, do not count.
    """
    direction = min((each for each in validation if language in each), key=lambda each: each.target != language)
    known = start.tokenizer.languages
    candidates = [each for each in known if script_of(each) == script_of(language)] or known
    pairs = validation[direction][: max(4, _MEASURED // len(candidates))]
    likelihoods = {}
    for candidate in candidates:
        source, target = (each if each in known else candidate for each in direction)
        decoding = DecodingConfig(device="cpu", split="never", source=source, target=target)
        scored = Translator.of(start, GreedyConfig(), decoding).score([(pair.source, pair.target) for pair in pairs])
        likelihoods[candidate] = sum(each.score for each in scored)
    return max(likelihoods, key=likelihoods.__getitem__)
