"""trainer.compile: the same model, layer by layer a program of its own."""

from pathlib import Path
from typing import Any

import pytest
import torch
from trainer_bench import Bench

from tolka.config.command_line import train_config
from tolka.data.batch import collate
from tolka.errors import ConfigError
from tolka.model_directory.upgrade import upgrade_config
from tolka.models.rnn.config import RnnConfig
from tolka.models.transformer.config import TransformerConfig
from tolka.models.transformer.model import Transformer
from tolka.training import compilation
from tolka.training.compilation import compile_layers, compile_now

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")  # torch's own
BATCHES = [
    collate([[4, 5, 6, 7, 8], [9], [5, 4]], [[8, 7], [10, 9, 4, 5, 11, 6], [4]]),
    collate([[4, 5, 6, 7, 8, 4], [9, 4], [5, 4], [9, 8, 7]], [[8, 7], [10, 9, 4, 5, 11], [4], [6, 6]]),
    collate([[4, 5], [9, 8]], [[8, 7, 6], [10, 9, 5]]),  # nothing is padding
]


def made(**options: Any) -> Transformer:
    torch.manual_seed(0)
    return TransformerConfig(**{"d_model": 16, "heads": 2, "layers": 2, **options}).build(12, 12, True)


@pytest.mark.parametrize(
    "options",
    [
        {"layers": 1},
        pytest.param({"norm": "post", "normalization": "rmsnorm", "activation": "swiglu"}, marks=pytest.mark.slow),
        pytest.param({"positions": "rotary"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_compiled_model_is_the_model(options: dict[str, Any]) -> None:
    """Traced, but not made into machine code, which takes a compiler and a minute: see the slow test."""
    plain, compiled = made(dropout=0.0, **options), made(dropout=0.0, **options)
    compiled.compile_layers(backend="eager")
    for batch in BATCHES:
        found, expected = compiled(batch), plain(batch)
        torch.testing.assert_close(found, expected)
        gradients = [
            torch.autograd.grad((x**2).sum(), list(m.parameters())) for x, m in ((found, compiled), (expected, plain))
        ]
        for one, other in zip(*gradients, strict=True):
            torch.testing.assert_close(one, other)
    assert list(compiled.state_dict()) == list(plain.state_dict())


def test_what_is_drawn_in_a_compiled_layer_is_dropped_and_kept_in_the_mean() -> None:
    model = made(dropout=0.5, layers=1).train()
    model.compile_layers(backend="eager")
    one, other = model(BATCHES[0]), model(BATCHES[0])
    assert not torch.equal(one, other)
    assert torch.equal(model.eval()(BATCHES[0]), model(BATCHES[0]))


def test_a_machine_without_a_compiler_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_given: Any, **_options: Any) -> Any:
        raise RuntimeError("no working C++ compiler\nand more of it")

    monkeypatch.setattr(torch, "compile", broken)
    message = (
        r"trainer.compile=default: torch.compile does not work .*\(RuntimeError: no working C\+\+ compiler\); leave"
    )
    with pytest.raises(ConfigError, match=message):
        compile_layers(made(), torch.device("cpu"), "default")


def test_a_recurrent_model_has_no_layers_to_compile(tiny: list[str]) -> None:
    assert train_config([*tiny, "trainer.compile=default"]).trainer.compile == "default"
    with pytest.raises(ConfigError, match=r"trainer\.compile .* a recurrent model runs in one kernel a layer"):
        train_config(["model=lstm", "trainer.compile=default"])
    with pytest.raises(ConfigError, match="Rnn has no layers to compile"):
        RnnConfig().build(9, 9, True).compile_layers()


def test_the_settings_that_it_replaces_are_read_and_named(tiny: list[str]) -> None:
    """Of a run that an earlier version saved, and of a user who types them."""
    for compiled, graphs, now in ((False, False, "off"), (True, False, "default"), (False, True, "default")):
        saved = {"trainer": {"compile": compiled, "cuda_graphs": graphs, "updates": 3}}
        assert upgrade_config(saved) == {"trainer": {"compile": now, "updates": 3}}
    with pytest.raises(ConfigError, match=r"trainer\.cuda_graphs is gone; in its place: trainer\.compile=default"):
        train_config([*tiny, "trainer.cuda_graphs=true"])
    assert upgrade_config({"trainer": {"compile": "reduce-overhead"}}) == {"trainer": {"compile": "default"}}
    with pytest.raises(ConfigError, match=r"compile=reduce-overhead is gone; in its place: trainer\.compile=default"):
        train_config([*tiny, "trainer.compile=reduce-overhead"])


def test_compiling_ahead_leaves_no_trace(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    before = torch.get_rng_state()
    assert compile_now(bench.trainer.step, bench.trainer.loader.largest()) >= 0.0
    assert torch.equal(torch.get_rng_state(), before)
    assert all(weight.grad is None for weight in bench.model.parameters())


@pytest.mark.slow
def test_machine_code_computes_the_same() -> None:
    plain, compiled = made(dropout=0.0), made(dropout=0.0)
    compilation.compile_layers(compiled, torch.device("cpu"), "default")
    for batch in BATCHES:
        found, expected = compiled(batch), plain(batch)
        torch.testing.assert_close(found, expected)
