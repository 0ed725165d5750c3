"""Language identification by py3langid, if it is installed (extra `langid`)."""

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
    """Identifies languages; probabilities are over the languages that py3langid knows."""

    def __init__(self) -> None:
        """Raise ConfigError if py3langid is not installed."""
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
        """Return log-likelihoods; None for a text that is too short."""
        return dict(self._langid.rank(text)) if len(text) >= _SHORTEST else None

    def is_other(self, likelihoods: Likelihoods, language: str) -> bool:
        """Return whether the text is surely not in this language; False for an unknown language.

        It is not enough that another language is more likely: for a short English sentence half a dozen may be, none of
        which is Korean.
        """
        if language not in self._alike:
            code = plain_code(language)
            self._alike[language] = self._known & next((group for group in _ALIKE if code in group), {code})
        wanted = self._alike[language]
        return bool(wanted) and sum(likelihoods[each] for each in wanted) < _UNLIKELY


def surely(likelihoods: Likelihoods) -> str | None:
    """Return the language of the text if it is beyond doubt."""
    best = max(likelihoods, key=lambda language: likelihoods[language])
    return best if likelihoods[best] > _SURE else None
