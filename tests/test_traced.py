"""Functions of tensors that run without Python."""

import copy
import threading

import pytest
import torch
from torch import Tensor, nn

from tolka import traced
from tolka.runtime import is_out_of_memory
from tolka.traced import Traced, by_numbers, scripted, sized


def halved_if_many(x: Tensor, most: int) -> Tensor:
    return x / 2 if x.size(0) > most else x


class Shifted(nn.Module):
    """Counts how often it runs in Python."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.ran = 0

    def forward(self, x: Tensor, places: Tensor, more: Tensor | None) -> Tensor:
        self.ran += 1
        x = by_numbers(halved_if_many)(x, 3) + self.weight + places.size(0)
        return x if more is None else x + more


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced, "_COMES_AGAIN", 3)


def call(function: Traced, rows: int, place: int, more: float | None = None) -> float:
    x = torch.zeros(rows)
    result = function(x + 8, sized(place, x), None if more is None else torch.tensor(more))
    return float(result[0])


@torch.inference_mode()
def test_numbers_and_what_is_left_out_are_asked_for_at_each_call() -> None:
    module = Shifted()
    function = Traced(module)
    for rows, place in [(1, 0), (2, 5), (9, 1), (3, 2), (4, 0), (9, 7)]:
        size = 4 if rows > 3 else 8
        assert call(function, rows, place) == size + 1 + place
        assert call(function, rows, place, 0.5) == size + 1.5 + place
    ran = module.ran
    assert ran < 12, "traced"
    call(function, 5, 3)
    assert module.ran == ran


def test_with_a_gradient_python_runs() -> None:
    module = Shifted()
    function = Traced(module)
    with torch.inference_mode():
        for _ in range(9):
            call(function, 2, 0)
    assert module.ran < 9, "traced"
    module.ran = 0
    for _ in range(9):
        function(torch.zeros(2), torch.zeros(0), None).sum().backward()
    assert module.ran == 9
    assert module.weight.grad is not None


@torch.inference_mode()
def test_a_copy_is_traced_anew() -> None:
    function = Traced(Shifted())
    for _ in range(9):
        call(function, 1, 0)
    other = copy.deepcopy(function)
    other.module.get_parameter("weight").fill_(3.0)
    assert [call(other, 1, 0) for _ in range(9)] == [11.0] * 9
    assert call(function, 1, 0) == 9.0


def test_threads_have_one_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    function, found, made = Traced(Shifted()), list[float](), list[object]()
    trace = torch.jit.trace
    monkeypatch.setattr(torch.jit, "trace", lambda *given, **options: made.append(0) or trace(*given, **options))  # type: ignore[func-returns-value]

    @torch.inference_mode()
    def work() -> None:
        found.extend(call(function, 1, place) for place in range(50))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(4 * [9.0 + place for place in range(50)])
    assert len(made) == 1


def test_a_script_decides_as_python_does(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = list[object]()
    script = torch.jit.script
    monkeypatch.setattr(torch.jit, "script", lambda function: compiled.append(function) or script(function))  # type: ignore[func-returns-value]

    def doubled_if_few(x: Tensor, most: int) -> Tensor:
        return x * 2 if x.size(0) < most else x

    function = scripted(doubled_if_few)
    for _ in range(9):  # with a gradient
        assert function(torch.ones(2), 3).tolist() == [2.0, 2.0]
    assert not compiled
    with torch.inference_mode():
        for size in range(1, 9):
            assert torch.equal(function(torch.ones(size), 4), doubled_if_few(torch.ones(size), 4))
    assert len(compiled) == 1


class Sorry(nn.Module):
    """Gives what no trace can give."""

    def forward(self, x: Tensor) -> object:
        return {"found": [x, None]}


def test_what_torch_cannot_do_python_does() -> None:
    def fewest(x: Tensor, *others: int) -> Tensor:  # of no fixed number of inputs
        return x[:1]

    function, least = Traced(Sorry()), scripted(fewest)
    with torch.inference_mode():
        for _ in range(9):
            assert float(function(torch.ones(1))["found"][0]) == 1.0
            assert least(torch.ones(4), 1, 2).shape == (1,)


def test_a_full_memory_is_known_for_what_it_is() -> None:
    class Grown(nn.Module):
        def forward(self, x: Tensor, rows: Tensor) -> Tensor:
            return x.expand(rows.size(0), -1).contiguous()

    function, x = Traced(Grown()), torch.zeros(1, 2**20)
    with torch.inference_mode():
        for _ in range(5):
            assert function(x, sized(2, x)).shape == (2, 2**20)
        with pytest.raises(RuntimeError) as failed:
            function(x, sized(2**40, x))
    assert function._traces
    assert is_out_of_memory(failed.value)


def test_a_python_that_torch_s_scripts_are_not_for_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced, "_LAST_PYTHON", (3, 10))
    module = Shifted()
    function = Traced(module)
    with torch.inference_mode():
        for _ in range(9):
            assert call(function, 1, 0) == 9.0
    assert module.ran == 9
