"""What of a text is a path of this machine, and what only has a slash in it."""

import pytest

from tolka.model_directory.public_copy import PublicCopy


@pytest.mark.parametrize(
    ("place", "text", "short"),
    [
        ("run.dir", "/home/ann/runs/mine", "mine"),
        ("run.dir", "runs/mine/", "mine"),
        ("run.init_from", r"C:\Users\ann\mine", "mine"),
        ("corpus.train", "customers/acme/train", "train"),
        ("corpus.root", "~ann/texts", "texts"),
        ("tokenizer.model", "../other/tokenizer.model", "tokenizer.model"),
        ("corpus.path", "bentrevett/multi30k", "bentrevett/multi30k"),
        ("corpus.path", "/data/multi30k", "multi30k"),
        ("scores.facts.made of", "the mean of /tmp/a, runs/b/best", "the mean of a, best"),
        (
            "report.sentences",
            "It drove 30 km/h on 1/2/2020 and/or slower.",
            "It drove 30 km/h on 1/2/2020 and/or slower.",
        ),
        ("report.sentences", "see https://example.org/page", "see https://example.org/page"),
        ("my_group.table", "/home/ann/table.txt", "table.txt"),
        ("my_group.table", "~/table.txt", "table.txt"),
        ("my_group.table", r"\\server\share\table.txt", "table.txt"),
        ("scores.facts.note", "of '/home/ann/a b', (/x/y)", "of 'a b', (y)"),
        ("run.name", "mine", "mine"),
    ],
)
def test_a_path_becomes_its_last_name(place: str, text: str, short: str) -> None:
    made = PublicCopy()
    assert made.without_folders(text, place) == short
    assert made.shortened == ([] if text == short else [place])


def test_names_of_test_sets_and_lists() -> None:
    made = PublicCopy()
    scores = {"test": {"/home/a/test": {"sentences": 1}, "/home/b/test": {"sentences": 2}}}
    assert made.without_folders(scores, "scores") == {
        "test": {"test (1)": {"sentences": 1}, "test (2)": {"sentences": 2}}
    }
    config = {"corpus": {"train": ["/home/a/train", "news"], "weights": [1, 2.5]}}
    assert made.without_folders(config, "") == {"corpus": {"train": ["train", "news"], "weights": [1, 2.5]}}
    assert "corpus.train" in made.shortened
