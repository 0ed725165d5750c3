"""What is installed: the dependencies of serving, and one version in every place that names it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tolka.version import __version__

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def name_of(requirement: str) -> str:
    return re.split(r"[^\w-]", requirement)[0]


def test_serving_needs_all_dependencies_but_torch_and_datasets() -> None:
    project = PYPROJECT["project"]
    core = [each for each in project["dependencies"] if name_of(each) not in ("torch", "datasets")]
    assert len(core) == len(project["dependencies"]) - 2
    extras = project["optional-dependencies"]
    assert PYPROJECT["dependency-groups"]["serving"] == [*core, *extras["serve"], *extras["ctranslate2"]]


def test_the_page_on_deploying_names_the_packages_of_serving_and_the_wheel() -> None:
    page = (ROOT / "docs" / "howto" / "deploy.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^pip install (numpy .*?)\npip install --no-deps (\S+)$", page, flags=re.M | re.S)
    assert line[0].replace("\\", " ").split() == [
        *dict.fromkeys(map(name_of, PYPROJECT["dependency-groups"]["serving"]))
    ]
    assert line[1] == f"tolka-{__version__}-py3-none-any.whl"


def test_the_server_is_imported_without_torch_and_datasets() -> None:
    code = "import sys; sys.modules |= {'torch': None, 'datasets': None}; import tolka.serve.server"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_changelog_begins_with_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", text, flags=re.M)[0] == __version__
