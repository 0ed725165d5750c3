"""Languages that are new to a model of several: which codes may be added, and which known one each begins as."""

from collections.abc import Mapping, Sequence

from tolka.engines.options import DecodingConfig
from tolka.errors import ConfigError
from tolka.model_directory.read import SavedModel
from tolka.options.registry import did_you_mean, some_of
from tolka.search.greedy import GreedyConfig
from tolka.text.direction import Direction
from tolka.text.pairs import Pair
from tolka.text.scripts import is_known, is_variety, script_of
from tolka.translation.translator import Translator

_MEASURED = 320  # pairs, of all candidates together: some minutes for a model of 600 million parameters


def check_new_languages(new: Sequence[str], known: Sequence[str], like: str) -> None:
    """Raise ConfigError for the code of a new language that is none, or that the model has under another name.

    known: the model's languages; none of a model of one direction, which takes any. like: corpus.like.
    """
    if like and like not in (known if new else ()):
        which = f"one of the model's, as {some_of(known)}" if new and known else "left out, as no language is new"
        raise ConfigError(
            f"corpus.like ({like}) is the language that the tag of a new one begins as: it must be {which}"
        )
    for code in new if known else ():
        alike = [each for each in known if is_variety(code, each)]
        if alike or len({"_" in each for each in (*known, code)}) > 1:
            hint = f" Did you mean {' or '.join(map(repr, alike))}?" if alike else ""
            raise ConfigError(
                f"the model has no tag for the language '{code}'.{hint} Its codes are like {some_of(known)}: write a "
                "new one so, too"
            )
        if not is_known(code) and not like:
            raise ConfigError(
                f"the model has no tag for the language '{code}', and no registry of languages has it."
                f"{did_you_mean(code, known)} To add it all the same, name the known language that it begins as: "
                "corpus.like=CODE"
            )


def nearest_language(start: SavedModel, language: str, validation: Mapping[Direction, Sequence[Pair]]) -> str:
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
