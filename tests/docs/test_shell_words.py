"""What a reader may copy to a shell arrives in the command as it stands there: in bash, and in zsh, the shell of macOS.

zsh refuses a word with an open [, * or ? that matches no file, where bash passes it on.
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rows import each_row

from conftest import COMMANDS
from tolka.cli.train_commands import SUBCOMMANDS
from tolka.config.choices import known_keys

ROOT = Path(__file__).parents[2]
PROGRAMS = "mt-train mt-translate mt-eval tolka torchrun srun sbatch pip python python3 make echo source cat tail for"
# Open outside of quotes: patterns, grouping and braces, history (also in double quotes), variables where none is meant.
_OPEN = re.compile(r"[][*?(){}!^]|\$(?![A-Za-z_@1-9#]|\{\w+[}:])")
_OPEN_AT_START = re.compile(r"[~=](?!/|$)")
_IN_DOUBLE_QUOTES = re.compile(r"!|\$\{\w+\.|`")
# A word up to a blank, a redirection or the next command; a part in quotes may have any of them.
_WORD = re.compile(r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\;|&<>])+""")
_PARTS = re.compile(r"""('[^']*')|"((?:\\.|[^"\\])*)"|\\.|([^'"\\]+)""")
# A setting in prose, in a message or in a comment, that is neither in quotes nor the value of another.
_SETTING = re.compile(
    r"""(?<![\w'"=.\[{(,/$-])[+~]{0,2}[a-z_]\w*(?:[./]\w+)*=(?:[^\s'"`,;:|(]*?[\[*?]|\w+\(\w|[^\s'"`{},]*\$\{)[^\s'"`]*"""
)


def open_words(line: str) -> list[str]:
    """Words of a command that zsh or bash would change or refuse. A comment counts: in zsh nothing begins one."""
    found = []
    for match in _WORD.finditer(re.sub(r"<\([^()]*\)", "x", line)):  # <(COMMAND) is a file in both
        word = match.group()
        bare = "".join(part[3] or "x" for part in _PARTS.finditer(word))
        doubled = "".join(part[2] or "" for part in _PARTS.finditer(word))
        comment = word == "#"
        if comment or _OPEN.search(bare) or _OPEN_AT_START.match(bare) or _IN_DOUBLE_QUOTES.search(doubled):
            found.append(word)
    return found


@each_row(
    ("line", "expected"),
    [
        ("mt-train corpus.train=[a,b]", ["corpus.train=[a,b]"]),
        ("mt-train 'corpus.train=[a,b]' \"corpus.valid=[a, b]\" model=lstm", []),
        ("mt-train corpus.train='[a,b]' x=\\[a]", ["x=\\[a]"]),
        ("mt-train corpus.train=data/*.tmx ~experiment run.dir=~/a ~/a", ["corpus.train=data/*.tmx", "~experiment"]),
        ("mt-train -m run.seed=range(1,4) | x a?b < c[1]", ["run.seed=range(1,4)", "a?b", "c[1]"]),
        ('mt-train \'a=${b.c}\' "d=${e.f}" g=${h.i} $k "${l}"', ['"d=${e.f}"', "g=${h.i}"]),
        ("mt-eval hypothesis=<(cut -f 2 a.tsv) x", []),
        ('echo "Hello!" # greets', ['"Hello!"', "#"]),
        ("pip install tolka[hub] =ls a^b", ["tolka[hub]", "=ls", "a^b"]),
    ],
)
def test_the_rule(line: str, expected: list[str]) -> None:
    assert open_words(line) == expected


def commands_and_settings(page: str) -> Iterator[str]:
    """The commands in a page's code blocks, and inline code that is a command or settings."""
    for language, block in re.findall(r"^ *```(\w*)\n(.*?)^ *```", page, flags=re.DOTALL | re.MULTILINE):
        if language in ("", "sh", "bash", "console"):
            for line in re.sub(r"\\\n", "", block).splitlines():
                if (line.split() or [""])[0] in PROGRAMS.split():
                    yield line
    prose = re.sub(r"^ *```.*?^ *```", "", page, flags=re.DOTALL | re.MULTILINE)
    for code in re.findall(r"(?<!`)`([^`]+)`(?!`)", prose):
        is_setting = re.match(r"[+~]*[a-z]\w*([./]\w+)*=\S|[+~][a-z]", code)
        if is_setting or (code.split()[:1] and code.split()[0] in PROGRAMS.split()):
            yield code


def texts_of(path: Path) -> Iterator[str]:
    """Prose that may name a setting: strings of a module, with X for what is put in, or the comments of a YAML file."""
    if path.suffix != ".py":
        yield from path.read_text("utf-8").splitlines()
        return
    joined = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.JoinedStr):
            joined |= {id(part) for part in node.values}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in joined:
            yield node.value


def test_commands_and_settings_of_the_pages_need_no_more_quotes() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "data" / "sample" / "README.md"]
    pages += [page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts]
    texts = {page: page.read_text("utf-8") for page in pages}
    for notebook in (ROOT / "docs").rglob("*.ipynb"):
        cells = json.loads(notebook.read_text("utf-8"))["cells"]
        texts[notebook] = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    found = [
        f"{page.relative_to(ROOT)}: {line}: {' '.join(words)}"
        for page, text in texts.items()
        for line in commands_and_settings(text)
        if (words := open_words(line))
    ]
    assert found == []


def test_settings_in_messages_help_and_comments_need_no_more_quotes() -> None:
    source = ROOT / "src" / "tolka"
    files = [path for kind in ("py", "md", "txt", "yaml", "html") for path in source.rglob(f"*.{kind}")]
    files += [*(ROOT / "configs").rglob("*.yaml"), ROOT / "Makefile"]
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in files
        for text in texts_of(path)
        for match in _SETTING.finditer(text)
        if match.group() != text  # a setting as the program uses it, not one that somebody types
    ]
    assert found == []


def messages() -> dict[Path, list[str]]:
    """The strings of the package's modules and of the files beside them, without names of other programs."""
    source = ROOT / "src" / "tolka"
    paths = [path for kind in ("py", "txt", "yaml") for path in source.rglob(f"*.{kind}")]
    return {path: [*texts_of(path)] for path in paths if path.stem != "foreign_names"}


def test_every_setting_that_a_message_advises_is_there() -> None:
    known = {key for name in ("train", "translate", "evaluate", "recipe") for key in known_keys(name)}
    known |= {"corpus.monolingual", "model.d_v"}  # short for a recipe's, and not listed
    groups = {key.partition(".")[0] for key in known}
    unknown = [
        f"{path.name}: {key}"
        for path, texts in messages().items()
        for text in texts
        for key in re.findall(r"(?<![\w./$@{])([a-z]\w*\.[a-z]\w*)=", text)
        if key.partition(".")[0] in groups and key not in known
    ]
    assert unknown == [], unknown


def test_every_option_that_a_message_advises_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    helps: list[tuple[str, ...]] = [(program, "--help") for program in PROGRAMS.split()[:3]]
    helps += [("mt-train", name, "--help") for name in SUBCOMMANDS]
    known = dict.fromkeys(("mt-train", "mt-translate", "mt-eval"), frozenset[str]())
    for program, *arguments in helps:
        with pytest.raises(SystemExit):
            COMMANDS[program](arguments)
        shown = capsys.readouterr().out
        known[program] |= {*re.findall(r"--[a-z][\w-]+", shown), *re.findall(r"(?<=mt-train )\w+", shown)}
    unknown = []
    for path, texts in messages().items():
        for program, rest in re.findall(r"\b(mt-(?:train|translate|eval)) ([^;,()`\"'\n]*)", "\n".join(texts)):
            words = [word.rstrip(".:") for word in rest.split()]
            unknown += [
                f"{path.name}: {program} {word}" for word in words if word[:2] == "--" and word not in known[program]
            ]
    assert unknown == [], unknown
