"""benchmarks: its settings are settings still, its configurations are YAML, its logs are read right."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

BENCH = str(Path(__file__).parents[2] / "benchmarks")


@pytest.fixture(autouse=True)
def on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCH)


def test_the_work_of_a_token_by_hand(tmp_path: Path) -> None:
    from work import Work, flop_per_target_token

    (tmp_path / "done.json").write_text(json.dumps({"train.en": 50, "train.de": 100}))
    per_source = 3 * (4 * 256**2 + 2 * 256 * 1024 + 2 * 256**2)
    per_target = 3 * (6 * 256**2 + 2 * 256 * 1024) + 256 * 8000
    assert flop_per_target_token(Work(tmp_path)) == 6 * (0.5 * per_source + per_target)
    lstm = 4 * 2 * 256**2  # the attention's matrix for the source, and the two that read out
    assert flop_per_target_token(Work(tmp_path), "lstm") == 6 * (0.5 * (lstm + 256**2) + lstm + 2 * 256**2 + 256 * 8000)


def test_lines_to_score_are_as_many_as_asked_for_and_never_the_same_twice(tmp_path: Path) -> None:
    from scoring_speed import write_lines

    text = tmp_path / "text"
    text.write_text("".join(f"{' '.join(f'w{i}x{j}' for j in range(40))}\n" for i in range(5)), encoding="utf-8")
    a, b, reference = (path.read_text("utf-8").splitlines() for path in write_lines(text, tmp_path, 12, replaced=0.5))
    assert reference[:5] == text.read_text("utf-8").splitlines()
    assert len(a) == len(b) == len(set(reference)) == 12
    words = zip(" ".join(a).split(), " ".join(reference).split(), strict=True)
    assert 0.4 < sum(mine == its for mine, its in words) / (12 * 40) < 0.6


@pytest.mark.parametrize("name", ["opennmt-py", "eole", "joeynmt"])
def test_toolkits_are_given_yaml(tmp_path: Path, name: str) -> None:
    from toolkits import TOOLKITS
    from work import Work

    (tmp_path / "pieces.txt").write_text("▁a\n▁b\n", encoding="utf-8")
    command = TOOLKITS[name][0](Work(tmp_path), tmp_path, 40, 10)
    assert str(tmp_path / "config.yaml") in command
    config = yaml.safe_load((tmp_path / "config.yaml").read_text("utf-8"))
    assert "1024" in json.dumps(config)


@pytest.mark.parametrize(
    ("name", "line", "rate"),
    [
        (
            "opennmt-py",
            "[2026-11-22 15:00:00,1 INFO] Step 20/   40; acc: 10.1; ppl: 812.4; xent: 6.7; lr: 0.00005; sents:   5720; "
            "bsz: 3388/3915/286; 2263/2614 tok/s;     30 sec;",
            2614.0,
        ),
        ("joeynmt", "Epoch   1, Step:       20, Batch Loss: 6.1, Tokens per Sec:      512, Lr: 0.00005", 512.0),
    ],
)
def test_logs_are_read(name: str, line: str, rate: float) -> None:
    from toolkits import TOOLKITS

    found = TOOLKITS[name][1].search(line)
    assert found is not None
    assert float(found["rate"]) == rate


def test_tolka_s_settings_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And its sizes are those of all."""
    from tolka.config.command_line import train_config
    from work import GATES, HEADS, LAYERS

    monkeypatch.setattr(sys, "argv", ["tolka_train.py"])
    from tolka_train import settings

    for family in GATES:
        model = train_config(settings(tmp_path, tmp_path / "run", family)).as_dict()["model"]
        assert (model["cell"], model["d_model"], model["attention"]) == (family, 256, "general")
    model = train_config(settings(tmp_path, tmp_path / "run")).as_dict()["model"]
    assert (model["layers"], model["heads"], model["d_ff"]) == (LAYERS, HEADS, 1024)


def test_the_tables() -> None:
    import decoding_speed
    import training_speed

    found = {
        "tolka": training_speed.Measured([3000.0, 3200.0, 3100.0], 1.234, [4.0], [48.0]),
        "plain": training_speed.Measured([1550.0], 2.0, [], [80.0]),
    }
    lines = training_speed.table(found, "fp32", 200.0, 44.8e6, 40).splitlines()
    assert lines[-2] == "| tolka | 3100 (3000 to 3200) | 1.00 | 69% | 1.23 GB | 4.0 s | 48 s |"
    assert lines[-1] == "| plain | 1550 (1550 to 1550) | 0.50 | 35% | 2.00 GB |  | 80 s |"
    greedy = {
        "tolka fp32": decoding_speed.Decoded([2.0, 1.0, 4.0], [0.5, 0.8, 1.0], [5.0], 1000, 14000),
        "other": decoding_speed.Decoded([4.0], [3.2], [8.0], 1000, 15000),
    }
    lines = decoding_speed.table({name: {1: one, 5: one} for name, one in greedy.items()}).splitlines()
    assert lines[2] == "| tolka fp32 | 1 | 500 | 1.00 | 7000 | 1250 | 1.00 | 200 | 14.0 |"
    assert lines[3] == "| other | 1 | 250 | 0.50 | 3750 | 312 | 0.25 | 125 | 15.0 |"
    assert len(lines) == 6


def test_programs_are_those_with_a_python() -> None:
    import decoding_speed

    found = decoding_speed.programs({"tolka": "python", "ctranslate2": "other", "plain": "python"})
    theirs = [
        f"ctranslate2 {kind}{at_once}" for kind in ("float32", "int8") for at_once in ("", ", two batches at once")
    ]
    assert list(found) == ["tolka fp32", "tolka int8", *theirs]
    assert all((Path(BENCH) / program.script).is_file() for program in found.values())


def test_made_up_text_is_parallel_and_the_same_again(tmp_path: Path) -> None:
    import made_up

    for folder in ("a", "b"):
        made_up.write(tmp_path / folder)
    texts = {name: (tmp_path / name).read_text("utf-8") for name in ("a/train.en", "a/train.de", "b/train.en")}
    assert texts["a/train.en"] == texts["b/train.en"]
    source, target = (texts[f"a/train.{code}"].splitlines() for code in ("en", "de"))
    assert len(source) == len(target) == made_up.PAIRS["train"]
    assert all(len(one.split()) == len(other.split()) for one, other in zip(source, target, strict=True))


@pytest.mark.slow
def test_decoding_is_measured_and_weights_come_under_known_names(trained: Path, tmp_path: Path) -> None:
    """tolka's own script, from its command line to its figures; and what the others' layers would be given."""
    import subprocess

    from weights import Weights

    (tmp_path / "test.en").write_text("ferry\nkettle\n", encoding="utf-8")
    script = [sys.executable, str(Path(BENCH) / "decode_tolka.py"), str(trained / "best"), str(tmp_path / "test.en")]
    command = [*script, str(tmp_path / "out"), "1", "1", "decoding.precision=int8"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["sentences"] == 2
    assert facts["seconds"] > 0
    assert facts["later"] > facts["again"] > 0, "more than one pass after the first"
    assert len((tmp_path / "out").read_text("utf-8").splitlines()) == 2
    weights = Weights(trained / "best")
    query, bias = weights.pair("decoder.0.attention.query_key_value", 0, 3)
    assert query.shape == (weights.width, weights.width)
    assert bias.shape == (weights.width,)
    assert weights.positions().shape[1] == weights.width


def test_quality_s_variants_take_the_place_of_what_they_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    import torch.nn.functional as F

    import quality
    from tolka.kernels import attention
    from tolka.kernels import matmul as products
    from tolka.nn import dropout
    from tolka.optim.optimizers import of_torch as optim

    replaced = (dropout, "dropout"), (attention, "dropout"), (attention, "suits_short"), (optim, "AdamW")
    for module, name in (*replaced, (products, "onednn_is_faster")):
        monkeypatch.setattr(module, name, getattr(module, name))  # put back at the end
    x = torch.ones(50, 50)
    for same in (False, True):
        torch.manual_seed(1)
        found = dropout.Dropout(0.3).train()(x)
        torch.manual_seed(1)
        assert torch.equal(found, F.dropout(x, 0.3)) is same
        quality.VARIANTS["torch-dropout"][1]()
    for name in ("torch-optimizer", "torch-products", "torch-attention-bf16"):
        quality.VARIANTS[name][1]()
    assert not products.onednn_is_faster()
    suits_short: Any = vars(attention)["suits_short"]
    assert not suits_short(x[None, None].requires_grad_(), x[None, None])
    optimizer = optim.AdamWConfig().build(torch.nn.Linear(3, 3))
    assert not optimizer.defaults["fused"]


@pytest.mark.slow
def test_the_gpu_s_measurements_can_be_tried_on_a_cpu_and_are_gone_on_with(tmp_path: Path) -> None:
    import subprocess

    def call(*tasks: str) -> str:
        command = [sys.executable, f"{BENCH}/gpu.py", str(tmp_path), "--device", "cpu"]
        only = [part for task in tasks for part in ("--only", task)]
        return subprocess.run([*command, *only], capture_output=True, text=True, check=True).stdout

    said = call("limits", "waits", "mt-train:toy", "training:toy", "decoding:toy:fp32:5")
    assert "training:toy (" in said
    again = call("training:toy", "decoding:toy:fp32:5")
    assert "training:toy (" not in again  # measured before
    table = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert "| decoding:toy:fp32:5 |" in table
    assert "limits: {" in table


def test_the_cost_of_a_token_on_a_gpu_by_hand() -> None:
    from gpu_tasks import cost
    from tolka.models.transformer import TransformerConfig

    d, f, v = 16, 40, 50
    model = TransformerConfig(d_model=d, heads=2, layers=2, decoder_layers=3, d_ff=f).build(v, v, True)
    found = cost(model)
    assert found.source == 6 * (2 * (4 * d * d + 2 * d * f) + 3 * 2 * d * d)
    assert found.target == 6 * (3 * (6 * d * d + 2 * d * f) + v * d)
