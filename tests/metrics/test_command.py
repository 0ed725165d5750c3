"""A metric that a command computes: what it is given, what is read of it, and what is refused."""

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rows import each_row

from tolka.errors import ConfigError, DataError, TolkaError
from tolka.metrics.command import without_folders
from tolka.metrics.metric import References
from tolka.metrics.options import MetricsConfig
from tolka.metrics.scores import score, scores_and_lines
from tolka.metrics.significance import compare

HYPOTHESES, SOURCES = ["a b", "c", ""], ["x", "y y", "z"]
REFERENCES = References([["a b", "d", "e"], ["b", "c", "e e"]], SOURCES)


def config(code: str, words: str = "{hypothesis}", **options: object) -> MetricsConfig:
    """A command that runs some lines of Python, whose arguments are words."""
    python = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"
    return MetricsConfig(names=[], command=f"{python} {words}", **options)  # type: ignore[arg-type]


COUNT = "import sys; [print('line', len(line.split())) for line in open(sys.argv[1])]"


def test_the_score_is_the_mean_of_what_is_printed() -> None:
    (found,) = score(HYPOTHESES, REFERENCES, config(COUNT))
    assert (found.name, found.digits) == ("command", 4)
    assert found.value == pytest.approx(1)
    assert found.signature.startswith("nrefs:2|bs:1000|seed:12345|how:")
    assert COUNT.replace("'", "'\"'\"'") in found.signature
    assert found.interval is not None
    assert found.interval[0] < 1 < found.interval[1]
    assert scores_and_lines(HYPOTHESES, REFERENCES, config(COUNT))[1]()["command"].tolist() == [2, 1, 0]


def test_a_signature_has_no_folders() -> None:
    """It is published with the scores."""
    command = "PATH=/opt/x comet-score --model '/home/ann/m.ckpt' -s {source} ~/bin/a=b/c 3/4 / https://x.org/y"
    assert without_folders(command) == "PATH=x comet-score --model 'm.ckpt' -s {source} a=c 4 / y"
    wanted = MetricsConfig(names=[], command="/bin/cat {hypothesis} | /usr/bin/wc -l; echo 1; echo 1")
    (found,) = score(HYPOTHESES, REFERENCES, wanted)
    assert "how:cat {hypothesis} | wc -l; echo 1; echo 1|" in found.signature


def test_the_files_are_the_texts() -> None:
    """Sources, translations, and each of the references, a sentence a line."""
    code = "import sys; texts = [open(name).read() for name in sys.argv[1:]]; print(*map(repr, texts), file=sys.stderr)"
    with pytest.raises(ConfigError) as caught:
        score(HYPOTHESES, REFERENCES, config(f"{code}; sys.exit(3)", "{source} {reference} {hypothesis}"))
    texts = (SOURCES, *REFERENCES.lists, HYPOTHESES)
    shown = " ".join(repr("".join(f"{line}\n" for line in lines)) for lines in texts)
    assert str(caught.value) == f"metrics.command ended with 3: {shown}"


def test_it_runs_in_a_shell_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scores").write_text("1\n2\n")
    wanted = MetricsConfig(names=["exact"], command="cat scores && wc -l < {hypothesis}")
    assert [each.value for each in score(HYPOTHESES, REFERENCES, wanted)] == pytest.approx([200 / 3, 2])


def test_a_last_line_with_the_mean_is_left_out() -> None:
    """As comet-score prints it, rounded to four digits."""
    code = "import sys; [print(f'{sys.argv[1]}\\tSegment {n}\\tscore: {s}') for n, s in enumerate((0.1, 0.2, 0.2))]"
    (found,) = score(HYPOTHESES, REFERENCES, config(f"{code}; print('mt.txt\\tscore: 0.1667')"))
    assert found.value == pytest.approx(0.5 / 3)


def test_the_mean_of_scores_near_0_is_left_out_too() -> None:
    (found,) = score(HYPOTHESES, REFERENCES, config("print(0.0001, 0.0004, -0.0003, 0.0001, sep='\\n')"))
    assert found.value == pytest.approx(0.0002 / 3)


def test_a_carriage_return_ends_no_line_in_the_files() -> None:
    """As Python reads files by default, and comet-score does."""
    (found,) = score(["a\rb", "c", ""], REFERENCES, config(COUNT))
    assert found.value == pytest.approx(1)


def test_it_is_compared_like_any_other() -> None:
    better = ["a b c", "c d", "e f"]
    (found,) = compare([HYPOTHESES, better], REFERENCES, config(COUNT, bootstrap=200))
    assert found.difference == pytest.approx(4 / 3)
    # The two systems differ in the same direction in all three lines: one exchange in four has so large a difference.
    assert found.p_value == pytest.approx(0.25, abs=0.1)
    assert "|ar:200|" in found.signature


@each_row(
    ("code", "message"),
    [
        ("print(1); print(2)", "metrics.command printed 2 lines for 3: it must print one number a line"),
        ("print(1, 2, 3, 9, sep='\\n')", "metrics.command printed 4 lines for 3"),
        ("print(1, 'nan', 3, sep='\\n')", "metrics.command printed 'nan' in line 2: it must print one number a line"),
        ("print(1, 'inf', 3, sep='\\n')", "metrics.command printed 'inf' in line 2"),
        ("print(1, 'good', 3, sep='\\n')", "metrics.command printed 'good' in line 2"),
        ("print(1, '', 3, sep='\\n')", "metrics.command printed '' in line 2"),
        ("import sys; sys.exit(2)", "metrics.command ended with 2: it said nothing"),
        ("import sys; sys.exit('no model')", "metrics.command ended with 1: no model"),
    ],
)
def test_what_is_no_score_is_refused(code: str, message: str) -> None:
    with pytest.raises(TolkaError) as caught:
        score(HYPOTHESES, REFERENCES, config(code))
    assert str(caught.value).startswith(message)


def test_sources_must_be_known_where_they_are_wanted() -> None:
    with pytest.raises(ConfigError, match=r"metrics\.command has \{source\}, and the sources are not known"):
        score(["a"], ["a"], config(COUNT, "{source} {hypothesis}"))


def test_a_command_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match=r"metrics\.command ended with 127: .*not found"):
        score(["a"], ["a"], MetricsConfig(names=[], command="comet-scores {hypothesis}"))


def test_counts_are_checked_before_the_command_runs() -> None:
    with pytest.raises(DataError, match="3 hypotheses but 2 references"):
        score(HYPOTHESES, ["a", "b"], config("import sys; sys.exit(1)"))


@pytest.mark.slow
def test_what_a_command_has_started_ends_with_mt_eval(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a\n")
    files = [f"{side}={tmp_path / 'text'}" for side in ("hypothesis", "reference")]
    command = f"metrics.command=echo $$ > {tmp_path}/pid; sleep 999 & wait; cat {{hypothesis}}"
    words = [sys.executable, "-m", "tolka", "eval", *files, "metrics.names=[]", command]
    with subprocess.Popen(words, stderr=subprocess.PIPE) as process:
        while not (tmp_path / "pid").is_file() or not (tmp_path / "pid").read_text():
            time.sleep(0.05)
            assert process.poll() is None
        process.terminate()
        assert process.wait() == 143
    # Killed, and gone when the system has collected it, which may take a moment.
    left = int((tmp_path / "pid").read_text())
    for _ in range(200):
        try:
            os.killpg(left, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("a process of the command is left")
