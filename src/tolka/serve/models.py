"""The models of a server: opened, found by their languages, and opened again without a request being lost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
        """The directions that it translates in; of many languages without named directions, between any two."""
        named = [each for each in self.translator.directions if all(map(is_named, each))]
        codes = self.translator.tokenizer.languages
        if named or not codes:
            return named or [self.translator.direction]
        return [Direction(*pair) for pair in product(codes, codes) if pair[0] != pair[1]]

    @property
    def page_directions(self) -> list[Direction]:
        """Those that the page offers: of many languages without named directions, the one that was typed."""
        return self.directions if self.translator.directions else [self.translator.direction]


class ServedModels:
    """All models of a server, as they are at a time: a request has the same ones from its beginning to its end."""

    def __init__(self, models: Sequence[ServedModel]) -> None:
        self.models = models
        self._directions = [way for each in models for way in each.directions]
        self._translators: dict[tuple[str, Direction], Translator[Any]] = {}
        # By a model's name, or "", and the codes of a direction: first as they are, and then the shortest ones.
        self._ways: dict[tuple[str, str, str], tuple[ServedModel, Direction]] = {}
        for form, served in product(_FORMS, models):
            for way, name in product(served.directions, ("", served.name)):
                self._ways.setdefault((name, form(way.source), form(way.target)), (served, way))

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
        codes = [(model, form(source), form(target)) for form in _FORMS]
        known = next((each for each in codes if each in self._ways), None)
        if known is None:
            shown = dict.fromkeys(str(Direction(*map(shown_code, way))) for way in self._directions)
            listed = f"{', '.join([*shown][:_LISTED])}{' ...' if len(shown) > _LISTED else ''}"
            raise HTTPException(400, f"nothing translates from {source:.20} to {target:.20}; there are: {listed}")
        served, way = self._ways[known]
        if (served.name, way) not in self._translators:
            self._translators[served.name, way] = served.translator.for_direction(way)
        return self._translators[served.name, way]

    def languages(self) -> list[dict[str, Any]]:
        """Return code, name and targets of each source language, as LibreTranslate lists them."""
        targets: dict[str, dict[str, None]] = {}
        for source, target in self._directions:
            targets.setdefault(shown_code(source), {})[shown_code(target)] = None
            targets.setdefault(shown_code(target), {})
        return [{"code": code, "name": english_name(code), "targets": [*each]} for code, each in targets.items()]

    def detect(self, text: str, target: str = "") -> list[dict[str, Any]]:
        """Return the languages that a text may be in, as LibreTranslate lists them: the likeliest first; at least one.

        target: only languages from which something translates into this one. It takes a second the first time.
        """
        key, directions = plain_code(target), self._directions
        codes = [*dict.fromkeys(source for source, other in directions if not target or plain_code(other) == key)]
        codes = codes or [directions[0].source]
        identifier = installed_identifier()
        of_plain = identifier.likelihoods(text[:_READ]) if identifier else {}
        found = {shown_code(code): of_plain.get(plain_code(code), 0.0) for code in codes}
        if not of_plain and (certain := code_of_text([text], codes)):  # by its letters: it is too short for more
            found[shown_code(certain)] = 1.0
        best_first = sorted(found, key=lambda code: -found[code])
        likely = [code for code in best_first if found[code] >= _LEAST_SHARE] or best_first[:1]
        return [{"language": code, "confidence": round(100 * found[code], 1)} for code in likely]


def shown_code(code: str) -> str:
    """Return the code of a language as clients know it: zh-Hant for zho_Hant."""
    return language_tag(code) if is_named(code) else UNDETERMINED


_FORMS: tuple[Callable[[str], str], ...] = (
    lambda code: shown_code(code).casefold(),
    lambda code: plain_code(code or UNDETERMINED),
)


def _card(folder: Path) -> str:
    found = next((path for path in (folder / "best" / CARD, folder / CARD) if path.is_file()), None)
    return found.read_text(encoding="utf-8", errors="replace") if found else ""
