"""Models of many languages without the subwords of most of them, which translate as the whole ones do."""

from pathlib import Path

import pytest
import torch
from m2m_folder import write_m2m_folder
from marian_folder import mixed_lines

import tolka
from conftest import Command, sentences
from tolka.errors import CheckpointError, ConfigError
from tolka.formats.huggingface.family import read_foreign
from tolka.interchange.huggingface import export_huggingface, import_huggingface
from tolka.interchange.trim import _sample, trim
from tolka.model_directory.read import load_model
from tolka.models.embeddings import with_rows
from tolka.text.direction import Direction
from tolka.text.scripts import script_test
from tolka.tokenizer.merges import merge
from tolka.tokenizer.trimming import trim_tokenizer

GERMAN_KOREAN = Direction("deu_Latn", "kor_Hang")


@pytest.fixture(scope="module")
def nllb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_m2m_folder(tmp_path_factory.mktemp("nllb") / "model", "nllb", init_std=0.2)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A hundred lines of a text that has half of the words."""
    path = tmp_path / "text"
    path.write_text("".join(f"{pair[0]}\n" for pair in sentences(100, 5)), encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ["nllb", "m2m100"])
def test_a_text_has_the_subwords_that_it_had(kind: str, tmp_path: Path, text: Path) -> None:
    """And each subword has the row that it had."""
    saved = read_foreign(write_m2m_folder(tmp_path / kind, kind)).load()
    codes = ["deu_Latn", "kor_Hang"] if kind == "nllb" else ["de", "ko"]
    lines = text.read_text(encoding="utf-8").splitlines()
    tokenizer, ids = trim_tokenizer(saved.tokenizer, codes, lines)
    assert tokenizer.source_size == len(ids) < saved.tokenizer.source_size
    assert tokenizer.languages == codes
    for line in lines:
        (before,), (after,) = saved.tokenizer.encode_source([line]), tokenizer.encode_source([line])
        assert [ids[number] for number in after] == before
        assert tokenizer.decode_target([after]) == saved.tokenizer.decode_target([before])
    state = saved.model.state_dict()
    rows = with_rows(state, ids, ids)
    old, new = (each["target_embedding.weight"] for each in (state, rows))
    assert torch.equal(new, old[ids])
    assert rows["output_embedding.weight"] is new  # one matrix


def test_without_a_text_the_scripts_decide(nllb: Path) -> None:
    whole = read_foreign(nllb).load().tokenizer
    korean, _ = trim_tokenizer(whole, ["kor_Hang"], [])
    names = korean.source_pieces(range(4, korean.source_size))
    assert not any(letter.isascii() and letter.isalpha() for name in names[:-2] for letter in name)
    assert names[-2:] == ["kor_Hang", "<mask>"]
    # Of a language that the model does not know, the tags of all in its script are left, to begin as one of them.
    latin, _ = trim_tokenizer(whole, ["kor_Hang", "tur_Latn"], [])
    assert {*latin.languages} == {"kor_Hang", "deu_Latn", "eng_Latn", "zul_Latn"}


def test_what_belongs_to_a_script() -> None:
    belongs = script_test(["ru", "tyv_Cyrl"])
    assert all(map(belongs, ["привет", "12, 3!", "и\u0301", "Ғө", "", "—"]))
    assert not any(map(belongs, ["hello", "приvет", "한", "א"]))
    assert all(map(script_test(["zho_Hans", "jpn_Jpan"]), ["汉字", "、。", "かな"]))


def test_what_a_subword_is_merged_of() -> None:
    made: list[str] = []
    assert merge("abcab", {"ab": -1.0, "cab": -3.0, "abcab": -4.0, "bc": -2.0}, made.append) == ("abcab",)
    assert made == ["ab", "ab", "cab", "abcab"]


@pytest.mark.slow
def test_the_command_trims_and_the_result_is_a_model(nllb: Path, text: Path, tmp_path: Path, command: Command) -> None:
    settings = ["languages=[deu_Latn,kor_Hang]", f"text=[{text}]"]
    done = command("mt-train", "import", nllb, "-o", tmp_path / "small", *settings)
    assert done.code == 0, done.err
    assert "trimmed to deu_Latn, kor_Hang: " in done.err
    assert "the whole model and the trimmed model translate 64 identically" in done.err
    small, whole = (load_model(tmp_path / "small"), read_foreign(nllb).load())
    assert small.tokenizer.source_size < whole.tokenizer.source_size
    assert "trimmed to" in small.scores["facts"]
    lines = text.read_text(encoding="utf-8").splitlines()[:20]
    request = tolka.Request(direction=GERMAN_KOREAN)
    one, other = (tolka.load(path).translate(lines, request) for path in (tmp_path / "small", nllb))
    assert sum(a.text == b.text for a, b in zip(one, other, strict=True)) >= 19
    refused = command("mt-translate", tmp_path / "small", text, "source=deu_Latn", "target=zul_Latn")
    assert "the model does not know the target language 'zul_Latn'" in refused.err
    # It goes out to transformers, whose gate compares.
    export_huggingface(tmp_path / "small", tmp_path / "back", "float32", lines, lambda line: None)
    assert (tmp_path / "back" / "sentencepiece.bpe.model").exists()
    assert read_foreign(tmp_path / "back").tokenizer.languages == small.tokenizer.languages


def test_a_model_that_would_translate_otherwise_is_refused(tmp_path: Path) -> None:
    """As with too little text: the whole model's translations have other subwords."""
    nllb = write_m2m_folder(tmp_path / "nllb", "nllb", init_std=0.3)
    text = tmp_path / "text"
    text.write_text("ferry\n", encoding="utf-8")
    with pytest.raises(
        CheckpointError,
        match=r"does not translate like the trimmed model.*to do: give more text.*text=\[FILE.*; or leave out lang",
    ):
        import_huggingface(
            nllb, tmp_path / "out", None, mixed_lines(20), lambda line: None, ["deu_Latn", "eng_Latn"], [text]
        )
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["languages=[de]"], "the model has no tag for the language 'de'. Did you mean 'deu_Latn'?"),
        (["languages=[tur_Latn]"], "must name one that the model knows: ace_Arab"),
        (["text=[a]"], "name these, 'languages=[en,de]'"),
        (["languages=[deu_Latn]", "text=[missing]"], "missing"),
        (["batch=3"], "batch=3: mt-train import takes corpus.source, corpus.target, languages, text"),
    ],
)
def test_what_is_typed_wrong(nllb: Path, tmp_path: Path, command: Command, settings: list[str], said: str) -> None:
    done = command("mt-train", "import", nllb, "-o", tmp_path / "out", *settings)
    assert done.code != 0
    assert said in done.err
    assert "Traceback" not in done.err


def test_a_model_of_one_direction_has_nothing_to_leave_out(trained: Path) -> None:
    with pytest.raises(ConfigError, match="is for models of several"):
        trim(load_model(trained), ["xa"], [], [], lambda line: None)


def test_the_sample_is_in_the_language_that_is_translated(tmp_path: Path) -> None:
    for name, lines in (("mine.deu_Latn", "eins\n\nzwei\n"), ("mine.tur_Latn", "bir\n")):
        (tmp_path / name).write_text(lines, encoding="utf-8")
    texts = [tmp_path / "mine.tur_Latn", tmp_path / "mine.deu_Latn"]
    assert _sample(texts, "deu_Latn") == ["eins", "zwei"]
    assert _sample(texts, "eng_Latn") == ["bir", "eins", "zwei"]
    assert _sample([], "eng_Latn") == []
