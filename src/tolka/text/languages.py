"""Which language a text is in, where py3langid (of the extra `langid`) is there to tell."""

from collections.abc import Mapping

from tolka.errors import ConfigError
from tolka.system import stopping
from tolka.text.scripts import plain_code

_SHORTEST = 20  # characters that a text must have for its language to be asked
_SURE, _UNLIKELY = 0.95, 0.01
# Of one macrolanguage (ISO 639-3), or of one script and so close that a sentence may well be any of them.
_ALIKE = ({"no", "nb", "nn"}, {"sh", "hr", "bs", "sr"}, {"ms", "id"}, {"zh", "wuu", "yue"})

Likelihoods = Mapping[str, float]
"""Language code -> probability."""


class LanguageIdentifier:
    """Asks py3langid, whose probabilities are of the languages that it knows."""

    def __init__(self) -> None:
        """ConfigError where it is not installed."""
        try:
            from py3langid.langid import MODEL_FILE
            from py3langid.langid import LanguageIdentifier as Langid
        except ImportError:
            stopping.check()  # a module written in C makes this of Ctrl-C
            raise ConfigError(
                "cleaning.language=true needs py3langid: pip install 'tolka[langid]', or set cleaning.language=false"
            ) from None
        self._langid = Langid.from_model_file(MODEL_FILE, norm_probs=True)
        self._known = frozenset(self._langid.labels)
        self._alike: dict[str, frozenset[str]] = {}  # language -> itself and what cannot be told from it

    def likelihoods(self, text: str) -> Likelihoods | None:
        """None of a text that is too short to tell."""
        return dict(self._langid.rank(text)) if len(text) >= _SHORTEST else None

    def is_other(self, likelihoods: Likelihoods, language: str) -> bool:
        """Whether the text is surely not in this language; false of one that the identifier does not know.

        That the most likely one is another is not asked: of a short sentence in English that may be half a dozen, none
        of which is Korean.
        """
        if language not in self._alike:
            code = plain_code(language)
            self._alike[language] = self._known & next((group for group in _ALIKE if code in group), {code})
        wanted = self._alike[language]
        return bool(wanted) and sum(likelihoods[each] for each in wanted) < _UNLIKELY


def surely(likelihoods: Likelihoods) -> str | None:
    """The language that the text is in, if that is beyond doubt."""
    best = max(likelihoods, key=lambda language: likelihoods[language])
    return best if likelihoods[best] > _SURE else None
