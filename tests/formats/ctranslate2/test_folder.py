"""CTranslate2 computes the same function as tolka, of all models that it can express, and refuses the others."""

import errno
import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rows import each_row

pytest.importorskip("ctranslate2")

import ctranslate2
from marian_folder import write_by_hand
from random_model import TEXTS, write_model
from safetensors.torch import load_file, save_file
from small_models import TRANSFORMERS

from conftest import Command
from tolka.engines.options import DecodingConfig
from tolka.errors import CheckpointError, ConfigError, DataError
from tolka.formats.ctranslate2.exported import DTYPES, Exported, read_exported
from tolka.formats.ctranslate2.folder import _Specification
from tolka.formats.ctranslate2.plain_model import inexpressible_reason, read_plain_model, sinusoids
from tolka.interchange.export_ctranslate2 import THRESHOLDS, CTranslate2Side, export_checked
from tolka.interchange.parity import Threshold, TolkaSide, compare
from tolka.model_directory.file_names import EXPORTED, WEIGHTS
from tolka.model_directory.read import load_model
from tolka.model_directory.verify import MANIFEST, TrainingSources, write_manifest
from tolka.models.rnn.config import RnnConfig
from tolka.models.transformer.config import TransformerConfig
from tolka.nn.positions import sinusoids as torch_sinusoids
from tolka.search.options import BeamConfig, DiverseConfig, GreedyConfig, MbrConfig, SamplingConfig, SearchConfig
from tolka.system.progress import say
from tolka.text.characters import CharacterForm
from tolka.text.direction import Direction
from tolka.tokenizer.special_tokens import EOS, PAD
from tolka.translation.opening import open_model, translator_of
from tolka.translation.request import Request
from tolka.translation.segments import TextError
from tolka.translation.translator import Translator

EXPRESSIBLE = {name: config for name, config in TRANSFORMERS.items() if not inexpressible_reason(config)}
ON_CPU = DecodingConfig(device="cpu", threads=1, backend="torch")
ANYTHING = Threshold(identical=0.0, bleu=0.0, logits=float("inf"))
CTRANSLATE2, AUTO = (replace(ON_CPU, backend=backend) for backend in ("ctranslate2", "auto"))


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pre-norm model with one vocabulary."""
    config = TransformerConfig(d_model=32, heads=4, layers=2, share_embeddings="none")
    return write_model(tmp_path_factory.mktemp("made") / "model", config)


@pytest.fixture(scope="session")
def exported(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("exported") / "folder"
    export_checked(made, out)
    return out


def with_tensors(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> Path:
    """Change tensors of a model directory."""
    tensors = load_file(folder / WEIGHTS)
    change(tensors)
    save_file(tensors, folder / WEIGHTS)
    (folder / MANIFEST).unlink()
    write_manifest(folder, TrainingSources(40, 0.0))
    return folder


@pytest.fixture(scope="session")
def ending(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose translations end early, and whose `<pad>` has some probability, but is in no result."""

    def change(tensors: dict[str, torch.Tensor]) -> None:
        tensors["output_bias"][EOS] += 8.0
        tensors["output_bias"][PAD] += 15.0

    config = TransformerConfig(d_model=32, heads=4, layers=2, share_embeddings="none", output_bias=True)
    return with_tensors(write_model(tmp_path_factory.mktemp("ending") / "model", config), change)


def both(folder: Path, search: SearchConfig, **options: Any) -> tuple[Translator[Any], Translator[Any]]:
    """The model with torch, and with CTranslate2."""
    return (
        open_model(folder, search, replace(ON_CPU, **options)),
        open_model(folder, search, replace(CTRANSLATE2, **options)),
    )


@pytest.mark.parametrize("name", sorted(EXPRESSIBLE))
def test_every_model_that_can_be_expressed_computes_the_same(name: str, tmp_path: Path) -> None:
    """To the rounding of logits of about 10."""
    folder = write_model(tmp_path / "model", EXPRESSIBLE[name])
    parity = export_checked(folder, tmp_path / "out", lines=TEXTS)
    assert parity.logits is not None
    assert parity.logits < 5e-5
    assert parity.identical == parity.lines


@pytest.mark.parametrize("sharing", ["none", "target_output"])
def test_two_vocabularies(sharing: str, tmp_path: Path) -> None:
    config = TransformerConfig(d_model=32, heads=4, layers=1, share_embeddings=sharing)
    parity = export_checked(write_model(tmp_path / "model", config, shared=False), tmp_path / "out", lines=TEXTS)
    assert parity.logits is not None
    assert parity.logits < 5e-5
    assert (tmp_path / "out" / "source.model").is_file()


@pytest.mark.parametrize("sharing", ["all", "source_target", "target_output", "source_output", "none"])
def test_embeddings_shared_in_every_way(sharing: str, tmp_path: Path) -> None:
    config = TransformerConfig(d_model=32, heads=4, layers=1, share_embeddings=sharing)
    parity = export_checked(write_model(tmp_path / "model", config), tmp_path / "out", lines=TEXTS)
    assert parity.logits is not None
    assert parity.logits < 5e-5


def test_what_cannot_be_expressed_is_named(tmp_path: Path) -> None:
    ssru = {"transformer ssru", "transformer ssru post-norm"}
    assert set(TRANSFORMERS) - set(EXPRESSIBLE) == {"transformer free d_v", "transformer rotary, odd d_v"} | ssru
    folder = write_model(tmp_path / "model", TRANSFORMERS["transformer free d_v"])
    with pytest.raises(ConfigError, match=r"CTranslate2 cannot express model.d_v=5"):
        export_checked(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert "model=rnn is not a Transformer" in inexpressible_reason(RnnConfig())
    assert "--to marian" in inexpressible_reason(TRANSFORMERS["transformer ssru"])


@pytest.mark.parametrize("kind", ["sinusoidal", "sinusoidal_halves", "sinusoidal_marian", "sinusoidal_fairseq"])
@pytest.mark.parametrize("width", [34, 35])
def test_sinusoids_are_those_of_the_model(kind: str, width: int) -> None:
    expected = torch_sinusoids(torch.arange(600), width, kind).numpy()
    np.testing.assert_allclose(sinusoids(600, width, kind), expected, atol=1e-4)  # float32 at 600 radians


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_written(made: Path, dtype: str, tmp_path: Path) -> None:
    parity = export_checked(made, tmp_path / "out", dtype, TEXTS)
    sizes = {"float32": 1.0, "bfloat16": 0.55, "float16": 0.55, "int8": 0.35}
    plain = tmp_path / "plain"
    export_checked(made, plain, lines=TEXTS)
    size, whole = ((folder / "model.bin").stat().st_size for folder in (tmp_path / "out", plain))
    positions = 4096 * 32 * 4 * (1.0 if dtype in ("float32", "int8") else 0.5)  # a table that int8 leaves in float32
    assert size - positions <= sizes[dtype] * (whole - 4096 * 32 * 4)
    assert f"CTranslate2, in {dtype}" in (tmp_path / "out" / "README.md").read_text()
    assert parity.as_markdown() in (tmp_path / "out" / "README.md").read_text()


def test_an_unknown_dtype_is_refused(made: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--dtype \(int4\) is unknown .* Known: float32, bfloat16, float16, int8"):
        export_checked(made, tmp_path / "out", "int4")


def test_a_folder_that_translates_otherwise_does_not_appear(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(THRESHOLDS, "float32", Threshold(1.0, 100.0, 0.0))
    with pytest.raises(CheckpointError, match="does not translate like tolka"):
        export_checked(made, tmp_path / "out", lines=TEXTS)
    assert not (tmp_path / "out").exists()


SEARCHES = {
    "greedy": GreedyConfig(),
    "beam": BeamConfig(beam_size=4, n_best=4),
    "beam, plain": BeamConfig(beam_size=3, n_best=2, length_normalization="plain", length_penalty=0.5),
    "beam, none": BeamConfig(beam_size=3, length_normalization="none"),
    "beam, long": BeamConfig(beam_size=5, n_best=5, length_penalty=3.0),
    "beam of 1": BeamConfig(beam_size=1),
    "greedy, short": GreedyConfig(max_length_factor=0.5, max_length_extra=1),
    "beam, short": BeamConfig(beam_size=4, n_best=3, max_length_factor=0.5, max_length_extra=1),
}


@pytest.mark.parametrize(
    ("name", "prefix"),
    [(name, prefix) for name in sorted(SEARCHES) for prefix in ("", *([] if "short" in name else ["KETTLE"]))],
)
def test_searches_find_the_same(made: Path, name: str, prefix: str) -> None:
    """Texts, scores, log-probabilities, and whether they are complete; with lines of several limits in a batch."""
    prefixes = [prefix, "", prefix, ""] if prefix else []
    found = [translator.translate(TEXTS, Request(prefixes=prefixes)) for translator in both(made, SEARCHES[name])]
    for ours, theirs in zip(*found, strict=True):
        assert [each.text for each in theirs.candidates] == [each.text for each in ours.candidates]
        assert "\ufffd" not in "".join(each.text for each in theirs.candidates)
        for key in ("score", "log_probability"):
            expected = [getattr(each, key) for each in ours.candidates]
            assert [getattr(each, key) for each in theirs.candidates] == pytest.approx(expected, abs=2e-4)
        assert [each.complete for each in theirs.candidates] == [each.complete for each in ours.candidates]


@pytest.mark.parametrize(
    "search",
    [
        BeamConfig(beam_size=5, n_best=5, length_normalization="plain"),
        BeamConfig(beam_size=8, n_best=8, length_penalty=3.0),
        BeamConfig(beam_size=5, n_best=5, max_length_factor=0.3, max_length_extra=0),
    ],
)
def test_lists_are_the_same_where_several_hypotheses_finish_last(ending: Path, search: BeamConfig) -> None:
    """CTranslate2 drops the less likely of them, and counts unfinished ones at the limit."""
    words = sorted({word for text in TEXTS for word in text.split()})
    texts = [
        " ".join([first, second, first][: 1 + number % 3]) for number, first in enumerate(words) for second in words
    ]
    ours, theirs = (translator.translate(texts) for translator in both(ending, search))
    for one, other in zip(ours, theirs, strict=True):
        assert [each.segments for each in other.candidates] == [each.segments for each in one.candidates]
        assert [each.score for each in other.candidates] == pytest.approx(
            [each.score for each in one.candidates], abs=2e-5
        )
        assert [each.complete for each in other.candidates] == [each.complete for each in one.candidates]


def test_a_limit_does_not_change_scores(ending: Path) -> None:
    """A sentence with a lower limit than its batch is searched again, with the same probabilities."""
    search = GreedyConfig(max_length_factor=0.1, max_length_extra=0)
    ours, theirs = (translator.translate(TEXTS) for translator in both(ending, search))
    assert not all(each.complete for each in ours)
    assert [each.score for each in theirs] == pytest.approx([each.score for each in ours], abs=2e-5)


@pytest.mark.parametrize("name", ["greedy", "beam"])
def test_scores_that_are_not_finite_are_an_error(tmp_path: Path, name: str) -> None:
    """Greedy search says so when the model is loaded. The logits overflow, of weights that are finite."""
    folder = write_model(tmp_path / "model", TransformerConfig(d_model=32, heads=4, layers=1))
    with_tensors(folder, lambda tensors: tensors["decoder_norm.weight"].mul_(1e38))
    with pytest.raises(CheckpointError, match="the model's scores are not finite"):
        both(folder, SEARCHES[name])[1](TEXTS)


def test_given_translations_have_the_same_scores(made: Path) -> None:
    pairs = [(text, text.upper()) for text in TEXTS] + [("", "KETTLE"), ("kettle", "")]
    ours, theirs = (translator.score(pairs) for translator in both(made, GreedyConfig()))
    for one, other in zip(ours, theirs, strict=True):
        assert other.token_scores == pytest.approx(one.token_scores, abs=1e-4)


def test_samples_have_the_model_s_log_probabilities(made: Path) -> None:
    """Whatever the temperature, which makes them likely or not; the most likely one is first."""
    means = {}
    for temperature in (0.1, 2.0):
        translator = both(made, SamplingConfig(temperature=temperature, top_k=50, n_best=20))[1]
        (ids,) = translator.tokenizer.encode_source([TEXTS[1]])
        (found,) = translator.engine.translate(translator.request.search, [ids], scored=True) or [[]]
        values = [each.log_probability for each in found]
        assert values == sorted(values, reverse=True)
        assert len(values) == 20
        whole = [each for each in found if each.finished]
        expected = [sum(scores) for scores in translator.token_scores([(ids, each.tokens) for each in whole])]
        assert [each.log_probability for each in whole] == pytest.approx(expected, abs=1e-2)
        means[temperature] = sum(values) / sum(len(each.tokens) + 1 for each in found)
    assert means[0.1] > means[2.0] + 0.1
    assert len({tuple(each.tokens) for each in found}) > 10


UNSUPPORTED: list[tuple[SearchConfig, str]] = [
    (DiverseConfig(), "search=diverse"),
    (MbrConfig(), "search=mbr"),
    (GreedyConfig(min_length=3), "search.min_length"),
    (BeamConfig(no_repeat_ngram=2), "search.no_repeat_ngram"),
    (BeamConfig(glossary="terms.tsv"), "search.glossary"),
    (GreedyConfig(banned="words.txt"), "search.banned"),
    (SamplingConfig(epsilon=0.1), "search.epsilon"),
    (SamplingConfig(top_k=1), "search.top_k=1"),
    (SamplingConfig(top_k=5, top_p=0.5), "search.top_p"),
]


@each_row(("search", "named"), UNSUPPORTED)
def test_what_it_cannot_do_is_refused_in_one_line(made: Path, search: SearchConfig, named: str) -> None:
    with pytest.raises(ConfigError, match=rf"decoding.backend=ctranslate2: .*{named}.*backend=auto takes torch then"):
        open_model(made, search, CTRANSLATE2, say=say)


def test_auto_takes_torch_without_a_word_for_what_ctranslate2_cannot_do(made: Path, tmp_path: Path) -> None:
    notes: list[str] = []
    ssru = write_model(tmp_path / "model", TransformerConfig(d_model=32, heads=4, layers=1, decoder="ssru"))
    for folder, search in (
        (made, BeamConfig(no_repeat_ngram=2)),
        (made, SamplingConfig()),
        ([made, made], GreedyConfig()),
        (ssru, GreedyConfig()),
    ):
        assert "CTranslate2" not in repr(open_model(folder, search, AUTO, say=notes.append).engine)
    assert "CTranslate2" in repr(open_model(made, BeamConfig(), AUTO, say=notes.append).engine)
    assert notes == []


def test_auto_takes_torch_for_a_device_or_dtype_that_ctranslate2_does_not_have(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctranslate2.get_supported_compute_types", lambda device, index: {"float32", "int8"})
    translator = open_model(made, GreedyConfig(), replace(AUTO, precision="bf16"))
    assert "Transformer" in repr(translator.engine)
    with pytest.raises(ConfigError, match="bf16 is not available in CTranslate2 on this machine's cpu"):
        open_model(made, GreedyConfig(), replace(CTRANSLATE2, precision="bf16"), say=say)
    monkeypatch.setattr("ctranslate2.get_cuda_device_count", lambda: 0)
    with pytest.raises(ConfigError, match="this machine shows 0 CUDA devices"):  # torch's words
        open_model(made, GreedyConfig(), replace(AUTO, device="cuda"))


def _check_unusable(command: Command, made: Path, exported: Path, tmp_path: Path, complaint: str) -> None:
    """Commands that need CTranslate2 complain in one line, and with decoding.backend=auto torch translates."""
    for arguments in (
        ("mt-train", "export", made, "--to", "ctranslate2", "-o", tmp_path / "out"),
        ("mt-translate", exported),
        ("mt-translate", made, "decoding.backend=ctranslate2"),
    ):
        outcome = command(*arguments, stdin=b"kettle\n")
        assert outcome.code == 2
        assert complaint in outcome.error
    outcome = command("mt-translate", made, "decoding.backend=auto", "search=greedy", stdin=b"kettle\n")
    assert outcome.code == 0
    assert "CTranslate2" not in outcome.err


def test_a_package_that_cannot_be_imported_is_named(
    made: Path, exported: Path, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)  # as an ImportError of its own
    note = "cannot be imported (import of ctranslate2 halted; None in sys.modules): install it (pip install 'tolka["
    _check_unusable(command, made, exported, tmp_path, f"CTranslate2 {note}")


def test_a_dtype_that_the_processor_does_not_have_gets_one_note(
    made: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no warning of CTranslate2's own."""
    if "float16" in ctranslate2.get_supported_compute_types("cpu"):
        pytest.skip("this processor computes in float16")
    monkeypatch.setitem(THRESHOLDS, "float16", ANYTHING)
    export_checked(made, tmp_path / "out", "float16", TEXTS)
    capfd.readouterr()
    open_model(tmp_path / "out", GreedyConfig(), ON_CPU, say=say)("kettle")
    note = "note: the weights are in float16, and CTranslate2 computes in float32 on this cpu\n"
    assert capfd.readouterr().err == note


def test_values_beyond_float16_are_refused(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model", TransformerConfig(d_model=32, heads=4, layers=1))
    with_tensors(folder, lambda tensors: tensors["encoder_norm.weight"].fill_(7e4))
    with pytest.raises(CheckpointError, match="the model's scores are not finite"):
        export_checked(folder, tmp_path / "out", "float16")


def test_errors_of_a_conversion_name_the_model(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the folder that it needs space in, and not the folder in it."""

    def fail(*arguments: object, **options: object) -> None:
        raise RuntimeError("no memory")

    with monkeypatch.context() as patch:
        patch.setattr("ctranslate2.Translator", fail)
        with pytest.raises(CheckpointError, match=re.escape(f"{made}: CTranslate2 cannot load it (no memory)")):
            open_model(made, GreedyConfig(), CTRANSLATE2)

    def fill(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tolka.formats.ctranslate2.folder.write_folder", fill)
    words = f"{made} cannot be converted in {tempfile.gettempdir()} (No space left on device): set TMPDIR"
    with pytest.raises(DataError, match=re.escape(words)):
        open_model(made, GreedyConfig(), CTRANSLATE2)


def test_weights_that_are_stored_in_int8_are_torch_s(made: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(made, tmp_path / "model"))
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**manifest, "weights": "int8"}))
    with pytest.raises(ConfigError, match=r"are stored in int8.*; decoding.backend=auto takes torch then"):
        open_model(folder, GreedyConfig(), CTRANSLATE2)


@pytest.mark.slow
def test_an_exported_folder_translates_like_its_model(made: Path, exported: Path, command: Command) -> None:
    stdin = "".join(f"{text}\n" for text in TEXTS).encode()
    ours = command("mt-translate", made, "decoding.threads=1", "decoding.backend=torch", stdin=stdin)
    theirs = command("mt-translate", exported, "decoding.threads=1", stdin=stdin)
    assert theirs == ours
    assert theirs.code == 0
    scored = [
        command("mt-translate", each, "search.n_best=3", "output.format=nbest", "decoding.backend=torch", stdin=stdin)
        for each in (made, exported)
    ]
    numbers = [[float(line.rpartition(" ||| ")[2]) for line in outcome.out.splitlines()] for outcome in scored]
    assert numbers[1] == pytest.approx(numbers[0], abs=1e-3)


def test_an_exported_folder_says_what_it_cannot_do(exported: Path, command: Command, tmp_path: Path) -> None:
    outcome = command("mt-translate", exported, "search=mbr", stdin=b"kettle\n")
    assert outcome.code == 2
    assert f"{exported} was exported for CTranslate2, and " in outcome.error
    with pytest.raises(ConfigError, match="with no glossary and no banned phrases"):
        open_model(exported)(["kettle"], Request(banned=["ferry"]))
    outcome = command("mt-translate", f"{exported},{exported}", stdin=b"kettle\n")
    assert "one model at a time" in outcome.error
    with pytest.raises(CheckpointError, match="was exported for CTranslate2, which mt-translate reads"):
        load_model(exported)


def test_the_dtype_of_an_exported_folder_is_kept(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export_checked(made, tmp_path / "out", "int8", TEXTS)
    kinds = {
        precision: translator_of(
            read_exported(tmp_path / "out"), GreedyConfig(), replace(ON_CPU, precision=precision)
        ).engine.translator.compute_type
        for precision in ("auto", "int8")
    }
    assert kinds["auto"].startswith("int8")
    assert kinds["int8"].startswith("int8")
    assert "not compared with fp32" not in capsys.readouterr().err  # the export did that
    opened = open_model(made, GreedyConfig(), replace(CTRANSLATE2, precision="int8"), say=say)
    assert opened.engine.translator.compute_type.startswith("int8")
    assert f"not compared with fp32: mt-train export {made} --to" in capsys.readouterr().err


def test_int8_needs_weights_that_were_exported_and_measured_in_it(made: Path, exported: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has its weights in float32; export the model with --dtype int8"):
        open_model(exported, GreedyConfig(), replace(ON_CPU, precision="int8"), say=say)
    parity = export_checked(made, tmp_path / "out", "int8", TEXTS)
    assert parity.nll is not None
    assert 0 < parity.nll < THRESHOLDS["int8"].nll
    assert f"nll grows by {parity.nll:.1e} a token" in (tmp_path / "out" / "README.md").read_text("utf-8")


def test_no_sum_of_two_products_in_int8_is_beyond_16_bits(made: Path, tmp_path: Path) -> None:
    """Inputs are 0 to 255; without VNNI, oneDNN adds the products of two neighbours in 16 bits (its manual)."""
    spec = _Specification(read_plain_model(made), ctranslate2.specs, int8=True).build()
    spec.validate()
    values = [value.numpy() for value in spec.variables().values()]
    matrices = [value for value in values if value.dtype == np.int8 and value.ndim == 2]
    assert len(matrices) == 2 * 4 + 2 * 7 + 3
    for matrix in matrices:
        pairs = np.abs(matrix.astype(int)).reshape(len(matrix), -1, 2).sum(axis=2)
        assert 255 * pairs.max() <= 2**15 - 1
        assert pairs.max() >= 126  # and no bit is given away


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="oneDNN limits instructions of x86")
def test_int8_is_the_same_on_every_processor(made: Path, tmp_path: Path) -> None:
    """On one with VNNI, and limited to AVX2, whose sums of 16 bits cut off what is beyond them."""
    export_checked(made, tmp_path / "out", "int8", TEXTS)
    scores = [
        subprocess.run(
            [sys.executable, "-c", _SCORE, str(tmp_path / "out")],
            env={**os.environ, "ONEDNN_MAX_CPU_ISA": isa, "CT2_USE_MKL": "0"},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for isa in ("AVX2", "ALL")
    ]
    one, two = (json.loads(each) for each in scores)
    assert one[0] == pytest.approx(two[0], abs=1e-4)


_SCORE = """
import json, sys
from pathlib import Path
from tolka.formats.ctranslate2.exported import read_exported
from tolka.translation.opening import translator_of
from tolka.search.options import GreedyConfig
from tolka.engines.options import DecodingConfig
translator = translator_of(read_exported(Path(sys.argv[1])), GreedyConfig(), DecodingConfig(device="cpu"))
ids = translator.tokenizer.encode_source(["lantern kettle pebble walnut ferry ."])
print(json.dumps(translator.engine.score(ids, ids)))
"""


def test_a_device_or_dtype_that_is_not_there(made: Path) -> None:
    for device, precision, words in (
        ("cuda:99", "fp32", "CUDA devices; try auto"),
        ("mps", "fp32", "decoding.device (mps) is not a device"),
        ("cpu", "fp16", "decoding.precision=fp16 is not available in CTranslate2"),
    ):
        with pytest.raises(ConfigError) as caught:
            open_model(made, GreedyConfig(), replace(CTRANSLATE2, device=device, precision=precision))
        assert words in str(caught.value)


def test_sentences_longer_than_the_positions_are_refused(exported: Path) -> None:
    translator = open_model(exported, GreedyConfig(), replace(ON_CPU, split="never"))
    long = "kettle " * 5000
    with pytest.raises(TextError, match=r"is too long for CTranslate2, .* at most 4095 .* leave out decoding.split="):
        translator(["kettle", long])
    for pair in ((long, "kettle"), ("kettle", long)):
        with pytest.raises(TextError, match="too long for CTranslate2") as caught:
            translator.score([("", ""), ("kettle", "kettle"), pair])
        assert caught.value.number == 2


def test_the_line_that_is_too_long_is_named(exported: Path, command: Command, tmp_path: Path) -> None:
    """After the lines before it, in whichever file it is."""
    (tmp_path / "one").write_text("kettle\nferry\n")
    (tmp_path / "two").write_text(f"saddle\n{'kettle ' * 5000}\nlantern\n")
    greedy = ["search=greedy", "decoding.split=never"]
    whole = command("mt-translate", exported, tmp_path / "one", *greedy).out
    outcome = command("mt-translate", exported, tmp_path / "one", tmp_path / "two", *greedy)
    assert outcome.code == 1
    assert f"{tmp_path / 'two'}:2: a sentence of " in outcome.error
    assert outcome.out.startswith(whole)
    assert len(outcome.out.splitlines()) == 3
    outcome = command("mt-translate", exported, *greedy, stdin=(tmp_path / "two").read_bytes())
    assert "stdin:2: a sentence of " in outcome.error
    (tmp_path / "given").write_text("kettle\n" * 3)
    outcome = command("mt-translate", exported, "--score", tmp_path / "two", tmp_path / "given", "search=greedy")
    assert f"{tmp_path / 'two'}:2: a sentence of " in outcome.error
    assert len(outcome.out.splitlines()) == 1


def test_a_length_above_the_positions_is_noted(exported: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert open_model(exported, GreedyConfig(), replace(ON_CPU, max_length=4096), say=say).max_length == 4095
    assert "note: decoding.max_length=4096 is 4095, as CTranslate2 has no more positions" in capsys.readouterr().err
    open_model(exported, GreedyConfig(), replace(ON_CPU, max_length=4095), say=say)
    assert capsys.readouterr().err == ""


def test_prefixes_that_do_not_fit_are_refused(exported: Path) -> None:
    search = GreedyConfig(max_length_factor=0.0, max_length_extra=2)
    with pytest.raises(DataError, match=r"a prefix of .* does not fit into a translation of at most 2"):
        open_model(exported, search, ON_CPU).translate(["kettle"], Request(prefixes=["KETTLE PEBBLE SADDLE WALNUT"]))


Damage = Callable[[Path], object]
DAMAGES: dict[str, tuple[Damage, str]] = {
    "no weights": (lambda folder: (folder / "model.bin").unlink(), "lacks its file model.bin"),
    "other weights": (
        lambda folder: (folder / "model.bin").write_bytes(b"x" * 99),
        "its checksum is not the manifest's",
    ),
    "no manifest": (lambda folder: (folder / MANIFEST).unlink(), "it has no manifest.json"),
    "facts": (lambda folder: (folder / EXPORTED).write_text("{"), "is damaged: its checksum"),
}


def _changed(exported: Path, folder: Path, change: Damage) -> Path:
    """A copy of an exported folder, changed."""
    shutil.copytree(exported, folder)
    change(folder)
    return folder


@pytest.mark.parametrize("name", sorted(DAMAGES))
def test_a_damaged_folder_is_refused_in_one_line(exported: Path, name: str, tmp_path: Path, command: Command) -> None:
    damage, words = DAMAGES[name]
    folder = _changed(exported, tmp_path / "folder", damage)
    outcome = command("mt-translate", folder, stdin=b"kettle\n")
    assert outcome.code == 1
    assert words in outcome.error


def _facts(name: str = EXPORTED, **changed: object) -> Damage:
    def change(folder: Path) -> None:
        facts = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps({**facts, **changed}))

    return change


def _bin(content: Callable[[bytes], bytes]) -> Damage:
    return lambda folder: (folder / "model.bin").write_bytes(content((folder / "model.bin").read_bytes()))


HOSTILE: dict[str, tuple[Damage, str]] = {
    "cut weights": (_bin(lambda content: content[:5000]), "CTranslate2 cannot load it"),
    "empty weights": (_bin(lambda content: b""), "CTranslate2 cannot load it"),
    "another version": (_bin(lambda content: struct.pack("I", 99) + content[4:]), "CTranslate2 cannot load it"),
    "no vocabulary": (lambda folder: (folder / "shared_vocabulary.json").unlink(), "does not list source_vocabulary"),
    "short vocabulary": (lambda folder: (folder / "shared_vocabulary.json").write_text('["a"]'), "other subwords than"),
    "broken vocabulary": (
        lambda folder: (folder / "shared_vocabulary.json").write_text("["),
        "shared_vocabulary.json is damaged",
    ),
    "another start": (_facts("config.json", decoder_start_token="</s>"), "has other settings than tolka exports"),
    "a start of its own": (_facts(decoder_start="x"), "has other settings than tolka exports"),
    "no start": (_facts(decoder_start=[]), "tolka.json is damaged"),
    "languages": (_facts(languages=["xa"]), "tolka.json is damaged"),
    "dtype": (_facts(dtype="int4"), "tolka.json is damaged (dtype is 'int4')"),
    "quality": (_facts(quality=[1]), "tolka.json is damaged"),
    "another sample": (_facts(sample={"where": "elsewhere", "sources": [7]}), "tolka.json is damaged"),
    "no object": (lambda folder: (folder / EXPORTED).write_text("[1]"), "tolka.json cannot be read"),
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_a_hostile_folder_is_refused_in_one_line(exported: Path, name: str, tmp_path: Path, command: Command) -> None:
    """One whose manifest agrees with what is in it."""
    damage, words = HOSTILE[name]
    folder = _changed(exported, tmp_path / "folder", damage)
    (folder / MANIFEST).unlink()
    write_manifest(folder, TrainingSources(40, 0.0))
    outcome = command("mt-translate", folder, stdin=b"kettle\n")
    assert outcome.code == 1
    assert words in outcome.error


def test_facts_are_read_as_they_are_written(exported: Path, tmp_path: Path) -> None:
    facts = Exported.read(exported)
    form = CharacterForm("nfc", direction=facts.direction)
    assert (facts.direction, facts.characters, facts.dtype) == (("xa", "xb"), form, "float32")
    assert facts.attention == "decoder.1.cross"
    facts.write(tmp_path)
    assert json.loads((tmp_path / EXPORTED).read_text()) == json.loads((exported / EXPORTED).read_text())


def run_apart(arguments: Sequence[object]) -> subprocess.CompletedProcess[str]:
    """mt-translate in a process of its own, which at its end prints whether torch was imported."""
    code = (
        "import sys; from tolka.cli import translate; from tolka.cli.common import exit_code;"
        "code = exit_code(translate.run, sys.argv[1:]); sys.stdout.flush();"
        "print(sorted({'torch', 'hydra', 'transformers'} & set(sys.modules)), file=sys.stderr); sys.exit(code)"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        input="kettle .\n",
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_torch_is_not_imported(made: Path, exported: Path, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<p>lantern <b>kettle</b> ferry</p>")
    open_model(made, BeamConfig(), AUTO)  # the first time, it is compared with torch
    for arguments in (
        [exported],
        [made, "decoding.device=cpu"],
        [made, "decoding.backend=ctranslate2", "search=greedy"],
        [exported, "output.format=jsonl", f"--attention={tmp_path / 'maps'}"],
        [exported, "output.alignments=true"],
        [exported, tmp_path / "page.html", "-o", tmp_path / "out.html"],
    ):
        outcome = run_apart(arguments)
        assert outcome.returncode == 0, outcome.stderr
        assert outcome.stderr.splitlines()[-1] == "[]"
        assert len(outcome.stdout.splitlines()) == ("-o" not in arguments)
    assert json.loads(next((tmp_path / "maps").glob("*.json")).read_text())["maps"][0]["map"] == "decoder.1.cross"
    assert "<b>" in (tmp_path / "out.html").read_text()


def test_python_loads_what_the_command_takes_without_torch(made: Path, exported: Path) -> None:
    code = (
        "import sys, tolka; exported, model = sys.argv[1:]; one = tolka.load(exported, search='greedy');"
        "other = tolka.load(model, ['search=greedy'], decoding={'backend': 'ctranslate2'});"
        "assert one('kettle .') == other('kettle .') != ['']; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, exported, made], check=False).returncode == 0


def test_attention_is_torch_s(made: Path, exported: Path) -> None:
    """Of forced decoding, in batches of variable-length sentences: means over the heads of the last layer."""
    torchs, *others = *both(made, GreedyConfig()), open_model(exported, GreedyConfig(), CTRANSLATE2)
    translations = torchs.translate(["kettle", *TEXTS, "", "lantern kettle. " * 9])
    expected = torchs.attention(translations)
    assert sum(map(len, expected)) > len(TEXTS)
    for translator in others:
        for maps, ours in zip(translator.attention(translations), expected, strict=True):
            for one, two in zip(maps, ours, strict=True):
                assert (one.name, one.rows, one.columns) == (two.name, two.rows, two.columns)
                np.testing.assert_allclose(one.weights, two.weights, atol=1e-5)
        assert translator.align(translations) == torchs.align(translations)


def test_an_older_export_has_no_attention(exported: Path, tmp_path: Path) -> None:
    """Its CTranslate2 model returns that of one head."""
    folder = _changed(exported, tmp_path / "folder", _facts(attention=""))
    (folder / MANIFEST).unlink()
    write_manifest(folder, TrainingSources(40, 0.0))
    translator = open_model(folder, GreedyConfig(), CTRANSLATE2)
    with pytest.raises(ConfigError, match="export the model again"):
        translator.align(translator.translate("kettle ."))


@pytest.mark.slow
@pytest.mark.parametrize("limit", [2**30, 2000])
def test_a_model_is_converted_apart_from_a_process_without_torch(made: Path, limit: int) -> None:
    """Nothing is hidden from this process's own imports, and a full disk is told as in one with torch."""
    code = (
        "import resource, sys; from tolka.translation.opening import open_model; from tolka.errors import TolkaError;"
        "from tolka.search.options import GreedyConfig; from tolka.engines.options import DecodingConfig;"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}));"
        f"open_model({str(made)!r}, GreedyConfig(), DecodingConfig(backend='ctranslate2', device='cpu'));"
        "assert 'torch' not in sys.modules and 'ctranslate2.specs' not in sys.modules; import ctranslate2.specs;"
        "assert ctranslate2.specs.model_spec.torch_is_available"
    )
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (outcome.returncode == 0) == (limit > 2000), outcome.stderr
    assert outcome.returncode == 0 or "cannot be converted in /tmp (File too large): set TMPDIR" in outcome.stderr


def test_the_documented_program_translates_like_the_command(exported: Path, command: Command, tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "howto" / "ctranslate2.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    (tmp_path / "translate.py").write_text(program, encoding="utf-8")
    lines = "".join(f"{text}\n" for text in TEXTS if text.strip())
    done = subprocess.run(
        [sys.executable, tmp_path / "translate.py", exported], input=lines, capture_output=True, text=True, check=True
    )
    as_its_limit = ["search.max_length_factor=0", "search.max_length_extra=255", "decoding.split=never"]
    ours = command("mt-translate", exported, "search.length_normalization=plain", *as_its_limit, stdin=lines.encode())
    assert done.stdout == ours.out


def test_the_sides_of_the_gate(made: Path, exported: Path) -> None:
    parity = compare(TolkaSide(load_model(made)), CTranslate2Side(exported, Direction("xa", "xb")), TEXTS)
    assert parity.other.startswith("CTranslate2 4")
    assert parity.identical == parity.lines


def test_the_command_exports(made: Path, tmp_path: Path, command: Command) -> None:
    outcome = command("mt-train", "export", made, "--to", "ctranslate2", "-o", tmp_path / "out")
    assert outcome.code == 0, outcome.err
    assert "tolka translate 64 identically (greedy)" in outcome.err
    assert "BLEU between both is 100.00" in outcome.err
    assert command("mt-translate", tmp_path / "out", stdin=b"kettle\n").code == 0
    outcome = command("mt-train", "export", made, "--to", "ctranslate2", "--dtype", "int4", "-o", tmp_path / "other")
    assert outcome.code == 2
    assert "--dtype (int4) is unknown" in outcome.error


def test_perplexity_is_torch_s_whatever_translates(made: Path, command: Command, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("".join(f"{text}\n" for text in TEXTS))
    files = [f"source={tmp_path / 'text'}", f"reference={tmp_path / 'text'}", "metrics.bootstrap=0"]
    ours, theirs = (
        command("mt-eval", made, *files, "search=greedy", f"decoding.backend={backend}")
        for backend in ("torch", "auto")
    )
    assert theirs.out == ours.out
    assert ours.code == theirs.code == 0
    with pytest.raises(ConfigError, match=r"decoding.backend=ctranslate2 is not for this"):
        Translator.of(load_model(made), GreedyConfig(), CTRANSLATE2)


@pytest.mark.slow
def test_a_model_of_marian_s_goes_through(tmp_path: Path, command: Command) -> None:
    """Its ids are those of a vocabulary.json, not of its SentencePiece models."""
    folder = write_by_hand(tmp_path / "opus")
    assert command("mt-train", "import", folder, "-o", tmp_path / "model").code == 0
    parity = export_checked(tmp_path / "model", tmp_path / "out", lines=TEXTS)
    assert parity.logits is not None
    assert parity.logits < 5e-5
    assert (tmp_path / "out" / "vocabulary.json").is_file()
    stdin = "".join(f"{text}\n" for text in TEXTS).encode()
    ours, theirs = (
        command("mt-translate", tmp_path / each, "decoding.backend=torch", stdin=stdin).out for each in ("model", "out")
    )
    assert theirs == ours
    outcome = command("mt-translate", folder, "decoding.backend=ctranslate2", stdin=stdin)
    assert "is a folder of another program, which takes torch, or mt-train import first" in outcome.error
