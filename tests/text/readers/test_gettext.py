"""PO files say the same to tolka as to msgfmt.

polib (1.2.0) was tried in place of a reader of our own. On 1330 files of Django, Sphinx and WTForms both give what
msgfmt gives; polib refuses or misreads seven of the texts below, and holds a whole file in memory.
"""

import gettext
import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest
from rows import each_row

from tolka.text.direction import Direction
from tolka.text.pairs import Pair
from tolka.text.readers.gettext import GettextFile

HEADER = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset={charset}\\n"\n"Plural-Forms: {plural}\\n"\n\n'
GERMANIC = "nplurals=2; plural=(n != 1);"
needs_msgfmt = pytest.mark.skipif(shutil.which("msgfmt") is None, reason="msgfmt (Debian: gettext) is not installed")


def po(path: Path, body: str, charset: str = "UTF-8", plural: str = GERMANIC) -> Path:
    path.write_bytes((HEADER.format(charset=charset, plural=plural) + body).encode(charset))
    return path


def read(path: Path) -> list[Pair]:
    return list(GettextFile(path, "t", Direction("en", "de"), ()).read())


def translations(path: Path) -> list[str]:
    """Return what is translated, in one line each."""
    return sorted(" ".join(pair.target.split()) for pair in read(path) if not pair.flaw and pair.target)


def of_msgfmt(path: Path) -> list[str]:
    compiled = path.with_suffix(".mo")
    subprocess.run(["msgfmt", "-o", compiled, path], check=True, capture_output=True)
    with compiled.open("rb") as stream:
        catalogue = gettext.GNUTranslations(stream)._catalog  # type: ignore[attr-defined]
    return sorted(" ".join(text.split()) for key, text in catalogue.items() if key and text)


@needs_msgfmt
@each_row(
    ("body", "charset"),
    [
        ('msgid "a" "b"\nmsgstr "c" "d"\n"e" "f"\n', "UTF-8"),
        ('msgid "a" msgstr "b"\nmsgid "c" msgstr "d"\n', "UTF-8"),
        ('msgid"a"\nmsgstr"b"\n', "UTF-8"),
        ('  msgid   "a"  \n\tmsgstr\t"b"\t\n', "UTF-8"),
        ('msgid "a"\n\n"b"\n\nmsgstr "c"\n\n"d"\n', "UTF-8"),
        ('msgid "a"\nmsgid_plural "as"\nmsgstr[0] "x"\nmsgstr [ 1 ] "y"\n', "UTF-8"),
        ('msgid "a"\nmsgid_plural "as"\nmsgstr[0] ""\nmsgstr[1] "y"\n', "UTF-8"),
        ('domain "other"\nmsgid "a"\nmsgstr "b"\n', "UTF-8"),
        ('msgid "a"\nmsgstr "\\303\\266 \\x41 \\101 \\x41b"\n', "UTF-8"),
        ('msgid "a"\nmsgstr "x\\t\\"y\\" \\\\n"\n', "UTF-8"),
        ('#~ msgid "a"\n#~ "b"\n#~ msgstr "c"\nmsgid "d"\nmsgstr "e"\n', "UTF-8"),
        ('#| msgid "o"\n#| "p"\nmsgid "c"\nmsgstr "d"\n#~| msgid "e"\n#~ msgid "f"\n#~ msgstr "g"\n', "UTF-8"),
        ('#,c-format,fuzzy\nmsgid "a"\nmsgstr "b"\n#, range: 0..10\n# fuzzy\nmsgid "c"\nmsgstr "d"\n', "UTF-8"),
        ('msgctxt "m"\nmsgid "a"\nmsgstr "b"\n\nmsgctxt "n"\nmsgid "a"\nmsgstr "c"\n', "UTF-8"),
        ('msgid "a"\r\nmsgstr "b"\r\n', "UTF-8"),
        ('msgid "a"\nmsgstr "öÃ¤"\n', "ISO-8859-1"),
        ('msgid "a"\nmsgstr "„x“"\n', "CP1252"),
        ('msgid "a"\nmsgstr "파일"\n', "EUC-KR"),
        ('msgid "a"\nmsgstr "表示ソフト"\n', "SHIFT_JIS"),  # the second byte of some is a backslash in ASCII
    ],
)
def test_what_msgfmt_reads_is_read_as_it_does(tmp_path: Path, body: str, charset: str) -> None:
    path = po(tmp_path / "a.po", body, charset)
    assert translations(path) == of_msgfmt(path)


@needs_msgfmt
def test_twenty_catalogues_of_sphinx_are_read_as_msgfmt_reads_them(tmp_path: Path) -> None:
    spec = importlib.util.find_spec("sphinx")
    files = sorted(Path(spec.origin).parent.rglob("*.po"))[:20] if spec and spec.origin else []
    if not files:
        pytest.skip("Sphinx (pip install 'tolka[docs]') and its PO files are not installed")
    for path in files:
        copy = tmp_path / "a.po"
        copy.write_bytes(path.read_bytes())
        assert translations(copy) == of_msgfmt(copy), path


PLURAL = 'msgid "one file"\nmsgid_plural "%d files"\n'


@each_row(
    ("rule", "forms", "sources"),
    [
        ("nplurals=1; plural=0;", 1, ["%d files"]),  # ja, ko, zh, th, vi, id
        (GERMANIC, 2, ["one file", "%d files"]),
        ("nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2);", 3, ["one file", *["%d files"] * 2]),  # lv
        ("nplurals=3; plural=(n==0 ? 0 : n==1 ? 1 : 2);", 3, ["%d files", "one file", "%d files"]),  # ar, without duals
        ("nplurals=2; plural=n/0;", 2, ["one file", "%d files"]),  # no rule: as without one
        ("nplurals=2; plural=__import__;", 2, ["one file", "%d files"]),
    ],
)
def test_the_form_for_one_thing_translates_msgid(tmp_path: Path, rule: str, forms: int, sources: list[str]) -> None:
    body = PLURAL + "".join(f'msgstr[{n}] "form {n}"\n' for n in range(forms))
    pairs = read(po(tmp_path / "a.po", body, plural=rule))
    assert pairs == [Pair(source, f"form {n}") for n, source in enumerate(sources)]


KEPT = '#: a.c:1\nmsgid "Keep me"\nmsgstr "Behalte mich"\n'


@needs_msgfmt
@pytest.mark.parametrize(
    "obsolete",
    [
        '#, fuzzy\n#~| msgid "Old"\n#~ msgid "Older"\n#~ msgstr "Alt"\n\n',
        '#, fuzzy\n#~ msgctxt "menu"\n#~ msgid "Old"\n#~ msgstr "Alt"\n',
        '#, c-format, fuzzy\n#~ msgid "Old"\n#~ msgid_plural "Olds"\n#~ msgstr[0] "Alt"\n#~ msgstr[1] "Alte"\n',
    ],
)
def test_the_flag_of_an_obsolete_message_is_its_own(tmp_path: Path, obsolete: str) -> None:
    path = po(tmp_path / "a.po", obsolete + KEPT)
    assert read(path) == [Pair("Keep me", "Behalte mich")]
    assert translations(path) == of_msgfmt(path)
    fuzzy = po(tmp_path / "b.po", f"#, fuzzy\n{KEPT}{obsolete}")
    assert read(fuzzy) == [Pair("Keep me", "Behalte mich", "fuzzy translation")]
