"""Texts between the trainings: counted by hand."""

from pathlib import Path

import pytest

from conftest import XA, XB, write_split
from tolka.config.command_line import train_config
from tolka.errors import DataError
from tolka.recipes.texts import TAG, SharedTexts


def shared(corpus: Path, folder: Path, *settings: str) -> SharedTexts:
    names = [f"corpus.{split}={corpus / split}" for split in ("train", "valid", "test")]
    codes = ["corpus.source=xa", "corpus.target=xb", f"run.prepared={folder / 'prepared'}"]
    return SharedTexts(train_config(["corpus=files", *codes, *names, *settings]), folder / "texts", print)


def test_held_out_pairs_stay_held_out(corpus: Path, tmp_path: Path) -> None:
    """60 pairs, of which 5 and 7 are set aside: no training text has a source or target of theirs."""
    texts = shared(corpus, tmp_path, "corpus.valid=5", "corpus.test=7")
    left = texts.write()["pairs"]
    lines = {path.name: path.read_text(encoding="utf-8").splitlines() for path in texts.files}
    assert (len(lines["valid.xa"]), len(lines["test.xa"])) == (5, 7)
    assert len(lines["train.xa"]) == len(lines["train.xb"]) == left <= 60 - 12
    for side in ("xa", "xb"):
        assert not {*lines[f"train.{side}"]} & {*lines[f"valid.{side}"], *lines[f"test.{side}"]}
    assert texts.sets["test"] == texts.tests


def test_lines_of_one_language_are_kept_once_and_counted(corpus: Path, tmp_path: Path) -> None:
    texts = shared(corpus, tmp_path)
    texts.write()
    trained, held = ((corpus / f"{name}.xb").read_text(encoding="utf-8").splitlines()[0] for name in ("train", "test"))
    new = [" ".join(reversed(XB[n : n + 6])) for n in range(4)]
    lines = [*new, new[0], new[1].upper(), trained, held, "", "   ", " ".join(XA[:5]), "a" * 5000]
    (tmp_path / "more").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    out = tmp_path / "lines"
    found = texts.clean_lines([tmp_path / "more"], out)
    assert out.read_text(encoding="utf-8").splitlines() == new
    assert (found["lines"], found["kept"]) == (12, 4)
    left_out = dict(found["left out"])
    assert left_out.pop("twice") == 2
    assert left_out.pop("in the training text") == left_out.pop("in a held-out set") == 1
    assert left_out.pop("in xa, by its words") == 1
    assert left_out.pop("blank") == 2
    assert sum(left_out.values()) == 1  # of 5000 characters


def test_text_in_the_other_language_is_refused(corpus: Path, tmp_path: Path) -> None:
    texts = shared(corpus, tmp_path)
    texts.write()
    with pytest.raises(DataError, match=r"8 of 8 lines look like xa by their words, and text in xb is wanted"):
        texts.clean_lines([corpus / "test.xb", corpus / "test.xa"], tmp_path / "lines")
    assert not (tmp_path / "lines").exists()


def test_text_without_references_is_in_the_source_language_and_recombined(corpus: Path, tmp_path: Path) -> None:
    """Neither has what training or held-out text has; each recombined sentence has the words of two sources."""
    texts = shared(corpus, tmp_path)
    texts.write()
    known = {*(corpus / "train.xa").read_text(encoding="utf-8").splitlines()}
    held_out = {*(corpus / "test.xa").read_text(encoding="utf-8").splitlines()}
    new = " ".join(reversed(XA[:5]))
    (tmp_path / "more").write_text(f"{new}\n{min(known)}\n{min(held_out)}\n{' '.join(XB[:5])}\n", encoding="utf-8")
    found = texts.clean_lines([tmp_path / "more"], tmp_path / "lines", is_source=True, recombined=1)
    assert found["left out"] == {"in the training text": 1, "in a held-out set": 1, "in xb, by its words": 1}
    first, *made = (tmp_path / "lines").read_text(encoding="utf-8").splitlines()
    assert first == new
    assert 0 < len(made) <= 60
    assert f"{len(made)} recombined" in found["words"]
    assert not {*made} & (known | held_out)
    assert {word for line in made for word in line.split()} <= {word for line in known for word in line.split()}


def test_translations_that_cannot_be_right_are_not_taught(corpus: Path, tmp_path: Path) -> None:
    texts = shared(corpus, tmp_path)
    texts.write()
    pairs = [("lantern kettle harbour 12", "tolo mirka pell 12"), ("lantern 13", "tolo 12"), ("lantern kettle", "")]
    for name, lines in zip(("sources", "translations"), zip(*pairs, strict=True), strict=True):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    found = texts.taught(tmp_path / "sources", tmp_path / "translations", tmp_path / "pairs")
    assert (tmp_path / "pairs.xa").read_text(encoding="utf-8") == "lantern kettle harbour 12\n"
    assert (tmp_path / "pairs.xb").read_text(encoding="utf-8") == "tolo mirka pell 12\n"
    assert found["left out"] == {"with other numbers": 1, "untranslated": 1}


def test_synthetic_pairs_that_cannot_be_right_are_left_out(corpus: Path, tmp_path: Path) -> None:
    texts = shared(corpus, tmp_path)
    texts.write()
    pairs = [
        ("lantern kettle harbour 12", "tolo mirka pell 12"),
        ("", "tolo mirka pell"),
        ("tolo mirka pell dasun", "tolo mirka pell dasun"),
        ("lantern lantern lantern lantern lantern lantern", "tolo mirka"),
        ("lantern kettle harbour 13", "tolo mirka pell 12"),
        ("lantern kettle harbour pebble saddle orchid copper velvet walnut ferry", "tolo"),
    ]
    write_split(tmp_path / "made", pairs)
    made = (tmp_path / "made.xa", tmp_path / "made.xb")
    found = texts.synthetic(made, tmp_path / "pairs")
    assert (tmp_path / "pairs.xa").read_text(encoding="utf-8") == "lantern kettle harbour 12\n"
    assert (tmp_path / "pairs-to-train.xa").read_text(encoding="utf-8") == f"{TAG} lantern kettle harbour 12\n"
    assert (tmp_path / "pairs-to-train.xb").read_text(encoding="utf-8") == "tolo mirka pell 12\n"
    assert (found["kept"], sum(found["left out"].values())) == (1, 5)
    assert found["left out"]["untranslated"] == found["left out"]["copied"] == 1
    assert found["left out"]["with other numbers"] == 1
    # Not checked, only what is blank is left out.
    assert texts.synthetic(made, tmp_path / "raw", filter=False, tag=False)["kept"] == 5
    raw = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("raw*.x?")}
    assert raw["raw.xa"] == raw["raw-to-train.xa"]
    assert raw["raw.xb"] == raw["raw-to-train.xb"]


def test_a_held_out_line_is_one_however_it_is_cleaned(corpus: Path, tmp_path: Path) -> None:
    """In monolingual text with markup, and as the source of a synthetic pair, where cleaning.leaks asks for that."""
    texts = shared(corpus, tmp_path, "cleaning.markup=strip", "cleaning.leaks=source")
    texts.write()
    source, target = ((corpus / f"test.{code}").read_text(encoding="utf-8").splitlines()[0] for code in ("xa", "xb"))
    new = " ".join(reversed(XB[:5]))
    (tmp_path / "more").write_text(f"<b>{target}</b>\n<i>{new}</i>\n", encoding="utf-8")
    found = texts.clean_lines([tmp_path / "more"], tmp_path / "lines")
    assert (tmp_path / "lines").read_text(encoding="utf-8") == f"{new}\n"
    assert found["left out"] == {"in a held-out set": 1}
    write_split(tmp_path / "made", [(source, new), ("lantern", new)])
    made = texts.synthetic((tmp_path / "made.xa", tmp_path / "made.xb"), tmp_path / "pairs", filter=False)
    assert (made["kept"], made["left out"]) == (1, {"with a held-out source": 1})


def test_test_sets_of_similar_names_are_files_of_their_own(corpus: Path, tmp_path: Path) -> None:
    for name in ("news", "test-news"):
        for code in ("xa", "xb"):
            (tmp_path / f"{name}.{code}").write_bytes((corpus / f"test.{code}").read_bytes())
    names = [f"corpus.{split}={corpus / split}" for split in ("train", "valid")]
    tests = f"corpus.test=[{tmp_path / 'news'},{tmp_path / 'test-news'}]"
    codes = ["corpus.source=xa", "corpus.target=xb"]
    texts = SharedTexts(train_config(["corpus=files", *codes, *names, tests]), tmp_path / "texts", print)
    assert [each.name for each in texts.tests] == ["test-news", "test-news-2"]


def test_a_translation_may_have_the_bars_of_an_n_best_list(corpus: Path, tmp_path: Path) -> None:
    texts = shared(corpus, tmp_path)
    texts.write()
    count = len((tmp_path / "texts" / "train.xa").read_text(encoding="utf-8").splitlines())
    lines = [f"{number} ||| tolo ||| mirka ||| a= -1.0 ||| -1.0\n" for number in range(count)]
    (tmp_path / "lists").write_text("".join(lines), encoding="utf-8")
    texts.nearest(tmp_path / "lists", tmp_path / "lessons")
    assert {*(tmp_path / "lessons.xb").read_text(encoding="utf-8").splitlines()} == {"tolo ||| mirka"}
