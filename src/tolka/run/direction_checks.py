"""Whether a model can be trained in the directions of a corpus, and be validated and tested in them."""

from collections.abc import Sequence

from tolka.errors import ConfigError
from tolka.model_directory.read import SavedModel
from tolka.options.registry import some_of
from tolka.text.corpora.base import Corpus
from tolka.text.new_languages import check_new_languages


def check_directions(corpus: Corpus, start: SavedModel | None, new: Sequence[str], like: str) -> None:
    """Raise ConfigError for a direction that nothing validates, and for one that the model cannot translate in.

    start: the model to start from. new: languages of the training text that shall get tags. like: corpus.like.
    """
    known, trained = start.tokenizer.languages if start else [], corpus.directions
    if start:
        check_new_languages(new, known, like)
    if start and new and start.tokenizer.listed and not known:
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
    languages = [*known, *new]
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
