"""The commands of the README, the tutorial and the how-to pages are real, and all links lead somewhere."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from tolka.cli.common import separate_files
from tolka.config.command_line import evaluate_config, split_recipe, train_config, translate_config, with_recipe
from tolka.config.compose import compose_plainly
from tolka.config.schemas import build_groups
from tolka.config.sweep import plan
from tolka.config.translate_command import serve_config
from tolka.errors import TolkaError

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
EXTRA = (ROOT / "CONTRIBUTING.md", ROOT / "data" / "sample" / "README.md")
PAGES = [README, *sorted(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts), *EXTRA]
WITH_COMMANDS = [page for page in PAGES if page == README or page.parent.name in ("howto", "tutorial")]
OWN = ("plugins=[my_model]", "model=mean")  # of the page on plugins, whose module is not here


def commands_of(page: Path) -> list[str]:
    """Lines of the page's code blocks, and inline code, that begin with one of the commands."""
    text = page.read_text(encoding="utf-8")
    lines = {line for block in re.findall(r"```\n(.*?)```", text, flags=re.DOTALL) for line in block.splitlines()}
    lines |= set(re.findall(r"`(mt-\w+ [^`]+)`", text))
    return sorted({line.split(" | ")[-1] for line in lines if re.search(r"(^|\| )mt-\w+", line)})


COMMANDS = sorted({command for page in WITH_COMMANDS for command in commands_of(page)})


def test_commands_were_found() -> None:
    assert {command.split()[0] for command in COMMANDS} == {"mt-train", "mt-translate", "mt-eval", "mt-serve"}
    assert len(COMMANDS) > 25
    for page in WITH_COMMANDS:
        assert commands_of(page) or page.name in ("python.md", "options.md", "hydra.md"), page


def configuration(program: str, arguments: Sequence[str], settings: Sequence[str]) -> object:
    """The configuration of a command, which ConfigError refuses."""
    if program == "mt-translate":
        return translate_config(separate_files(settings)[1])
    if program == "mt-serve":
        return serve_config(separate_files(settings)[1])
    if program == "mt-eval":
        return evaluate_config(settings)
    if arguments[:1] == ["import"]:  # which has two settings of its own
        settings = [setting for setting in settings if not setting.startswith(("languages=[", "text=["))]
    of_recipe, settings = split_recipe(settings)
    build_groups(compose_plainly("recipe", of_recipe or ["recipe=distillation"]))
    known = [setting for setting in with_recipe(settings) if "MODEL" not in setting]
    return plan(known) if "-m" in arguments else train_config(known)


def test_every_command_s_settings_are_known(trained: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # runs/sample may be here, of make demo
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "support" / "plugins"))
    monkeypatch.setattr("tolka.tracking.options.find_spec", lambda package: package)  # installed or not
    refused, tried = [], set[str]()
    for command in COMMANDS:
        program, *arguments = shlex.split(re.split(r" [<>#] ?", command + " ")[0])
        settings = [argument for argument in arguments if "=" in argument and argument not in OWN]
        settings = [re.sub(r"^run\.init_from=.*", f"run.init_from={trained}", setting) for setting in settings]
        if (key := str((program, "-m" in arguments, settings))) in tried:
            continue
        tried.add(key)
        try:
            configuration(program, arguments, settings)
        except TolkaError as error:
            refused.append(f"{command}: {error}")
    assert refused == []


def test_each_row_of_the_readme_can_be_typed_after_the_demo(
    trained: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Settings behind the first command, or behind mt-train alone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tolka.tracking.options.find_spec", lambda package: package)
    text = README.read_text(encoding="utf-8")
    (first,) = re.findall(r"^mt-train (corpus=files .*) run.name=mine$", text, flags=re.MULTILINE)
    rows = text.partition("| you have | try |")[2].partition("\n\n")[0]
    codes = [code for code in re.findall(r"`([^`]+)`", rows) if re.match(r"'?[a-z]+[.\w]*=", code)]
    assert len(codes) > 8
    for code in codes:
        known = code.replace("runs/sample", str(trained)).replace("opus-mt-en-de", str(trained))
        typed = shlex.split(known)
        named = {each.partition("=")[0] for each in typed}
        behind = [each for each in shlex.split(first) if each.partition("=")[0] not in named]
        for before in (behind, []) if not any(key.startswith("corpus.") for key in named) else (behind,):
            if before or "run.init_from" not in named:
                train_config(with_recipe([*before, *typed]))


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for page in PAGES:
        for target in set(re.findall(r"`make (\w+)`", page.read_text(encoding="utf-8"))):
            assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_the_readme_is_short() -> None:
    assert len(README.read_bytes()) <= 8192


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_to_files_and_sections_that_exist() -> None:
    broken = []
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"https?:|mailto:", link):
                continue
            name, _, section = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            if not target.exists() or (section and target.suffix == ".md" and section not in anchors_of(target)):
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert broken == []


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    toctree = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        inside = page.relative_to(ROOT / "docs")
        if page.name not in ("README.md", "index.md", "settings.md") and "_build" not in inside.parts:
            assert f"({inside})" in index, page
            assert f"\n{inside.with_suffix('')}\n" in toctree, page
