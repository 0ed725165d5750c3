"""In which directions a model can be trained, validated and tested."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rows import each_row

from tolka.errors import ConfigError
from tolka.run.parents import Parents, check_directions
from tolka.text.corpora.base import Corpus, SetSize
from tolka.text.direction import Direction
from tolka.text.pairs import Pair, PairSource


class Text(PairSource):
    """A text without pairs; only its name and direction are asked for."""

    def __init__(self, code: str) -> None:
        self.name, self.direction = f"text {code}", Direction(*code.split("-"))

    def read(self) -> Iterator[Pair]:
        raise NotImplementedError

    def fingerprint(self) -> str:
        raise NotImplementedError

    def count(self) -> int:
        raise NotImplementedError


def corpus(train: str, valid: str = "", tests: str = "", sizes: dict[str, SetSize] | None = None) -> Corpus:
    """corpus("en-de de-en", ...): of texts in these directions."""
    first, second, third = ([Text(code) for code in codes.split()] for codes in (train, valid, tests))
    return Corpus([[text] for text in first], [*second], [*third], sizes=sizes or {})


def model(*languages: str, listed: bool = False) -> Any:
    """A model to start from, with tags for these languages. listed: whether another program listed its subwords."""
    return SimpleNamespace(folder=Path("start"), tokenizer=SimpleNamespace(languages=[*languages], listed=listed))


def check(of: Corpus, start: Any = None, new: tuple[str, ...] = (), like: str = "") -> None:
    check_directions(of, Parents(start, [*new]), like)


AUTO = {"valid": SetSize("auto")}


@each_row(
    ("of", "start", "new"),
    [
        (corpus("en-de", "en-de", "en-de"), None, ()),
        (corpus("en-de", "en-de"), model(), ()),
        (corpus("en-de de-en", "de-en en-de", "en-de"), None, ("en", "de")),
        (corpus("en-de en-de", "en-de"), None, ()),
        (corpus("en-de en-fr", "", sizes=AUTO), None, ("en", "de", "fr")),  # held out of each
        (corpus("en-de en-fr", "en-de en-fr", "de-fr"), None, ("en", "de", "fr")),  # a direction that is not trained
        (corpus("en-de", "en-de", "en-fr"), model("en", "de", "fr"), ()),
        (corpus("en-de", "en-de"), model(listed=True), ()),
    ],
)
def test_what_can_be_trained(of: Corpus, start: Any, new: tuple[str, ...]) -> None:
    check(of, start, new)


@each_row(
    ("of", "start", "new", "complaint"),
    [
        (
            corpus("en-de en-fr", "en-de"),
            None,
            ("en", "de", "fr"),
            r"no text of corpus\.valid is from en to fr, .* add one, as in \{text: FILE, source: en, target: fr\}",
        ),
        (corpus("en-de", "de-en"), None, (), r"no text of corpus\.valid is from en to de"),
        (
            corpus("en-de", "en-de", "de-en"),
            None,
            (),
            r"text de-en is from de to en, and the model translates from en to de alone",
        ),
        (
            corpus("en-de en-fr", "", "en-fr en-ko", sizes=AUTO),
            None,
            ("en", "de", "fr"),
            r"text en-ko is from en to ko, and no training text has ko; the model's languages are en, de, fr",
        ),
        (
            corpus("en-de", "en-de", "pt-de"),
            model("en", "de"),
            (),
            r"text pt-de is from pt to de, and no training text has pt; the model's languages are en, de",
        ),
        (
            corpus("en-de de-en", "en-de de-en"),
            model(listed=True),
            ("en", "de"),
            r"start has the vocabulary of another program without tags .* train one direction",
        ),
        (corpus("en-de", "en-de"), model("eng_Latn", "deu_Latn"), ("en",), r"'en'.* Did you mean 'eng_Latn'\?"),
    ],
)
def test_what_cannot(of: Corpus, start: Any, new: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        check(of, start, new)


def test_a_language_with_another_name_may_be_new_where_it_is_said_what_it_is_like() -> None:
    check(corpus("en-de", "en-de"), model("eng_Latn", "de"), ("en",), like="eng_Latn")
