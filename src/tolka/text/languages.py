"""Language identification by py3langid, if it is installed (extra `langid`), and the names of languages."""

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from itertools import chain

from tolka.errors import ConfigError
from tolka.system import interrupts
from tolka.system.package_data import table_beside
from tolka.text.scripts import letters_of, plain_code

_GUESSED_FROM = 2000  # characters of a text whose language is to be told
_MIN_CHARACTERS = 20  # the language of a shorter text is not identified
# A pair is dropped, or sides are called swapped, only beyond these probabilities: a short sentence fits many languages.
_CERTAIN, _UNLIKELY = 0.95, 0.01
# Languages that cannot be told apart by a sentence: of one macrolanguage (ISO 639-3), or close and in the same script.
_CONFUSABLE = ({"no", "nb", "nn"}, {"sh", "hr", "bs", "sr"}, {"ms", "id"}, {"zh", "wuu", "yue"})

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
            # A C extension may turn Ctrl-C into an ImportError.
            interrupts.check()
            raise ConfigError(
                "cleaning.language=true needs py3langid: pip install 'tolka[langid]', or set cleaning.language=false"
            ) from None
        self._langid = Langid.from_model_file(MODEL_FILE, norm_probs=True)
        self._known = frozenset(self._langid.labels)

    def likelihoods(self, text: str) -> Likelihoods:
        """Return the probability of each language; of none for a text that is too short."""
        return dict(self._langid.rank(text)) if len(text) >= _MIN_CHARACTERS else {}

    def is_other(self, likelihoods: Likelihoods, language: str) -> bool:
        """Return whether the text is surely not in this language; False for an unknown language, or a short text."""
        accepted = self._accepted_codes(language)
        # It is not enough that another language is likelier: for a short English sentence half a dozen may be.
        return bool(accepted and likelihoods) and sum(likelihoods[each] for each in accepted) < _UNLIKELY

    def is_surely(self, likelihoods: Likelihoods, language: str, not_in: str) -> bool:
        """Return whether the text is surely in one language and not in another, both of which are known."""
        likelihood = sum(likelihoods.get(each, 0.0) for each in self._accepted_codes(language))
        return likelihood > _CERTAIN and self.is_other(likelihoods, not_in)

    def _accepted_codes(self, language: str) -> frozenset[str]:
        """Return the known codes of a language and of those that cannot be told from it."""
        code = plain_code(language)
        return self._known & next((group for group in _CONFUSABLE if code in group), {code})


@cache
def installed_identifier() -> LanguageIdentifier | None:
    """Return an identifier, which takes a second to load; None where py3langid, an extra, is not installed."""
    try:
        return LanguageIdentifier()
    except ConfigError:
        return None


def code_of_text(texts: Iterable[str], codes: Collection[str]) -> str:
    """Return the code of the language that the texts are in; "" where nobody can say.

    codes: those that are possible. Their letters decide, if they are those of one code alone, or else py3langid.
    """
    text = "".join(chain.from_iterable(f"{each} " for each in texts))[:_GUESSED_FROM]
    letters = sum(map(str.isalpha, text))
    patterns = {code: pattern for code in codes if (pattern := letters_of(code))}
    fitting = [code for code, pattern in patterns.items() if 2 * len(pattern.findall(text)) > letters > 0]
    if len(fitting) == 1:
        return fitting[0]
    identifier = installed_identifier()
    likelihoods = identifier.likelihoods(text) if identifier else {}
    of_code = {code: likelihoods.get(plain_code(code), 0.0) for code in fitting}
    best = max(of_code, key=lambda code: of_code[code], default="")
    # Of the possible ones it must be the only one, and likelier than all others together.
    return best if best and of_code[best] > max(0.5, _CERTAIN * sum(set(of_code.values()))) else ""


def certain_language(likelihoods: Likelihoods) -> str:
    """Return the language of the text if it is beyond doubt, else ""."""
    return next((language for language, likelihood in likelihoods.items() if likelihood > _CERTAIN), "")


def english_name(code: str) -> str:
    """Return the English name of a language, its code where that is not known."""
    names: dict[str, str] = table_beside(__file__)
    return names.get(code) or names.get(plain_code(code)) or code
