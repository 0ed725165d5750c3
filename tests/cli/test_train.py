"""mt-train from the command line: odd names, going on, and folders that hold something else."""

import gzip
import json
import os
import re
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

from tolka.config.command_line import evaluate_config, train_config
from tolka.metrics.command import without_folders
from tolka.optim.schedules.base import SchedulerConfig
from tolka.optim.schedules.formulas import ConstantConfig, CosineConfig, NoamConfig
from tolka.optim.schedules.wsd import WarmupStableDecayConfig
from tolka.training import memory
from tolka.training.run_folder import RunFolder
from tolka.training.step import TrainStep
from tolka.training.trainer import Trainer

Command = Callable[..., Any]
ODD_NAMES = [
    "a b",
    "a=b",
    "a(b",
    "a,b",
    "a'b",
    'a"b',
    "'a",
    "~a",
    "a$b",
    "a${b}",
    "말뭉치",
    "[a",
    "a\\b",
    "null",
    "???",
]


@pytest.fixture
def threads_restored() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.slow
@pytest.mark.usefixtures("threads_restored")
def test_threads_are_counted_and_may_change_between_two_calls(
    command: Command, tiny: list[str], tmp_path: Path
) -> None:
    for count, updates in ((3, 1), (2, 2)):
        given = [f"trainer.threads={count}", f"trainer.updates={updates}", "scheduler.warmup=1"]
        assert command("mt-train", *tiny, *given).code == 0
        assert torch.get_num_threads() == count
    log = (tmp_path / "run" / "train.log").read_text()
    assert log.index(", 3 threads") < log.index(", 2 threads")
    assert command("mt-translate", tmp_path / "run", "decoding.threads=1", stdin=b"ferry\n").code == 0
    assert torch.get_num_threads() == 1


def test_a_training_leaves_a_model_and_its_scores(trained: Path) -> None:
    scores = json.loads((trained / "best" / "scores.json").read_text())
    assert [metric["name"] for metric in scores["test"]["test"]["metrics"]] == ["BLEU", "chrF2", "chrF2++", "TER"]
    assert (trained / "last" / "manifest.json").is_file()
    assert len((trained / "samples" / "test.xb.txt").read_text().splitlines()) == 8


def move(corpus: Path, name: str) -> list[str]:
    """Put the corpus into a folder of that name, under prefixes that begin with it; the settings that find it."""
    (corpus / name).mkdir()
    for split in ("train", "valid", "test"):
        for language in ("xa", "xb"):
            (corpus / f"{split}.{language}").rename(corpus / name / f"{name}{split}.{language}")
    given = [f"corpus.{split}={name}{split}" for split in ("train", "valid", "test")]
    return [*given, f"corpus.root={name}", f"run.dir={name}/{name}"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_are_taken_as_they_are(
    tiny: list[str], corpus: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpus)
    config = train_config([*tiny, *move(corpus, name)])
    found = config.corpus.open()
    assert [sources[0].count() for sources in (found.train, found.valid, found.tests)] == [60, 8, 8]
    assert config.run.folder == Path(name) / name
    folder = RunFolder(config.run.folder)
    folder.claim(config.as_dict())
    folder.release()
    saved = yaml.safe_load((corpus / name / name / "config.yaml").read_text(encoding="utf-8"))
    assert saved == config.as_dict()


def test_a_training_under_an_odd_name(
    command: Command, tiny: list[str], corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpus)
    name = "~a b=(c),'d\"$${e}한글["
    arguments = [*tiny, *move(corpus, name)]
    assert command("mt-train", *arguments).code == 0
    assert "trainer.updates (5) are done" in command("mt-train", *arguments).err
    assert command("mt-translate", f"{name}/{name}", stdin=b"ferry\n").code == 0


def test_lists_of_files(command: Command, tiny: list[str], corpus: Path) -> None:
    for language in ("xa", "xb"):
        (corpus / f"a,b.{language}").write_bytes((corpus / f"test.{language}").read_bytes())
    folder = f"{corpus}/"
    lists = [f"corpus.train=[{folder}train, {folder}valid]", f"corpus.test=[{folder}test,'{folder}a,b']"]
    outcome = command("mt-train", *tiny, *lists)
    assert outcome.code == 0
    assert "training text: 68 pairs, 68 kept" in outcome.err
    assert [line for line in outcome.err.splitlines() if line.startswith("test set ") and "pairs" in line] == [
        "test set test: 8 pairs, 8 kept",
        "test set a,b: 8 pairs, 8 kept",
    ]


def test_a_text_with_a_weight_that_cleaning_has_emptied_is_noted(
    command: Command, tiny: list[str], corpus: Path
) -> None:
    for language in ("xa", "xb"):
        (corpus / f"long.{language}").write_text("word " * 1000 + "\n")
    texts = [f"corpus.train=[{corpus}/train,{corpus}/long]", "corpus.weights=[1,2]"]
    outcome = command("mt-train", *tiny, *texts)
    assert outcome.code == 0
    assert "note: no pair of " in outcome.err
    assert "long is left after cleaning, and corpus.weights (2) draws none" in outcome.err


def test_a_gzip_corpus(command: Command, tiny: list[str], corpus: Path) -> None:
    for path in list(corpus.iterdir()):
        (corpus / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert command("mt-train", *tiny).code == 0


@pytest.mark.parametrize("shape", ["translation", "parquet"])
def test_a_local_folder_in_hub_shape(
    command: Command, tiny: list[str], corpus: Path, tmp_path: Path, shape: str
) -> None:
    import datasets

    for split, name in (("train", "train"), ("valid", "validation"), ("test", "test")):
        sides = [(corpus / f"{split}.{language}").read_text().splitlines() for language in ("xa", "xb")]
        rows = [{"xa": a, "xb": b} for a, b in zip(*sides, strict=True)]
        rows = [{"translation": row} for row in rows] if shape == "translation" else rows
        if shape == "parquet":
            datasets.Dataset.from_list(rows).to_parquet(str(tmp_path / f"hub=1-{name}.parquet"))
            (tmp_path / "hub").mkdir(exist_ok=True)
            (tmp_path / f"hub=1-{name}.parquet").rename(tmp_path / "hub" / f"{name}.parquet")
        else:
            (tmp_path / "hub").mkdir(exist_ok=True)
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (tmp_path / "hub" / f"{name}.jsonl").write_text(text)
    kept = [setting for setting in tiny if not setting.startswith("corpus")]
    arguments = [*kept, "corpus=hub", "corpus.source=xa", "corpus.target=xb", f"corpus.path={tmp_path / 'hub'}"]
    outcome = command("mt-train", *arguments)
    assert outcome.code == 0
    there = train_config(arguments).corpus.open().train[0].fingerprint()
    back = train_config([*arguments, "corpus.source=xb", "corpus.target=xa"]).corpus.open().train[0].fingerprint()
    assert there != back  # one data set, two directions: their token stores must not be taken for one another
    assert "training text: 60 pairs, 60 kept" in outcome.err
    assert "test set test: 8 pairs, 8 kept" in outcome.err


@pytest.mark.parametrize("code", ["no", "on", "off", "yes", "nan", "inf"])
def test_language_codes_that_look_like_other_things(tmp_path: Path, code: str) -> None:
    config = train_config([f"corpus.source={code}"])
    folder = RunFolder(tmp_path)
    folder.claim(config.as_dict())
    folder.release()
    assert config.corpus.source == code
    assert yaml.safe_load((tmp_path / "config.yaml").read_text())["corpus"]["source"] == code
    assert evaluate_config([f"files.language={code}"]).files.language == code


def test_norwegian(command: Command, tiny: list[str], corpus: Path, tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        (corpus / f"{split}.xb").rename(corpus / f"{split}.no")
    assert command("mt-train", *tiny, "corpus.target=no").code == 0
    outcome = command(
        "mt-eval", tmp_path / "run", f"source={corpus}/test.xa", f"reference={corpus}/test.no", "metrics.bootstrap=0"
    )
    assert outcome.code == 0


def test_a_number_as_the_name_of_a_run(
    command: Command, tiny: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("mt-train", *tiny, "run.dir=", "run.name=2024").code == 0
    assert (tmp_path / "runs" / "2024" / "best" / "manifest.json").is_file()


def test_the_same_command_again_keeps_the_scores(command: Command, begun: list[str], tmp_path: Path) -> None:
    scores = (tmp_path / "run" / "best" / "scores.json").read_text()
    metrics = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    again = command("mt-train", *begun)
    assert again.code == 0
    assert "resuming from update 5" in again.err
    assert "trainer.updates (5) are done; raise it to continue" in again.err
    assert (tmp_path / "run" / "best" / "scores.json").read_text() == scores
    now = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert (now[:-1], len(now)) == (metrics[:-1], len(metrics))
    assert "decoding_seconds" in now[-1]  # what the test took, this time


def test_another_run_in_the_folder(command: Command, begun: list[str], tmp_path: Path) -> None:
    outcome = command("mt-train", *begun, "model.layers=2", "run.seed=7", "trainer.updates=9")
    assert outcome.code == 2
    assert "holds another run; these settings differ: model.layers (1, now 2); run.seed (1, now 7)." in outcome.error
    assert yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["model"]["layers"] == 1


def test_a_first_try_that_failed_does_not_block_its_folder(command: Command, tiny: list[str]) -> None:
    assert command("mt-train", *tiny, "corpus.train=nowhere").code == 1
    assert command("mt-train", *tiny).code == 0


def test_a_folder_without_a_run(command: Command, tiny: list[str], tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "letter.txt").write_text("mine")
    outcome = command("mt-train", *tiny)
    assert outcome.code == 2
    assert outcome.error.endswith("is not empty and holds no run; choose another run.dir or run.name")
    assert os.listdir(tmp_path / "run") == ["letter.txt"]


def test_a_file_where_the_run_should_be(command: Command, tiny: list[str], tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    outcome = command("mt-train", *tiny)
    assert outcome.code == 2
    assert "is a file, not a run's folder" in outcome.error


@pytest.mark.parametrize("content", [b"a: [1", b"\xff\xfe"])
def test_a_damaged_configuration_of_a_run(command: Command, tiny: list[str], tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run" / "last").mkdir(parents=True)
    (tmp_path / "run" / "config.yaml").write_bytes(content)
    outcome = command("mt-train", *tiny)
    assert outcome.code == 1
    assert "config.yaml is damaged" in outcome.error


def test_the_settings_shown_are_the_settings_used(command: Command, tiny: list[str]) -> None:
    outcome = command("mt-train", *tiny, "--print-config", "run.name=a${b}")
    assert outcome.code == 0
    shown = yaml.safe_load(outcome.out)
    assert (shown["model"]["d_model"], shown["run"]["name"]) == (16, "a${b}")


def test_an_option_between_settings(command: Command, tiny: list[str]) -> None:
    assert command("mt-train", *tiny[:3], "--print-config", *tiny[3:]).out


def test_a_line_of_100000_characters_is_counted(command: Command, tiny: list[str], corpus: Path) -> None:
    for language, line in (("xa", "a" * 100_000), ("xb", "b")):
        with (corpus / f"train.{language}").open("a") as stream:
            stream.write(line + "\n")
    outcome = command("mt-train", *tiny, "trainer.updates=2")
    assert outcome.code == 0
    assert "training text: 61 pairs, 60 kept, 1 left out: 1 over 2000 characters" in outcome.err


def test_a_resumed_run_leaves_the_same_weights(command: Command, begun: list[str], tmp_path: Path) -> None:
    """Through files and checksums: 5 updates and 2 more are 7, bit for bit, dropout on."""
    resumed = command("mt-train", *begun, "trainer.updates=7")
    assert "resuming from update 5" in resumed.err
    assert "training ends at update 7" in resumed.err
    assert command("mt-train", *begun, f"run.dir={tmp_path / 'straight'}", "trainer.updates=7").code == 0
    weights = [(tmp_path / name / "last" / "model.safetensors").read_bytes() for name in ("run", "straight")]
    assert weights[0] == weights[1]


def test_text_that_has_changed_is_no_text_to_go_on_with(command: Command, tiny: list[str], corpus: Path) -> None:
    assert command("mt-train", *tiny).code == 0
    root = corpus
    for language in ("xa", "xb"):
        with (root / f"train.{language}").open("a", encoding="utf-8") as stream:
            stream.write("pebble saddle\n")
    assert (
        "or what is held out of it, has changed since the run" in command("mt-train", *tiny, "trainer.updates=7").error
    )


def test_a_best_model_without_last_is_not_overwritten(command: Command, begun: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.rmtree(folder / "last")
    outcome = command("mt-train", *begun)
    assert outcome.code == 2
    assert "has best/ but no last/" in outcome.error


def test_two_processes_do_not_share_a_folder(command: Command, tiny: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    other = RunFolder(folder)
    other.claim({})
    outcome = command("mt-train", *tiny)
    other.release()
    assert outcome.code == 2
    assert "in use by another process" in outcome.error
    assert f"(pid {os.getpid()} on {socket.gethostname()}); wait, or choose another run.name" in outcome.error
    assert command("mt-train", *tiny).code == 0


def test_the_card_tells_how_it_was_trained_and_searched(command: Command, tiny: list[str], tmp_path: Path) -> None:
    assert command("mt-train", *tiny, "trainer.precision=bf16", "search.beam_size=3").code == 0
    folder = tmp_path / "run"
    assert "bf16" in (folder / "best" / "README.md").read_text(encoding="utf-8")
    assert json.loads((folder / "best" / "scores.json").read_text())["search"]["beam_size"] == 3


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals as on Unix")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_the_same_command_goes_on(
    command: Command, tiny: list[str], monkeypatch: pytest.MonkeyPatch, number: signal.Signals, code: int
) -> None:
    real, steps = Trainer._train_step, iter(range(1, 100))

    def interrupted(self: Trainer, window: Any) -> None:
        real(self, window)
        if next(steps) == 3:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(Trainer, "_train_step", interrupted)
    before = signal.signal(number, signal.SIG_DFL)  # in the background of a shell, SIGINT is ignored
    try:
        outcome = command("mt-train", *tiny)
    finally:
        signal.signal(number, before)
    assert outcome.code == code
    assert f"stopped by {number.name} at update 3" in outcome.err
    assert "resuming from update 3" in command("mt-train", *tiny).err


def test_sampling_reads_other_pieces(command: Command, tiny: list[str], tmp_path: Path) -> None:
    """Of the same words: more of them, for rarer pieces are shorter."""
    tokens = {}
    for rate in (0, 0.5):
        folder = tmp_path / str(rate)
        assert command("mt-train", *tiny, f"run.dir={folder}", f"batching.sampling={rate}").code == 0
        tokens[rate] = json.loads((folder / "last" / "state" / "state.json").read_text())["train"]["tokens"]
    assert tokens[0.5] > tokens[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kinds", "kept", "schedule"),
    [
        (["optimizer=muon", "scheduler=cosine", "scheduler.horizon=9"], "mean", CosineConfig(warmup=2, horizon=9)),
        (
            ["optimizer=adafactor", "scheduler=wsd", "scheduler.horizon=9", "scheduler.decay=3"],
            "row_var",
            WarmupStableDecayConfig(warmup=2, horizon=9, decay=3),
        ),
        (["optimizer=sgd", "scheduler=constant"], "momentum_buffer", ConstantConfig(warmup=2)),
        (["optimizer=adam", "scheduler=noam"], "exp_avg_sq", NoamConfig(warmup=2)),
    ],
    ids=str,
)
def test_every_kind_of_optimiser_and_schedule_trains_and_goes_on(
    command: Command, tiny: list[str], tmp_path: Path, kinds: list[str], kept: str, schedule: SchedulerConfig
) -> None:
    """kept: what the optimiser remembers of a weight, and the others do not."""
    arguments = [*tiny, *kinds, "trainer.log_every=1", "optimizer.lr=0.001"]
    assert command("mt-train", *arguments).code == 0
    outcome = command("mt-train", *arguments, "trainer.updates=7")
    assert (outcome.code, "resuming from update 5" in outcome.err) == (0, True)
    rates = [line["lr"] for line in RunFolder(tmp_path / "run").history() if "lr" in line]
    assert rates == pytest.approx([schedule.rate(update, 0.001) for update in range(1, 8)])
    remembered = load_file(tmp_path / "run" / "last" / "state" / "tensors.safetensors")
    assert any(name.endswith(f".{kept}") for name in remembered), sorted(remembered)[:9]
    saved = yaml.safe_load((tmp_path / "run" / "best" / "config.yaml").read_text(encoding="utf-8"))
    for kind in kinds[:2]:
        group, name = kind.split("=")
        assert saved[group]["name"] == name


def test_fp16_on_a_cpu_is_refused_before_anything_is_read(command: Command, tiny: list[str], tmp_path: Path) -> None:
    outcome = command("mt-train", *tiny, "trainer.precision=fp16")
    assert (outcome.code, "fp16 needs a CUDA device" in outcome.error) == (2, True)
    assert "training text" not in outcome.err


@pytest.mark.parametrize(("key", "kind"), [("corpus.train=[[a.txt,b.txt]]", "files"), ("corpus.path=x/y", "hub")])
def test_a_text_implies_the_kind_of_corpus(command: Command, key: str, kind: str) -> None:
    outcome = command("mt-train", "--print-config", key, "corpus.source=en", "corpus.target=de")
    assert outcome.code == 0
    corpus = yaml.safe_load(outcome.out)["corpus"]
    assert (corpus["name"], corpus["train"]) == (kind, [["a.txt", "b.txt"]] if kind == "files" else ["train"])


def test_a_run_of_an_older_version_goes_on(command: Command, begun: list[str], tmp_path: Path) -> None:
    """Settings, and a whole group, that have come since then have the defaults that it ran with."""
    path = tmp_path / "run" / "config.yaml"
    saved = yaml.safe_load(path.read_text(encoding="utf-8"))
    del saved["finetuning"], saved["trainer"]["ema"], saved["model"]["normalization"]
    path.write_text(yaml.safe_dump(saved), encoding="utf-8")
    assert command("mt-train", *begun, "trainer.updates=6").code == 0
    outcome = command("mt-train", *begun, "trainer.updates=6", "trainer.ema=0.9")
    assert (outcome.code, "trainer.ema (0.0, now 0.9)" in outcome.error) == (2, True)


def test_a_run_has_its_page(command: Command, tiny: list[str], tmp_path: Path) -> None:
    arguments = [setting for setting in tiny if not setting.startswith("report")]
    assert command("mt-train", *arguments).code == 0
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert page.count('<section class="card') == len(list((tmp_path / "run" / "shown").glob("*.json"))) > 0
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    (timed,) = [line for line in lines if "decoding_seconds" in line]
    assert (timed["test"], timed["sentences"]) == ("test", 8)
    row = re.findall(
        r"<td[^>]*><span>(.*?)</span></td>", page.partition('<th scope="row">')[2].partition("</tr>")[0], re.DOTALL
    )
    rate = 8 / timed["decoding_seconds"]
    assert row[-1] == (f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}")
    assert "seed:12345" not in page  # no intervals here, and no word of them
    assert "<dt>BLEU</dt><dd>nrefs:1|case:mixed" in page


@pytest.mark.slow
def test_batches_as_large_as_memory_has_room_for(
    command: Command, tiny: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """batching.tokens=auto: an update is as large as before, and a run that goes on cuts it up as it began."""
    run, room = tmp_path / "run", [10**6]
    monkeypatch.setattr(memory, "_can_try", lambda step: True)
    monkeypatch.setattr(TrainStep, "fits_in_memory", lambda step, batch: batch.positions <= room[0])
    monkeypatch.setattr("tolka.run.pipeline.check_memory", lambda *given: iter(()))
    fewer = [*tiny, "trainer.average=0", "batching.max_length=30", "scheduler.warmup=1", "trainer.updates=2"]
    several = [*fewer, "trainer.accumulate=3"]
    assert command("mt-train", *several, "batching.tokens=auto", f"run.dir={tmp_path / 'large'}").err.count(
        "an update of 1536 tokens goes in one batch (batching.tokens=auto)"
    )
    room[0] = 260
    outcome = command("mt-train", *several, "batching.tokens=auto")
    assert "an update of 1536 tokens goes in 12 batches of 128 (batching.tokens=auto)" in outcome.err
    room[0] = 10**6
    outcome = command("mt-train", *several, "batching.tokens=auto", "trainer.updates=3")
    assert outcome.code == 0
    assert "an update of 1536 tokens goes in 12 batches of 128 (batching.tokens=auto)" in outcome.err
    facts = json.loads((run / "last" / "state" / "state.json").read_text("utf-8"))
    assert facts["fit"] == {"batches": 12, "tokens": 128}
    assert facts["train"]["update"] == 3
    assert yaml.safe_load((run / "config.yaml").read_text("utf-8"))["batching"]["auto"] is True
    by_hand = [*fewer, "trainer.accumulate=12", "batching.tokens=128", "trainer.updates=3"]
    assert command("mt-train", *by_hand, f"run.dir={tmp_path / 'hand'}").code == 0
    weights = [folder / "last" / "model.safetensors" for folder in (run, tmp_path / "hand")]
    assert weights[0].read_bytes() == weights[1].read_bytes()


@pytest.mark.slow
def test_a_short_training_shrinks_the_default_warm_up_and_keeps_it_when_made_longer(
    command: Command, tiny: list[str], tmp_path: Path
) -> None:
    settings = [each for each in tiny if not each.startswith(("scheduler.", "trainer.updates"))]
    first = command("mt-train", *settings, "trainer.updates=20", "trainer.log_every=1")
    assert first.code == 0
    assert "note: shortened to fit into the training: scheduler.warmup=2 (not 400)" in first.err
    longer = command("mt-train", *settings, "trainer.updates=24", "trainer.log_every=1")
    assert longer.code == 0, longer.err
    assert "shortened" not in longer.err
    assert yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["scheduler"]["warmup"] == 2
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    rates = {line["update"]: line["lr"] for line in lines if "lr" in line}
    assert rates[24] / rates[2] == pytest.approx((2 / 24) ** 0.5)
    other = command("mt-train", *settings, "trainer.updates=24", "scheduler.warmup=3")
    assert "scheduler.warmup (2, now 3)" in other.error
    fewer = command("mt-train", *settings, "trainer.updates=1")
    assert fewer.code == 0, fewer.err
    assert "training ends at update 24: trainer.updates (1) are fewer than it has; for a new training" in fewer.err


def test_a_typed_warm_up_that_does_not_fit_is_refused_with_the_line_to_type(command: Command, tiny: list[str]) -> None:
    outcome = command("mt-train", *tiny, "trainer.updates=300", "scheduler.warmup=400")
    assert outcome.code == 2
    assert "type scheduler.warmup=30" in outcome.error


def test_a_log_has_a_line_every_few_updates(
    command: Command, tiny: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In train.log always; on stderr where it is no terminal, as a terminal has a bar."""
    outcome = command("mt-train", *tiny, "trainer.log_every=2")
    lines = [line for line in outcome.err.splitlines() if line.startswith("update ") and "tok/s" in line]
    assert [line.partition(":")[0] for line in lines] == ["update 2 of 5", "update 4 of 5"]
    assert re.fullmatch(
        r"update 2 of 5: nll \d\.\d{3}, \d+ tok/s, epoch \d, rate 0\.\d+, \d+\.\d min, \d+\.\d left", lines[0]
    )
    log = (tmp_path / "run" / "train.log").read_text()
    assert all(line in log for line in lines)
    monkeypatch.setattr("tolka.training.run_folder.shows_bars", lambda: True)
    outcome = command("mt-train", *tiny, "trainer.log_every=2", f"run.dir={tmp_path / 'on_a_terminal'}")
    assert "tok/s" not in outcome.err
    assert "update 4 of 5: nll" in (tmp_path / "on_a_terminal" / "train.log").read_text()


@pytest.mark.slow
def test_one_file_is_enough(command: Command, tiny: list[str], corpus: Path, tmp_path: Path) -> None:
    """Held-out sets are taken out of it, the run goes on with the same ones, and --check knows them."""
    lines = [(corpus / f"train.{language}").read_text("utf-8").splitlines() for language in ("xa", "xb")]
    table = tmp_path / "one.tsv"
    table.write_text("xa\txb\n" + "".join(f"{a}\t{b}\n" for a, b in zip(*lines, strict=True)), encoding="utf-8")
    own = [setting for setting in tiny if not setting.startswith(("corpus.train", "corpus.valid", "corpus.test"))]
    outcome = command("mt-train", *own, f"corpus.train={table}")
    assert outcome.code == 2
    assert "or have pairs of the training text set aside: corpus.valid=auto" in outcome.error
    arguments = [*own, f"corpus.train={table}", "corpus.valid=auto", "corpus.test=0.1"]
    outcome = command("mt-train", *arguments)
    assert outcome.code == 0, outcome.err
    (folder,) = (tmp_path / "prepared").glob("held-out-*")
    assert "set aside from the training text: 6 pairs (corpus.valid=auto), " in outcome.err
    assert f"(corpus.test=0.1): {folder}" in outcome.err
    held_out = {line for name in ("valid", "test") for line in (folder / f"{name}.xa").read_text("utf-8").splitlines()}
    kept = sum(source not in held_out for source in lines[0])
    assert f"60 pairs, {kept} kept, {60 - kept} left out: {60 - kept} set aside" in outcome.err
    again = command("mt-train", *arguments, "trainer.updates=7")
    assert again.code == 0, again.err
    assert "resuming from update 5" in again.err
    checked = command("mt-train", "--check", "--json", *arguments)
    found = json.loads(checked.out)
    assert (found["kept"]["kept"], found["kept"]["dropped"]) == (kept, {"set aside": 60 - kept})
    assert [found["leaks"][kind]["sources"] for kind in ("valid", "test")] == [0, 0]
    with table.open("ab") as stream:
        stream.write(b"caf\xe9\tx\n")
    checked = command("mt-train", "--check", *arguments)
    assert checked.code == 0
    assert "this text cannot be trained on yet: " in checked.err
    assert "line not UTF-8" in checked.err


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="permissions as on Unix")
@pytest.mark.parametrize("mask", [0o027])
def test_permissions_are_those_that_the_umask_gives(
    command: Command, tiny: list[str], tmp_path: Path, mask: int
) -> None:
    """Trained by one user, a model can be served by another of the group."""
    shown = [
        "report.page=true",
        "trainer.keep_every=5",
        "trainer.average=2",
        "trainer.validate_every=2",
    ]
    before = os.umask(mask)
    try:
        assert command("mt-train", *tiny, *shown).code == 0
        assert (
            command(
                "mt-translate", tmp_path / "run", tmp_path / "corpus" / "test.xa", "-o", tmp_path / "run" / "out"
            ).code
            == 0
        )
    finally:
        os.umask(before)
    for folder in (tmp_path / "run", tmp_path / "prepared"):
        for path in (folder, *folder.rglob("*")):
            expected = (0o777 if path.is_dir() else 0o666) & ~mask
            assert path.stat().st_mode & 0o7777 == expected, path


def test_a_run_whose_folder_is_deleted_ends_and_leaves_nothing(
    command: Command, tiny: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It came back with the last lines of metrics.jsonl alone."""
    real, steps = Trainer._train_step, iter(range(1, 100))

    def deleted(self: Trainer, window: Any) -> Any:
        if next(steps) == 3:
            shutil.rmtree(tmp_path / "run")
        return real(self, window)

    monkeypatch.setattr(Trainer, "_train_step", deleted)
    outcome = command("mt-train", *tiny, "trainer.log_every=1")
    assert outcome.code == 1
    assert "was deleted or moved during the training, which ends" in outcome.error
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="limits as on Unix")
@pytest.mark.parametrize(("limit", "named"), [(1000, "run/config.yaml"), (4000, "prepared/"), (12_000, "run/best")])
def test_what_a_full_disk_has_no_room_for_is_named(
    command: Command, tiny: list[str], tmp_path: Path, limit: int, named: str
) -> None:
    """A limit on the size of a file stands for it: its error has no name either."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        outcome = command("mt-train", *tiny)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert outcome.code == 1
    assert str(tmp_path / named) in outcome.error
    assert "input or output" not in outcome.error


@pytest.mark.slow
def test_a_command_chooses_the_best_model(command: Command, tiny: list[str], tmp_path: Path) -> None:
    """It is asked in each validation, with the sources; here it likes the first model most, and says how many came."""
    counter = tmp_path / "count"
    script = f"echo x >> {counter}; awk -v n=$(wc -l < {counter}) '{{print 1 / n}}' {{source}} # {{hypothesis}} "
    script += "{reference}"
    done = command("mt-train", *tiny, "trainer.metric=command", f"metrics.command={script}")
    assert done.code == 0, done.err
    scores = json.loads((tmp_path / "run" / "best" / "scores.json").read_text())
    assert scores["validation"]["command"] == 0.5  # it was tried on two lines before the training
    assert f"how:{without_folders(script)}" in scores["signatures"]["command"]
    assert scores["test"]["test"]["metrics"][-1]["name"] == "command"
    assert ", command 0.50 (" in done.err
    failing = command(
        "mt-train", *tiny, f"run.dir={tmp_path / 'other'}", "metrics.command=exit 3 # {hypothesis} {reference}"
    )
    assert failing.error == "metrics.command ended with 3: it said nothing"
    assert not (tmp_path / "other" / "best").exists()
    lacking = command("mt-train", *tiny, "trainer.metric=command")
    assert lacking.error.startswith("trainer.metric=command needs metrics.command")
