"""Parallel text of two documents."""

from pathlib import Path

import pytest

from tolka.documents.parallel import register_documents
from tolka.errors import DataError
from tolka.text.corpora.base import Entry
from tolka.text.corpora.files import FilesConfig
from tolka.text.pairs import Pair, PairSource

ENGLISH = '<p>The <b>cat</b>.</p><pre>code</pre><p>A dog.<img alt="Dog"></p><p>42</p>'
GERMAN = '<p>Die <b>Katze</b>.</p><pre>code</pre><p>Ein Hund.<img alt="Hund"></p><p translate="no">Nichts</p>'


@pytest.fixture
def manual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a page in two languages."""
    monkeypatch.chdir(tmp_path)
    Path("manual.en.html").write_text(ENGLISH)
    Path("manual.de.html").write_text(GERMAN)
    register_documents()
    return tmp_path


def opened(*train: Entry) -> PairSource:
    return FilesConfig(source="en", target="de", train=[*train], valid=["auto"]).open().entries[0][0]


@pytest.mark.parametrize("entry", ["manual", "man*", ["manual.en.html", "manual.de.html"]])
def test_the_texts_of_two_documents_are_pairs(manual: Path, entry: Entry) -> None:
    pairs = opened(entry)
    assert list(pairs.read()) == [Pair("The cat.", "Die Katze."), Pair("A dog.", "Ein Hund."), Pair("Dog", "Hund")]
    assert pairs.count() == 3


def test_the_fingerprint_is_that_of_both_documents(manual: Path) -> None:
    before = opened("manual").fingerprint()
    Path("manual.de.html").write_text(GERMAN.replace("Hund", "Kater"))
    assert opened("manual").fingerprint() != before


def test_documents_of_which_one_has_more_texts_are_refused(manual: Path) -> None:
    Path("manual.de.html").write_text(f"<p>Mehr</p>{GERMAN}")
    with pytest.raises(DataError, match=r"manual\.en\.html has 5 texts, manual\.de\.html 6: they are not pairs"):
        opened("manual").count()


def test_a_document_and_a_file_of_lines_are_refused(manual: Path) -> None:
    Path("lines.de").write_text("Die Katze.\n")
    with pytest.raises(DataError, match=r"lines\.de is a file of lines"):
        opened(["manual.en.html", "lines.de"]).count()
