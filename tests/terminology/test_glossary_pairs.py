"""A glossary's terms as training pairs."""

from pathlib import Path

import pytest

from conftest import Command
from tolka.config.command_line import train_config
from tolka.run.inputs import make_loader, read_inputs
from tolka.run.texts import open_corpus
from tolka.terminology.glossary import GlossaryPairs
from tolka.text.direction import Direction


@pytest.fixture
def terms(tmp_path: Path) -> Path:
    (tmp_path / "terms.tsv").write_text("lantern|lamp\ttolo\tmirka\nkettle\tpell\n", encoding="utf-8")
    return tmp_path / "terms.tsv"


def test_each_form_comes_with_the_first_translation(terms: Path) -> None:
    pairs = GlossaryPairs(terms, Direction("xa", "xb"))
    assert [(pair.source, pair.target) for pair in pairs.read()] == [
        ("lantern", "tolo"),
        ("lamp", "tolo"),
        ("kettle", "pell"),
    ]
    assert pairs.count() == 3
    before = pairs.fingerprint()
    terms.write_text("a\tb\n")
    assert pairs.fingerprint() != before


@pytest.mark.parametrize(
    ("settings", "pairs"),
    [([], 60), (["corpus.weights=[1,1]"], 68)],
)
def test_an_epoch_draws_each_term_as_a_pair(
    settings: list[str], pairs: int, tiny: list[str], corpus: Path, terms: Path
) -> None:
    """Of the pairs and 3 terms; an epoch is as long as all together."""
    texts = [f"corpus.train=[{corpus / 'train'},{corpus / 'valid'}]"] if pairs > 60 else []
    said: list[str] = []
    config = train_config([*tiny, f"corpus.glossary={terms}", *settings, *texts, "cleaning.leaks=keep"])
    inputs = read_inputs(config, said.append)
    plan = make_loader(inputs, config, said.append).plan(0)
    assert [source.name for source in open_corpus(config.corpus, config.run.prepared_folder, said.append).train][
        -1
    ] == "glossary terms.tsv"
    assert inputs.prepared.parts[-1] == 3
    drawn = [row for rows in plan for row in rows]
    assert abs(len(drawn) - pairs - 3) <= 1
    assert abs(sum(row >= pairs for row in drawn) - 3) <= 1


def test_what_does_not_fit_is_one_line(tiny: list[str], tmp_path: Path, terms: Path, command: Command) -> None:
    for settings, message in (
        (["corpus.glossary=nowhere.tsv"], "nowhere.tsv: there is no such file"),
        ([f"corpus.glossary={terms}", "corpus.both_directions=true"], "is for a text of one direction"),
    ):
        found = command("mt-train", *tiny, *settings)
        assert found.code != 0
        assert message in found.err
