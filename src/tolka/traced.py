"""Functions of tensors that run without Python, by torch.jit.

Between two operations Python takes its lock, for which batches that are translated side by side wait; and it keeps
what is no longer needed until a function ends, so that there is always new memory to be had.
"""

import copy
import functools
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn

# Calls in Python before: to make a layer's trace and to run it for the first time takes 35 ms, which are saved again
# after some hundred calls.
_COMES_AGAIN = 160
_LAST_PYTHON = (3, 13)  # that torch.jit knows
_MAKING = threading.RLock()  # one at a time: filters of warnings are the process'
Function = TypeVar("Function", bound=Callable[..., Any])


def _can() -> bool:
    """Whether it is of use now, with this torch and this Python."""
    return sys.version_info[:2] <= _LAST_PYTHON and hasattr(torch.jit, "freeze") and not torch.is_grad_enabled()


class Traced:
    """A module that maps tensors, some of which may be None, to tensors, traced when it has been called some times; of
    a model whose weights no longer change.

    It must decide nothing by sizes or numbers, as the trace would always decide so, but in `by_numbers`. A number that
    differs between calls is handed over as the size of a tensor (`sized`), which a trace asks for anew.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self._calls = 0
        self._traces: dict[tuple[bool, ...], Callable[..., Any]] = {}

    def __deepcopy__(self, known: dict[int, Any]) -> "Traced":
        """Of a copy of the module, to be traced anew."""
        return Traced(copy.deepcopy(self.module, known))

    def __call__(self, *inputs: Tensor | None) -> Any:
        """What the module gives."""
        given = tuple(part is not None for part in inputs)
        trace = self._trace(inputs, given) if _can() else None
        return self.module(*inputs) if trace is None else trace(*(part for part in inputs if part is not None))

    def _trace(self, inputs: tuple[Tensor | None, ...], given: tuple[bool, ...]) -> Callable[..., Any] | None:
        if given not in self._traces:
            self._calls += 1
            if self._calls <= _COMES_AGAIN or not _MAKING.acquire(blocking=False):
                return None
            try:
                if given not in self._traces:
                    self._traces[given] = _traced(self.module, inputs, given)
            except RuntimeError:  # Python may do better, or say what is wrong
                self._calls = 0
            finally:
                _MAKING.release()
        return self._traces.get(given)


def sized(number: int, like: Tensor) -> Tensor:
    """A tensor without numbers whose size(0) is `number`."""
    return like.new_empty(number, 0)


def scripted(function: Function) -> Function:
    """A function in the language of torch.jit.script, which may decide by sizes and numbers: on a CPU compiled when it
    has been called some times. Its first argument is a tensor."""
    calls = 0

    @functools.wraps(function)
    def call(first: Tensor, *others: Any) -> Any:
        nonlocal calls
        calls += 1
        compiled = calls > _COMES_AGAIN and first.device.type == "cpu" and _can()
        return (_script(function) if compiled else function)(first, *others)

    return cast(Function, call)


def by_numbers(function: Function) -> Function:
    """A function in the same language: itself, or while a trace is made, compiled, so that it decides at each call."""
    return _script(function) if is_traced() else function


def is_traced() -> bool:
    """Whether a trace is being made."""
    return bool(torch.jit.is_tracing())  # type: ignore[attr-defined,no-untyped-call]


@functools.cache
def _script(function: Function) -> Function:
    """Compiled; as it is where torch cannot."""
    with _MAKING, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch means to drop this some day
        try:
            made: Function = torch.jit.script(function)
        except Exception:  # of many kinds, none of which a user could do anything about
            return function
    return made


def _traced(module: nn.Module, inputs: tuple[Any, ...], given: tuple[bool, ...]) -> Callable[..., Any]:
    """Of those inputs that are given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same, and of sizes that are compared
        there = tuple(part for part in inputs if part is not None)
        made = torch.jit.trace(_Given(module, given).eval(), there, check_trace=False)  # type: ignore[no-untyped-call]
        frozen: Callable[..., Any] = torch.jit.freeze(made)
    return frozen


class _Given(nn.Module):
    """A module of those inputs that are not None."""

    def __init__(self, module: nn.Module, given: tuple[bool, ...]) -> None:
        super().__init__()
        self.module = module
        self.given = given

    def forward(self, *inputs: Any) -> Any:
        left = iter(inputs)
        return self.module(*(next(left) if there else None for there in self.given))
