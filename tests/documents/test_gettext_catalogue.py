"""PO files: what is translated, every plural form, directives and accelerators, and what msgfmt says of the result."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from made_translations import EN_DE, Made, identity, translated

from tolka.documents.gettext_catalogue import GettextCatalogue
from tolka.errors import DataError
from tolka.text.direction import Direction

HEADER = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Language: de\\n"\n'
GERMAN = HEADER + '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'
EN_RU = Direction("en", "ru")


def opened(content: str | bytes, folder: Path) -> GettextCatalogue:
    path = folder / "a.po"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return GettextCatalogue(path)


def written(message: str, made: Made, folder: Path, header: str = GERMAN, direction: Direction = EN_DE) -> str:
    """What follows the header in the translated file, in which msgfmt finds no error."""
    result = translated(opened(header + message, folder), made, direction)
    if shutil.which("msgfmt"):
        done = subprocess.run(
            ["msgfmt", "-c", "-o", "/dev/null", "-"], input=result.encode(), capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
    return result[len(header) :] if result.startswith(header) else result


CATALOGUE = f"""# Comment
{GERMAN}#: a.c:1
#, c-format
msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

#| msgid "_Fle"
msgctxt "menu"
msgid "_File"
msgstr ""

#, fuzzy
msgid "old"
msgstr "alt"

msgid "done"
msgstr "fertig"

#~ msgid "gone"
#~ msgstr "weg"
"""


def test_an_identity_translator_gives_the_same_bytes_back(tmp_path: Path) -> None:
    for content in (CATALOGUE, CATALOGUE.replace("\n", "\r\n")):
        assert identity(opened(content, tmp_path)) == content.encode()


def test_what_is_translated_or_not_sure_stays(tmp_path: Path) -> None:
    texts = [(text.source, text.reason) for text in opened(CATALOGUE, tmp_path).texts() if text.reason != "edit"]
    assert texts == [
        ("%d file", ""),
        ("%d files", ""),
        ("File", ""),
        ("old", "fuzzy: a person must decide"),
        ("done", "translated already"),
    ]
    expected = CATALOGUE.replace('msgstr[0] ""\nmsgstr[1] ""', 'msgstr[0] "%d Datei"\nmsgstr[1] "%d Dateien"')
    expected = expected.replace('msgid "_File"\nmsgstr ""', 'msgid "_File"\nmsgstr "_Datei"')
    made = {"%d file": "%d Datei", "%d files": "%d Dateien", "File": "Datei"}
    assert written(CATALOGUE, made, tmp_path, "") == expected
    assert written(CATALOGUE.replace("\n", "\r\n"), made, tmp_path, "") == expected.replace("\n", "\r\n")


PLURAL = '#, c-format\nmsgid "one file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n'


def test_a_template_gets_the_plural_forms_of_the_language(tmp_path: Path) -> None:
    header = HEADER.replace("UTF-8", "CHARSET").replace("Language: de", "Language: ")
    template = header + '"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"\n\n'
    made = {"%d files": "файлов: %d", "one file": "один файл"}
    result = written(PLURAL, made, tmp_path, template, EN_RU)
    # Form 0 is also that of 21 files, and needs the number.
    assert result.endswith('\nmsgstr[0] "файлов: %d"\nmsgstr[1] "файлов: %d"\nmsgstr[2] "файлов: %d"\n')
    assert "charset=UTF-8\\n" in result
    assert '"Language: ru\\n"\n"Plural-Forms: nplurals=3; plural=(n % 10 == 1 && n % 100 != 11 ? 0 : ' in result
    # Without the field it is added.
    assert '"Language: ru\\n"\n"Plural-Forms: nplurals=3' in written(PLURAL, made, tmp_path, header + "\n", EN_RU)
    assert written(PLURAL, made, tmp_path, template, Direction("en", "ja")).endswith('\nmsgstr[0] "файлов: %d"\n')
    assert identity(opened(template + PLURAL, tmp_path)) == (template + PLURAL).encode()


def test_no_form_is_empty_beside_one_that_is_not(tmp_path: Path) -> None:
    made = {"%d files": "%d Dateien"}  # and "one file" stays as it is
    assert written(PLURAL, made, tmp_path).endswith('msgstr[0] "one file"\nmsgstr[1] "%d Dateien"\n')
    partly = PLURAL.replace('msgstr[0] ""', 'msgstr[0] "eine Datei"')
    assert written(partly, made, tmp_path).endswith('msgstr[0] "eine Datei"\nmsgstr[1] "%d Dateien"\n')


@pytest.mark.parametrize(
    ("flags", "source", "target", "expected"),
    [
        ("c-format", "%s in %d", "%d: %s", "%2$d: %1$s"),
        ("c-format", "%zu KB of %-5.1f%%", "von %-5.1f%% %zu KB", "von %2$-5.1f%% %1$zu KB"),
        ("c-format", "%s free", "100 % %s frei", "100 %% %s frei"),
        ("python-format", "%s in %d", "%d: %s", "%s: %d"),
        ("python-format", "%(a)s in %(b)d", "%(b)d: %(a)s", "%(b)d: %(a)s"),
        ("c-format", "See <a href='%s'>it</a>, %d", "%d: es", "%2$d: <a href='%1$s'>es</a>"),
        ("no-c-format", "all of 100% safe", "ganz 100% sicher", "ganz 100% sicher"),
    ],
)
def test_directives(flags: str, source: str, target: str, expected: str, tmp_path: Path) -> None:
    message = f'#, {flags}\nmsgid "{source}"\nmsgstr ""\n'
    read = re.sub("<[^<>]*>", "", source)
    assert written(message, {read: target}, tmp_path) == message.replace('msgstr ""', f'msgstr "{expected}"')


@pytest.mark.parametrize(
    ("source", "read", "target", "expected"),
    [
        ("_Open…", "Open…", "Öffnen…", "_Öffnen…"),
        ("Save _As", "Save As", "Sichern als", "_Sichern als"),
        ("E_xit", "Exit", "Ende", "_Ende"),
        ("&Find", "Find", "%s finden", "%s &finden"),
        ("E&xit...", "Exit...", "退出...", "退出(&X)..."),
        ("a file_name", "a file_name", "ein file_name", "ein file_name"),
        ("R&D, Tom &amp; Co", "R&D, Tom &amp; Co", "F&E, Tom &amp; Co", "F&E, Tom &amp; Co"),
    ],
)
def test_accelerators(source: str, read: str, target: str, expected: str, tmp_path: Path) -> None:
    message = f'msgid "{source}"\nmsgstr ""\n'
    assert written(message, {read: target}, tmp_path) == message.replace('msgstr ""', f'msgstr "{expected}"')


def test_lines_columns_and_options_of_a_text(tmp_path: Path) -> None:
    message = (
        'msgid ""\n"\\n"\n"Usage: %s [OPTION]\\n"\n"  -h, --help  show the \\"help\\" that is\\n"\n'
        '"              here\\n"\nmsgstr ""\n'
    )
    made = {
        "Usage: %s [OPTION]": "Aufruf: %s [OPTION]",
        'show the "help" that is here': "die Hilfe zeigen, die hier ist",
    }
    assert written(message, made, tmp_path)[len(message) :] == (
        '"\\n"\n"Aufruf: %s [OPTION]\\n"\n"  -h, --help  die Hilfe zeigen, die\\n"\n"              hier ist\\n"\n'
    )


def test_a_string_with_a_nul_is_no_text(tmp_path: Path) -> None:
    message = 'msgid "a\\0b"\nmsgstr ""\n'
    document = opened(GERMAN + message, tmp_path)
    assert [(text.source, text.reason) for text in document.texts()][1:] == [("a\0b", "code")]


def test_two_blanks_inside_of_a_text_do_not_split_it(tmp_path: Path) -> None:
    message = 'msgid "one word  too many.  And the next."\nmsgstr ""\n'
    document = opened(GERMAN + message, tmp_path)
    assert next(text.source for text in document.texts() if not text.reason) == "one word too many. And the next."


def test_another_encoding_becomes_utf_8(tmp_path: Path) -> None:
    content = GERMAN.replace("UTF-8", "ISO-8859-1") + '# für\nmsgid "a word"\nmsgstr ""\n'
    result = translated(opened(content.encode("iso-8859-1"), tmp_path), {"a word": "ein Wort – 语"})
    assert result == GERMAN + '# für\nmsgid "a word"\nmsgstr "ein Wort – 语"\n'


def test_a_broken_file_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.po:7: a keyword and a text in quotes are expected"):
        list(opened(GERMAN + 'msgid "a\nmsgstr ""\n', tmp_path).texts())


def test_a_catalogue_of_another_language_is_refused(tmp_path: Path) -> None:
    header = 'msgid ""\nmsgstr "Language: fr\\n"\n\n'
    with pytest.raises(DataError, match="its header says Language: fr, and the model translates into de"):
        written('msgid "a word"\nmsgstr ""\n', {}, tmp_path, header)
