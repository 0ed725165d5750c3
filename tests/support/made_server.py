"""A server's application whose models copy, and a client of it without a network."""

from collections.abc import Sequence
from typing import Any

from copying_model import translator
from starlette.testclient import TestClient

from tolka.search.options import BeamConfig
from tolka.serve.app import Application
from tolka.serve.models import ServedModel, ServedModels
from tolka.serve.options import LimitsConfig
from tolka.serve.suggestions import Suggestions
from tolka.system.progress import silent
from tolka.text.direction import Direction

EN_DE, DE_EN = Direction("en", "de"), Direction("de", "en")


def served(*directions: Direction) -> ServedModels:
    """Models that copy, named copy1, copy2 and so on."""
    models = [
        ServedModel(f"copy{number}", translator(BeamConfig(), direction=direction, split="sentences"), "# A card")
        for number, direction in enumerate(directions, 1)
    ]
    return ServedModels(models)


def application(
    directions: Sequence[Direction] = (EN_DE,),
    token: str = "",
    suggestions: Suggestions | None = None,
    **limits: int,
) -> Application:
    return Application(served(*directions), LimitsConfig(**limits), token, suggestions, silent)


def client(made: Application | None = None, names: Sequence[str] = (), **options: Any) -> TestClient:
    """A client of an application, by default of one with the options of `application`."""
    return TestClient((made or application(**options)).guarded(names), raise_server_exceptions=False)
