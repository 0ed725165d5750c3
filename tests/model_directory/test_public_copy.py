"""What of a text is a path of this machine, and what only has a slash in it."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from rows import each_row
from sentencepiece import SentencePieceProcessor

from tolka.errors import CheckpointError
from tolka.model_directory.combine import quantise_model
from tolka.model_directory.public_copy import PublicCopy, write_public_copy
from tolka.model_directory.verify import TrainingSources, checked_manifest, write_manifest
from tolka.tokenizer.sentencepiece_model import model_proto


@each_row(
    ("place", "text", "short"),
    [
        ("run.dir", "/home/ann/runs/mine", "mine"),
        ("run.dir", "runs/mine/", "mine"),
        ("run.init_from", r"C:\Users\ann\mine", "mine"),
        ("corpus.train", "customers/acme/train", "train"),
        ("corpus.root", "~ann/texts", "texts"),
        ("tokenizer.model", "../other/tokenizer.model", "tokenizer.model"),
        ("corpus.path", "bentrevett/multi30k", "bentrevett/multi30k"),
        ("corpus.path", "clients/acme", "acme"),
        ("run.init_from", "hub:Helsinki-NLP/opus-mt-en-de", "hub:Helsinki-NLP/opus-mt-en-de"),
        ("run.init_from", "hub:../acme/models/one", "one"),
        ("metrics.command", "/home/ann/bin/comet-score -t {hypothesis}", "comet-score -t {hypothesis}"),
        ("scores.search.glossary", "clients/acme-secret/g.tsv", "g.tsv"),
        ("corpus.path", "/data/multi30k", "multi30k"),
        ("my_group.table", "/home/ann/table.txt", "table.txt"),
        ("my_group.table", "~/table.txt", "table.txt"),
        ("my_group.table", r"\\server\share\table.txt", "table.txt"),
        ("my_group.speed", "30 km/h on 1/2/2020 and/or slower", "30 km/h on 1/2/2020 and/or slower"),
        ("my_group.page", "https://example.org/page", "https://example.org/page"),
        ("run.name", "mine", "mine"),
    ],
)
def test_a_path_becomes_its_last_name(place: str, text: str, short: str) -> None:
    made = PublicCopy(data_set="bentrevett/multi30k")
    assert made.without_folders(text, place) == short
    assert made.shortened == ([] if text == short else [place])


def test_lists_and_what_is_no_text() -> None:
    made = PublicCopy()
    config = {"corpus": {"train": ["/home/a/train", ["b/c", "news"]], "weights": [1, 2.5]}}
    assert made.without_folders(config, "") == {"corpus": {"train": ["train", ["c", "news"]], "weights": [1, 2.5]}}
    assert made.shortened == ["corpus.train"]


def test_a_verdict_has_no_commands_and_no_folders(trained: Path, tmp_path: Path) -> None:
    verdict = json.loads((trained / "best" / "scores.json").read_text("utf-8"))["verdict"]
    verdict["figures"]["began_as"] = "clients/acme/m"
    verdict["next"].append({"words": "More:", "command": "mt-train corpus.train=clients/acme/t"})
    verdict["sentences"].append("It began as clients/acme/m, which has BLEU 1.2 there.")
    published(changed(trained, tmp_path / "model", verdict=verdict), tmp_path / "out")
    texts = [(tmp_path / "out" / name).read_text() for name in ("scores.json", "README.md")]
    assert not any("acme" in text or "mt-train --rerun" in text for text in texts)
    assert all("It began as m, which has BLEU 1.2 there." in text for text in texts)


@pytest.mark.parametrize(
    ("names", "public"),
    [
        (["acme-secret-data-test", "beta-data-test"], ["test 1", "test 2"]),
        (["acme-newstest-14", "beta-newstest-14"], ["test 1", "test 2"]),
        (["a-test", "b-test", "b-dev"], ["test 1", "test 2", "test 3"]),
        (["newstest-14", "newstest-15"], ["newstest-14", "newstest-15"]),
        (["test_fresh", "test_unseen"], ["test_fresh", "test_unseen"]),
    ],
)
def test_names_of_test_sets_have_no_folders(names: list[str], public: list[str]) -> None:
    made = PublicCopy()
    scores = {"update": 1, "test": {name: {"sentences": number} for number, name in enumerate(names)}}
    found = made.with_numbered_tests(scores)
    assert found == {"update": 1, "test": {name: {"sentences": number} for number, name in enumerate(public)}}
    assert made.shortened == ([] if names == public else ["scores.test"])


def changed(trained: Path, folder: Path, config: dict[str, Any] | None = None, **scores: Any) -> Path:
    """Write a copy of a model with other values, ... for none, in config.yaml ("run.name") and scores.json."""
    shutil.copytree(trained / "best", folder)
    settings = yaml.safe_load((folder / "config.yaml").read_text())
    for place, value in (config or {}).items():
        *groups, key = place.split(".")
        group = settings[groups[0]] if groups else settings
        group[key] = value
        if value is ...:
            del group[key]
    (folder / "config.yaml").write_text(yaml.safe_dump(settings))
    found = {**json.loads((folder / "scores.json").read_text()), **scores}
    (folder / "scores.json").write_text(json.dumps({key: each for key, each in found.items() if each is not ...}))
    write_manifest(folder, TrainingSources(7))
    return folder


def published(folder: Path, out: Path) -> PublicCopy:
    out.mkdir()
    return write_public_copy(folder, out, "ann/captions")


def test_a_sentencepiece_model_names_no_files(trained: Path, tmp_path: Path) -> None:
    folder = changed(trained, tmp_path / "model")
    model = model_proto((folder / "tokenizer.model").read_bytes())
    model.trainer_spec.input.extend(["/home/ann/acme/train.xa", "/home/ann/acme/train.xb"])
    model.trainer_spec.model_prefix = "clients/acme/spm"
    model.normalizer_spec.normalization_rule_tsv = "clients/acme/rules.tsv"
    sample = b"\x0a\x04acme"  # the field `input` of the field `samples` of the field `self_test_data`
    content = model.SerializeToString() + b"\x22\x08\x0a\x06" + sample
    (folder / "tokenizer.model").write_bytes(content)
    write_manifest(folder, TrainingSources(7))
    made = published(folder, tmp_path / "out")
    public = (tmp_path / "out" / "tokenizer.model").read_bytes()
    assert b"acme" in content
    assert b"acme" not in public
    assert "tokenizer.model (files and lines of its training text)" in made.shortened
    one, other = (SentencePieceProcessor(model_proto=each) for each in (content, public))
    lines = (trained.parent / "corpus" / "test.xa").read_text().splitlines()
    assert [one.encode(line) for line in lines] == [other.encode(line) for line in lines]
    assert "tokenizer.model" in checked_manifest(tmp_path / "out").files


def test_a_local_folder_is_not_taken_for_a_data_set_of_the_hub(trained: Path, tmp_path: Path) -> None:
    """Whatever is in the current folder: training knew, and wrote it into the facts."""
    config, facts = {"corpus.path": "clients/acme"}, {"training text": "9 pairs", "data set": "clients/acme"}
    local, hub = (changed(trained, tmp_path / name, config) for name in ("local", "hub"))
    scores = json.loads((hub / "scores.json").read_text())
    (hub / "scores.json").write_text(json.dumps({**scores, "facts": facts}))
    for folder, is_known in ((local, False), (hub, True)):
        write_manifest(folder, TrainingSources(7))
        out = tmp_path / f"{folder.name}-out"
        published(folder, out)
        texts = [(out / name).read_text() for name in ("config.yaml", "README.md")]
        assert ["clients/acme" in text for text in texts] == [is_known] * 2
        assert ("datasets:\n- clients/acme\n" in texts[1]) == is_known


METRIC = {"name": "BLEU", "score": 30.0, "signature": "nrefs:1", "interval": None}
PPL = {"perplexity": {"ppl": 2.0}}


@pytest.mark.parametrize(
    ("config", "scores", "complaint"),
    [
        ({"run.name": ...}, {}, r"'name' is missing"),
        ({}, {"facts": [1]}, r"scores\.json: facts is damaged \(a value is of another kind"),
        ({}, {"test": [1]}, r"a value is of another kind"),
        ({}, {"test": {"a": {}}}, r"'metrics' is missing"),
        ({}, {"test": {"a": {"metrics": []}}}, r"'perplexity'"),
        ({}, {"update": ...}, r"'update' is missing"),
        ({}, {"validation": {"bleu": "x"}}, r"is damaged \("),
        (
            {},
            {"test": {"a": {"metrics": [METRIC, {**METRIC, "score": "x"}], **PPL}}},
            r"a value is of another kind than expected",
        ),
        (
            {},
            {"test": {"a": {"metrics": [{**METRIC, "interval": [1.0]}], **PPL}}},
            r"a value is of another kind than expected",
        ),
    ],
)
def test_values_of_a_wrong_kind_are_one_line(
    trained: Path, tmp_path: Path, config: dict[str, Any], scores: dict[str, Any], complaint: str
) -> None:
    folder = changed(trained, tmp_path / "model", config, **scores)
    with pytest.raises(CheckpointError, match=complaint):
        quantise_model(folder, tmp_path / "int8")
    with pytest.raises(CheckpointError, match=complaint):
        published(folder, tmp_path / "out")


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ({"run": ...}, r"config\.yaml does not describe a training \(run, corpus\)"),
        ({"corpus.source": ...}, r"config\.yaml or scores\.json is damaged \('source' is missing\)"),
    ],
)
def test_settings_without_languages_or_run_are_not_published(
    trained: Path, tmp_path: Path, config: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(CheckpointError, match=complaint):
        published(changed(trained, tmp_path / "model", config), tmp_path / "out")


def test_scores_that_are_nan_or_inf_are_null_and_published(trained: Path, tmp_path: Path) -> None:
    test = {"a": {"metrics": [{**METRIC, "score": None, "interval": [None, None]}], "perplexity": {"ppl": None}}}
    published(changed(trained, tmp_path / "model", test=test), tmp_path / "out")
    assert "| BLEU | nan |  |" in (tmp_path / "out" / "README.md").read_text()


def test_the_comparison_of_an_imported_model_stays_in_its_card(trained: Path, tmp_path: Path) -> None:
    folder = changed(trained, tmp_path / "model")
    card = (folder / "README.md").read_text()
    (folder / "README.md").write_text(f"{card}\n## Parity\n\nOf 64 lines, 64 are identical.\n")
    write_manifest(folder, TrainingSources(7))
    published(folder, tmp_path / "out")
    quantise_model(folder, tmp_path / "int8")
    published(tmp_path / "int8", tmp_path / "int8-out")
    for name, words in (("out", ""), ("int8", "Compared in fp32, before"), ("int8-out", "Compared in fp32, before")):
        section = (tmp_path / name / "README.md").read_text().partition("\n## Parity\n\n")[2]
        assert section.startswith(words)
        assert section.endswith("Of 64 lines, 64 are identical.\n")
        assert section.count("Compared") == (1 if words else 0)
