"""The known language that one begins as that is new to a model of several."""

from collections.abc import Mapping, Sequence

from tolka.engines.options import DecodingConfig
from tolka.model_directory.read import SavedModel
from tolka.search.greedy import GreedyConfig
from tolka.text.direction import Direction
from tolka.text.pairs import Pair
from tolka.text.scripts import script_of
from tolka.translation.translator import Translator

_MEASURED = 320  # pairs, of all candidates together: some minutes for a model of 600 million parameters


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
