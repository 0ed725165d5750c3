"""mt-translate: one line in, one line out, and nothing on stdout but translations."""

import gzip
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rows import each_row

from tolka.engines.options import DecodingConfig
from tolka.model_directory.read import load_model
from tolka.translation.opening import open_model

Command = Callable[..., Any]
# An untrained model babbles to the limit; a low one keeps the tests short.
QUICK = ["search=greedy", "search.max_length_factor=0", "search.max_length_extra=3"]
ODD_NAMES = ["a b", "a=b", "search.beam_size=2", "a(b", "a,b", "a'b", "~a", "$a", "a${b}", "한글"]


def test_blank_lines_stay_blank_wherever_they_are(command: Command, trained: Path) -> None:
    outcome = command("mt-translate", trained, stdin=b"\nferry\n\n \t\npebble walnut\n\n\n")
    lines = outcome.out.split("\n")
    assert outcome.code == 0
    assert len(lines) == 8
    assert [bool(line) for line in lines] == [False, True, False, False, True, False, False, False]


def test_a_last_line_without_a_line_feed(command: Command, trained: Path) -> None:
    with_end, without = (command("mt-translate", trained, stdin=text) for text in (b"a\nferry\n", b"a\nferry"))
    assert with_end.out == without.out
    assert without.out.count("\n") == 2


def test_no_input(command: Command, trained: Path) -> None:
    outcome = command("mt-translate", trained, stdin=b"")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "note: there was no line to translate\n")


def test_only_line_feeds_end_a_line(command: Command, trained: Path) -> None:
    text = "ferry\u2028kettle\npebble\u0085x\nwal\rnut\r\n".encode()
    assert command("mt-translate", trained, *QUICK, stdin=text).out.count("\n") == 3


def test_a_bom_and_windows_ends_change_nothing(command: Command, trained: Path) -> None:
    plain = command("mt-translate", trained, stdin=b"ferry\nkettle\n").out
    assert command("mt-translate", trained, stdin=b"\xef\xbb\xbfferry\r\nkettle\r\n").out == plain


def test_the_order_is_kept_across_windows_and_batches(command: Command, trained: Path) -> None:
    lines = ["ferry", "kettle pebble walnut ferry velvet", "", "copper orchid", "saddle", "harbour lantern ferry"]
    text = "".join(f"{line}\n" for line in lines).encode()
    alone = "".join(command("mt-translate", trained, *QUICK, stdin=f"{line}\n".encode()).out for line in lines)
    together = command("mt-translate", trained, *QUICK, "decoding.window=4", "decoding.tokens=9", stdin=text)
    assert together.out == alone


@pytest.mark.slow
@pytest.mark.parametrize("line", ["a" * 100_000, "ab " * 33_334])
def test_a_line_of_100000_characters(command: Command, trained: Path, line: str) -> None:
    outcome = command("mt-translate", trained, *QUICK, stdin=f"ferry\n{line}\nferry\n".encode())
    first, long, last = outcome.out.removesuffix("\n").split("\n")
    assert outcome.code == 0
    assert first == last != ""
    assert long
    notes = [text for text in outcome.err.splitlines() if "longer than the model was trained for" in text]
    assert notes == ["note: 1 of 3 lines were longer than the model was trained for: split, translated, rejoined"]


@pytest.mark.parametrize(
    "text",
    [
        'He said "go now." Then she left (at last!) for good, I think.',
        "a" * 50,
        "one two three four five six seven eight nine ten",
        "彼は言った。「行け！」そして去った。",
    ],
)
def test_splitting_loses_only_the_blanks_at_the_cuts(trained: Path, text: str) -> None:
    translator = open_model(trained, decoding=DecodingConfig(device="cpu", max_length=8))
    parts = list(translator._segmenter(translator.request).split(text))
    assert len(parts) > 1 or text == "a" * 50
    assert "".join(part.separator + translator.tokenizer.decode_source([part.ids])[0] for part in parts) == text


def test_an_output_file_is_whole_or_absent(command: Command, trained: Path, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    assert command("mt-translate", trained, corpus / "test.xa", "-o", out, *QUICK).code == 0
    assert out.read_text() == command("mt-translate", trained, corpus / "test.xa", *QUICK).out
    before = out.read_text()
    failed = command("mt-translate", trained, "-o", out, *QUICK, "decoding.window=1", stdin=b"ferry\n\xff\n")
    assert failed.code == 1
    assert out.read_text() == before
    assert sorted(os.listdir(tmp_path)) == ["corpus", "out.txt"]


def test_a_link_and_a_pipe_as_output(command: Command, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert command("mt-translate", trained, "-o", tmp_path / "link", stdin=b"ferry\n").code == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text().count("\n") == 1
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert command("mt-translate", trained, "-o", tmp_path / "pipe", stdin=b"ferry\n").code == 0
    assert os.read(reader, 10_000).decode() == (tmp_path / "target").read_text()
    os.close(reader)


@pytest.mark.parametrize("out", ["nowhere/out.txt", "."])
def test_an_output_that_cannot_be_written(command: Command, trained: Path, tmp_path: Path, out: str) -> None:
    outcome = command("mt-translate", trained, "-o", tmp_path / out, stdin=b"ferry\n")
    assert outcome.code == 1
    assert str(tmp_path) in outcome.error


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_of_files(
    command: Command, trained: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("ferry\n", encoding="utf-8")
    assert command("mt-translate", trained, name).out == command("mt-translate", trained, stdin=b"ferry\n").out


def test_arguments_in_any_order(command: Command, trained: Path, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for arguments in (
        [trained, corpus / "test.xa", "-o", out, "search=greedy"],
        [trained, "-o", out, "search=greedy", corpus / "test.xa"],
        ["-o", out, trained, "search=greedy", corpus / "test.xa"],
    ):
        assert command("mt-translate", *arguments).code == 0
        assert out.read_text().count("\n") == 8
        out.unlink()


def test_several_files_and_gzip(command: Command, trained: Path, corpus: Path, tmp_path: Path) -> None:
    packed = tmp_path / "test.gz"
    packed.write_bytes(gzip.compress((corpus / "test.xa").read_bytes()))
    once = command("mt-translate", trained, corpus / "test.xa", *QUICK).out
    assert command("mt-translate", trained, corpus / "test.xa", packed, *QUICK).out == once + once


@pytest.mark.parametrize("place", ["stdin", "file"])
def test_a_line_that_is_not_utf8_loses_none_before_it(
    command: Command, trained: Path, tmp_path: Path, place: str
) -> None:
    good, bad = b"ferry\nkettle\n\n", b"k\xe4ttle\nferry\n"
    path = tmp_path / "text"
    path.write_bytes(good + bad)
    inputs, stdin = ([], good + bad) if place == "stdin" else ([path], b"")
    outcome = command("mt-translate", trained, *inputs, stdin=stdin)
    assert (outcome.code, outcome.out) == (1, command("mt-translate", trained, stdin=good).out)
    assert outcome.out.count("\n") == 3
    assert outcome.error.startswith(f"{path if inputs else 'stdin'}:4: not UTF-8 (byte 0xe4 at column 2)")
    assert "of 3 translations reached the length limit" in outcome.err
    failed = command("mt-translate", trained, *inputs, "-o", tmp_path / "out", stdin=stdin)
    assert failed.error == outcome.error
    assert os.listdir(tmp_path) == (["text"])


def test_a_document_is_noted_once(command: Command, trained: Path, tmp_path: Path) -> None:
    """Where it is told to be lines, or nothing reads its kind."""
    (tmp_path / "film.ass").write_text("ferry\n")
    (tmp_path / "page.html.gz").write_bytes(gzip.compress(b"<p>ferry</p>\n"))
    (tmp_path / "news.xa").write_text("ferry\n")
    names = ("film.ass", "film.ass", "page.html.gz", "news.xa")
    outcome = command("mt-translate", trained, *QUICK, "input.format=text", *(tmp_path / name for name in names))
    assert (outcome.code, outcome.out.count("\n")) == (0, 4)
    assert [line for line in outcome.err.splitlines() if "looks like" in line] == [
        f"note: {tmp_path}/film.ass looks like subtitles: every line of it is translated as text, styles and time "
        "codes included",
        f"note: {tmp_path}/page.html.gz looks like HTML: every line of it is translated as text, tags included",
    ]


def test_a_file_in_utf16_is_translated_as_the_same_text_is(command: Command, trained: Path, tmp_path: Path) -> None:
    for encoding in ("utf-8", "utf-16"):
        (tmp_path / encoding).write_bytes("ferry\n".encode(encoding))
    wide, plain = (command("mt-translate", trained, tmp_path / encoding) for encoding in ("utf-16", "utf-8"))
    assert (wide.code, wide.out) == (0, plain.out)


@pytest.mark.slow
def test_torch_s_compiler_is_not_loaded(trained: Path) -> None:
    """It takes as long to import as torch itself."""
    code = (
        "import sys\nfrom tolka.cli.translate import run\n"
        f"code = run([{str(trained)!r}, *{QUICK!r}])\nprint(code, 'torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], input=b"ferry\n", capture_output=True, check=False)
    assert done.stdout.splitlines()[1:] == [b"0 False"], done.stderr


@pytest.mark.slow
def test_a_closed_pipe_is_silent(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("ferry\n" * 3000)
    run = f"'{sys.executable}' -c 'from tolka.cli import mt_translate; mt_translate()' '{trained}' '{tmp_path}/text'"
    script = f"set -o pipefail; {run} {' '.join(QUICK)} decoding.window=10 | head -1"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.count("\n") == 1
    assert re.fullmatch(r"(note: by the verdict of its training: .*\n)?", done.stderr)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@each_row(
    "words, complaint",
    [
        ("translate {model} {text} > /dev/full", "input or output: No space left on device"),
        ("translate {model} <&-", "standard input is closed; name a file to translate"),
        ("translate {model} {text} >&-", "standard output is closed; name a file with -o"),
    ],
)
def test_streams_that_are_closed_or_full(words: str, complaint: str, trained: Path, corpus: Path) -> None:
    run = f"'{sys.executable}' -m tolka {words.format(model=trained, text=corpus / 'test.xa')}"
    done = subprocess.run(["bash", "-c", run], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"error: {complaint}" in done.stderr.splitlines()[-1]
    assert done.stderr.count("rror") == 1


@pytest.mark.slow
def test_what_is_written_is_complete_without_any_stream(trained: Path, corpus: Path, tmp_path: Path) -> None:
    """No file gets the number of a standard stream, into which libraries print."""
    run = f"'{sys.executable}' -m tolka translate {trained} {corpus / 'test.xa'} -o"
    for name, closed in (("a", ""), ("b", "<&- >&- 2>&-")):
        assert subprocess.run(["bash", "-c", f"{run} {tmp_path / name} {closed}"], check=False).returncode == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


SEVERAL = b"lantern kettle . harbour pebble . saddle . orchid copper velvet .\nlantern .\n"


def test_a_model_of_single_sentences_gets_them_one_by_one(command: Command, trained: Path) -> None:
    """Its manifest has the share of its training lines with several sentences, which was none."""
    manifest = json.loads((trained / "best" / "manifest.json").read_text())
    assert manifest["several_sentences"] == 0.0
    outcome = command("mt-translate", trained, stdin=SEVERAL)
    alone = command("mt-translate", trained, stdin=SEVERAL.replace(b" . ", b" .\n"))
    assert outcome.out == alone.out.replace("\n", " ", 3)
    assert "note: 1 of 2 lines have several sentences, translated one by one (decoding.split)" in outcome.err
    together = command("mt-translate", trained, "decoding.split=length", stdin=SEVERAL)
    assert "several sentences" not in together.err


@pytest.mark.slow
def test_a_model_that_does_not_say_what_it_was_trained_on_gets_lines_whole(
    command: Command, trained: Path, tmp_path: Path
) -> None:
    silent = tmp_path / "silent"
    shutil.copytree(trained / "best", silent)
    manifest = json.loads((silent / "manifest.json").read_text())
    (silent / "manifest.json").write_text(json.dumps({**manifest, "several_sentences": None}))
    outcome = command("mt-translate", silent, stdin=SEVERAL)
    assert outcome.out == command("mt-translate", trained, "decoding.split=length", stdin=SEVERAL).out
    assert "note: 1 of 2 lines have several sentences, translated at once: the model does not say" in outcome.err
    apart = command("mt-translate", silent, "decoding.split=sentences", stdin=SEVERAL)
    assert apart.out == command("mt-translate", trained, stdin=SEVERAL).out


def test_the_manifest_has_the_ratio_of_lengths_in_the_training_text(trained: Path) -> None:
    """Words of xa have 4 to 7 letters, those of xb 4 or 5, so that targets are shorter."""
    pairs = zip(
        *((trained.parent / f"corpus/train.{side}").read_text().splitlines() for side in ("xa", "xb")), strict=True
    )
    logarithms = [math.log(len(target) / len(source)) for source, target in pairs]
    [[*_, mean, deviation]] = json.loads((trained / "best" / "manifest.json").read_text())["length_ratios"]
    assert mean == pytest.approx(statistics.fmean(logarithms))
    assert deviation == pytest.approx(statistics.stdev(logarithms))
    ratio = open_model(trained).length_ratio
    assert ratio is not None
    assert (ratio.mean, ratio.deviation) == (mean, deviation)
    assert open_model([trained, trained]).length_ratio == ratio


@pytest.mark.parametrize("ratio", [[], [1.0], ["a", 1.0], [0.0, -1.0], [1e9, 1.0]])
def test_a_ratio_of_lengths_that_is_none_is_refused(
    command: Command, trained: Path, tmp_path: Path, ratio: list[object]
) -> None:
    shutil.copytree(trained / "best", tmp_path / "odd")
    path = tmp_path / "odd" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "length_ratios": [["xa", "xb", *ratio]]}))
    assert "manifest.json is damaged (" in command("mt-translate", tmp_path / "odd", stdin=b"a\n").error


def test_the_manifest_says_the_directions_that_the_model_knows(command: Command, trained: Path, tmp_path: Path) -> None:
    """That of an imported one does not: its config.yaml has its only one."""
    assert json.loads((trained / "best" / "manifest.json").read_text())["directions"] == [["xa", "xb"]]
    shutil.copytree(trained / "best", tmp_path / "odd")
    path = tmp_path / "odd" / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "directions": [["xb", "xa"]]}))
    assert load_model(tmp_path / "odd").facts.directions == (("xb", "xa"),)
    path.write_text(json.dumps({**manifest, "directions": []}))
    assert load_model(tmp_path / "odd").facts.directions == (("xa", "xb"),)
    path.write_text(json.dumps({**manifest, "directions": ["xa"]}))
    assert "a direction is 'xa'" in command("mt-translate", tmp_path / "odd", stdin=b"a\n").error


@pytest.mark.parametrize("share", [-0.1, 1.5, "0", True])
def test_a_share_of_several_sentences_that_is_none_is_refused(
    command: Command, trained: Path, tmp_path: Path, share: object
) -> None:
    shutil.copytree(trained / "best", tmp_path / "odd")
    path = tmp_path / "odd" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "several_sentences": share}))
    assert f"several_sentences is {share!r}" in command("mt-translate", tmp_path / "odd", stdin=b"a\n").error
