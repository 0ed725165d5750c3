"""The models of a server: opened, found by their languages, and opened again without a request being lost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException

from tolka.jobs.options import TranslateConfig
from tolka.model_directory.file_names import CARD
from tolka.system.progress import Say
from tolka.text.direction import UNDETERMINED, Direction, is_named
from tolka.text.languages import code_of_text, english_name, installed_identifier
from tolka.text.scripts import language_tag, plain_code
from tolka.translation.opening import open_model
from tolka.translation.translator import Translator

_LISTED = 20  # directions in a message
_READ = 2000  # characters of a text, from which its language is told
_LEAST_SHARE = 0.01  # of a language that a text may be in


@dataclass(frozen=True)
class ServedModel:
    """A model, its name among those of the server, and its card in Markdown."""

    name: str
    translator: Translator[Any]
    card: str

    @property
    def directions(self) -> list[Direction]:
        """The directions that it translates in; none for one of many languages that names none: see `languages`."""
        named = [each for each in self.translator.directions if all(map(is_named, each))]
        return named or ([] if self.translator.tokenizer.languages else [self.translator.direction])

    @cached_property
    def languages(self) -> dict[str, str]:
        """Of a model without named directions, which translates between any two: its own codes by those of clients."""
        # aka_Latn and twi_Latn are both shown as ak-Latn: the second keeps its own code.
        found = dict[str, str]()
        for code in [] if self.directions else self.translator.tokenizer.languages:
            found.setdefault(code if shown_code(code) in found else shown_code(code), code)
        return found

    def find(self, source: str, target: str, form: Callable[[str], str]) -> Direction | None:
        """Return the first of its directions whose codes are equal to these in a form."""
        wanted = Direction(*(form(self.languages.get(code, code)) for code in (source, target)))
        if self.directions:
            return next((way for way in self.directions if Direction(*map(form, way)) == wanted), None)
        sources, targets = ([own for own in self.languages.values() if form(own) == code] for code in wanted)
        return next((Direction(*pair) for pair in product(sources, targets) if pair[0] != pair[1]), None)


class ServedModels:
    """All models of a server, as they are at a time: a request has the same ones from its beginning to its end."""

    def __init__(self, models: Sequence[ServedModel]) -> None:
        self.models = models
        self._translators: dict[tuple[str, Direction], Translator[Any]] = {}

    @classmethod
    def open(cls, names: Sequence[Sequence[Path]], config: TranslateConfig, say: Say) -> "ServedModels":
        """Open models. names: the folders of each, of which several translate together. TolkaError as `open_model`."""
        served = dict[str, ServedModel]()
        for folders in names:
            path = folders[0].parent if folders[0].name in ("best", "last") else folders[0]
            name = path.name or str(path)
            numbered = (f"{name}-{number}" for number in range(2, len(names) + 2))
            name = next(each for each in (name, *numbered) if each not in served)
            translator = open_model(folders, config.search, config.decoding, say=say)
            served[name] = ServedModel(name, translator, _card(folders[0]))
        return cls([*served.values()])

    def translator(self, source: str, target: str, model: str = "") -> Translator[Any]:
        """Return the translator of a direction. model: its name; "" is the first that fits.

        Codes need not be the model's own: en-US or eng for en. HTTPException, with the directions that there are.
        """
        names = [each.name for each in self.models]
        if model and model not in names:
            raise HTTPException(400, f"there is no model '{model:.60}'; there are: {', '.join(names)}")
        for form, served in product(_FORMS, self.models):
            if model in ("", served.name) and (way := served.find(source, target, form)):
                if (served.name, way) not in self._translators:
                    self._translators[served.name, way] = served.translator.for_direction(way)
                return self._translators[served.name, way]
        shown = [f"{each['code']} to {code}" for each in self.languages for code in each["targets"]]
        listed = f"{', '.join(shown[:_LISTED])}{' ...' if len(shown) > _LISTED else ''}"
        raise HTTPException(400, f"nothing translates from {source:.20} to {target:.20}; there are: {listed}")

    @cached_property
    def languages(self) -> list[dict[str, Any]]:
        """Code, name and targets of each source language, as LibreTranslate lists them."""
        targets: dict[str, dict[str, None]] = {}
        for served in self.models:
            for source, target in served.directions:
                targets.setdefault(shown_code(source), {})[shown_code(target)] = None
                targets.setdefault(shown_code(target), {})
            for code in served.languages:
                targets.setdefault(code, {}).update(dict.fromkeys(each for each in served.languages if each != code))
        return [{"code": code, "name": english_name(code), "targets": [*each]} for code, each in targets.items()]

    def detect(self, text: str, target: str = "") -> list[dict[str, Any]]:
        """Return the languages that a text may be in, as LibreTranslate lists them: the likeliest first; at least one.

        target: only languages from which something translates into this one. It takes a second the first time.
        """
        key = plain_code(target)
        fitting = (each for each in self.languages if not target or key in map(plain_code, each["targets"]))
        codes = [each["code"] for each in fitting if each["targets"]] or [self.languages[0]["code"]]
        identifier = installed_identifier()
        of_plain = identifier.likelihoods(text[:_READ]) if identifier else {}
        found = {code: of_plain.get(plain_code(code), 0.0) for code in codes}
        if not of_plain and (certain := code_of_text([text], codes)):  # by its letters: it is too short for more
            found[certain] = 1.0
        best_first = sorted(found, key=lambda code: -found[code])
        likely = [code for code in best_first if found[code] >= _LEAST_SHARE] or best_first[:1]
        return [{"language": code, "confidence": round(100 * found[code], 1)} for code in likely]


def shown_code(code: str) -> str:
    """Return the code of a language as clients know it: zh-Hant for zho_Hant."""
    return language_tag(code) if is_named(code) else UNDETERMINED


_FORMS: tuple[Callable[[str], str], ...] = (
    str,
    lambda code: shown_code(code).casefold(),
    lambda code: plain_code(code or UNDETERMINED),
)


def _card(folder: Path) -> str:
    found = next((path for path in (folder / "best" / CARD, folder / CARD) if path.is_file()), None)
    return found.read_text(encoding="utf-8", errors="replace") if found else ""
