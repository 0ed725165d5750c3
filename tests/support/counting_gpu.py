"""A GPU that only counts: tensors with data on the CPU that say they are on cuda:0, for tests and for figures.

    with counting_gpu() as work:
        device = torch.device("cuda")
        ...                                # whatever trains or translates
    print(work.launches.total(), work.waits)

What is counted is what a GPU would do, as far as torch's own source tells it: an operation is one launch; a view, an
allocation or a dtype's question is none; a foreach operation is as many as its multi-tensor kernel needs; dropout and
attention are CUDA's fused kernels, and autocast follows CUDA's lists. A wait is whatever makes the host wait for the
device. Tensors of the CPU and of the GPU that meet raise RuntimeError, as they would. Results are the CPU's.
"""

import contextlib
import itertools
import traceback
import types
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

CUDA = torch.device("cuda", 0)
# Operations that torch does not call views and that launch nothing.
_NO_LAUNCH = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "_unsafe_view"}
_NO_LAUNCH |= {"_local_scalar_dense", "is_same_size", "resize_", "set_", "_pack_padded_sequence"}
# The size of their result depends on the data.
_SIZED_BY_DATA = {"nonzero", "masked_select", "_unique2", "unique_consecutive", "unique_dim", "repeat_interleave"}
_INDEXED = {"index", "index_put", "index_put_", "_unsafe_index", "_index_put_impl_"}
# Arguments may be on either side.
_MIXED = {"copy_", "_to_copy", "_pack_padded_sequence", "_pad_packed_sequence", "_foreach_copy_"}
# What CUDA's autocast computes in fp32 (torch/csrc/autocast_mode.h: AT_FORALL_FP32).
_IN_FP32 = {"layer_norm", "rms_norm", "softmax", "log_softmax", "exp", "log", "norm", "cumsum", "sum", "logsumexp"}
_IN_FP32 |= {"pow", "rsqrt", "nll_loss", "cross_entropy", "prod", "reciprocal"}
# Tensors in a launch of multi_tensor_apply, by the number of lists (aten/src/ATen/native/cuda/MultiTensorApply.cuh).
_TENSORS_A_LAUNCH = {1: 110, 2: 64, 3: 48, 4: 36, 5: 30}
_BLOCKS_A_LAUNCH, _BLOCK = 320, 65536


@dataclass
class Work:
    """What the device was made to do: counts by operation, and by the line of tolka that a wait or copy is in."""

    launches: Counter[str] = field(default_factory=Counter)
    waits: Counter[str] = field(default_factory=Counter)
    copies: Counter[str] = field(default_factory=Counter)  # from the host; those that are not asynchronous wait, too

    def forget(self) -> None:
        """Begin to count anew."""
        for counts in (self.launches, self.waits, self.copies):
            counts.clear()


_work = Work()


def _line() -> str:
    """The innermost line of tolka, or else of whatever calls."""
    frames = [each for each in traceback.extract_stack() if "counting_gpu" not in each.filename]
    own = [each for each in frames if "/tolka/" in each.filename] or frames
    return f"{own[-1].filename.rpartition('/')[2]}:{own[-1].lineno}"


class GpuTensor(Tensor):
    """A tensor that says it is on cuda:0."""

    data_on_cpu: Tensor

    @staticmethod
    def __new__(cls, data: Tensor) -> "GpuTensor":
        # Of the CPU for autograd, which would otherwise ask CUDA for its streams.
        made: GpuTensor = Tensor._make_wrapper_subclass(
            cls, data.size(), strides=data.stride(), storage_offset=data.storage_offset(), dtype=data.dtype
        )
        made.data_on_cpu = data
        return made

    device = property(lambda self: CUDA)
    is_cuda = property(lambda self: True)
    is_cpu = property(lambda self: False)

    def __repr__(self) -> str:  # type: ignore[override]
        return f"GpuTensor({self.data_on_cpu})"

    def data_ptr(self) -> int:
        return self.data_on_cpu.data_ptr()

    def __deepcopy__(self, memo: dict[int, Any]) -> "GpuTensor":
        if id(self) not in memo:
            made: Any = GpuTensor(self.data_on_cpu.detach().clone())
            is_parameter = isinstance(self, torch.nn.Parameter) or getattr(self, "_is_param", False)
            memo[id(self)] = torch.nn.Parameter(made, self.requires_grad) if is_parameter else made
        copied: GpuTensor = memo[id(self)]
        return copied

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs, name = dict(kwargs or {}), func.overloadpacket.__name__
        tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        of_gpu = [each for each in tensors if isinstance(each, GpuTensor)]
        of_cpu = [each for each in tensors if not isinstance(each, GpuTensor) and each.dim()]
        if name in _INDEXED and isinstance(args[0], GpuTensor):
            # torch takes indices of the CPU, and copies them.
            for counts in (_work.copies, _work.waits):
                counts.update([f"index from the host, {_line()}"] * len(of_cpu))
            of_cpu = []
        if of_gpu and of_cpu and name not in _MIXED:
            shapes = [tuple(each.shape) for each in of_cpu]
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but {name} found {shapes} on cpu, too ({_line()})"
            )
        _count(func, name, args)
        if "device" in kwargs:
            kwargs["device"] = torch.device("cpu")
        if name == "_conj":  # as a view it would have a bit that no wrapper has
            func = torch.ops.aten.conj_physical.default
        if name.startswith("_flash_attention"):
            func = _flash_forward if name == "_flash_attention_forward" else _flash_backward
        out = func(*tree_map(_data, args), **tree_map(_data, kwargs))
        wrappers = {id(each.data_on_cpu): each for each in of_gpu}
        if name == "_pack_padded_sequence":  # the batch sizes stay on the CPU
            return GpuTensor(out[0]), out[1]
        if name.endswith("_") and isinstance(args[0], Tensor):
            return args[0]  # in place

        def wrap(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            return wrappers[id(value)] if id(value) in wrappers else GpuTensor(value)

        return tree_map(wrap, out)


def _data(value: Any) -> Any:
    return value.data_on_cpu if isinstance(value, GpuTensor) else value


def _count(func: Any, name: str, args: Any) -> None:
    """Count an operation."""
    if name == "_local_scalar_dense":
        _work.waits[f"item, {_line()}"] += 1
    elif name in _SIZED_BY_DATA:
        _work.waits[f"{name}, {_line()}"] += 1
    elif name in _INDEXED and any(i is not None and i.dtype in (torch.bool, torch.uint8) for i in args[1]):
        _work.waits[f"mask as index, {_line()}"] += 1
    elif name == "copy_" and isinstance(args[0], GpuTensor) != isinstance(args[1], GpuTensor):
        (_work.copies if isinstance(args[0], GpuTensor) else _work.waits)[f"copy_, {_line()}"] += 1
    if name.startswith(("_foreach", "_amp_foreach", "_fused")):
        _work.launches[name] += _multi_tensor_launches(args)
    elif not func.is_view and name not in _NO_LAUNCH:
        _work.launches[name] += 3 if name == "_flash_attention_backward" else 1


def _multi_tensor_launches(args: Any) -> int:
    """Launches of one foreach operation: each takes so many tensors, and so many blocks of their values."""
    lists = [each for each in args if isinstance(each, list | tuple) and each and isinstance(each[0], Tensor)]
    if not lists:
        return 1
    most, launches, tensors, blocks = _TENSORS_A_LAUNCH[min(5, len(lists))], 0, 0, 0
    for each in lists[0]:
        own = -(-each.numel() // _BLOCK)
        tensors, blocks = tensors + 1, blocks + own
        if tensors == most or blocks >= _BLOCKS_A_LAUNCH:
            launches, blocks = launches + max(1, blocks // _BLOCKS_A_LAUNCH), blocks % _BLOCKS_A_LAUNCH
            tensors = 1 if blocks else 0
    return launches + (1 if tensors else 0)


def _flash_parts(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> Iterator[tuple[slice, slice, Tensor]]:
    """Yield each sentence's rows of queries and of keys, and its weights (H, T, S) in fp32."""
    query_offsets, key_offsets, _, _, rate, causal = rest[:6]
    assert query.dtype in (torch.bfloat16, torch.float16), "flash attention is for half precision"
    assert query.shape[1:] == key.shape[1:] == value.shape[1:], "flash attention takes one width"
    assert query.size(2) % 8 == 0, "flash attention takes widths that are multiples of 8"
    assert query_offsets.dtype == key_offsets.dtype == torch.int32, "flash attention counts in int32"
    assert not rate, "this GPU has no dropout of attention weights"
    bounds = zip(*(each.tolist() for each in (query_offsets, key_offsets)), strict=True)
    for (start, first), (end, last) in itertools.pairwise(bounds):
        scores = torch.einsum("thk,shk->hts", query[start:end].float(), key[first:last].float()) / query.size(2) ** 0.5
        later = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, float("-inf")) if causal else scores
        yield slice(start, end), slice(first, last), scores.softmax(-1)


def _flash_forward(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    parts = _flash_parts(query, key, value, *rest)
    out = torch.cat([torch.einsum("hts,shk->thk", weights, value[keys].float()) for _, keys, weights in parts])
    return out.to(query.dtype), torch.zeros(query.size(1), len(query)), torch.zeros(2), torch.zeros(()), torch.zeros(0)


def _flash_backward(upstream: Tensor, query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    gradients = torch.zeros(query.shape), torch.zeros(key.shape), torch.zeros(value.shape)
    for rows, keys, weights in _flash_parts(query, key, value, *rest[2:]):
        above = upstream[rows].float()
        gradients[2][keys] = torch.einsum("hts,thk->shk", weights, above)
        of_weights = torch.einsum("thk,shk->hts", above, value[keys].float())
        of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdim=True)) / query.size(2) ** 0.5
        gradients[0][rows] = torch.einsum("hts,shk->thk", of_scores, key[keys].float())
        gradients[1][keys] = torch.einsum("hts,thk->shk", of_scores, query[rows].float())
    return tuple(each.to(query.dtype) for each in gradients)


class _Fused(torch.autograd.Function):
    """A function that CUDA has a kernel for, forward and backward: computed as the CPU does, counted as CUDA would."""

    @staticmethod
    def forward(ctx: Any, name: str, launches: int, run: Callable[..., Any], *tensors: Any) -> Any:
        _work.launches[name] += launches
        ctx.save_for_backward(*tensors)
        ctx.name, ctx.launches, ctx.run = name, launches, run
        with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
            return tree_map(GpuTensor, run(*map(_data, tensors)))

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> tuple[Any, ...]:
        _work.launches[f"{ctx.name} backward"] += 3 * ctx.launches
        with torch.enable_grad(), torch._C.DisableTorchFunctionSubclass():
            tensors = [each.data_on_cpu.detach().requires_grad_(each.is_floating_point()) for each in ctx.saved_tensors]
            out = ctx.run(*tensors)
            outputs = out if isinstance(out, tuple) else (out,)
            inputs = [each for each in tensors if each.requires_grad]
            found = iter(torch.autograd.grad(outputs, inputs, [_data(each) for each in upstream], allow_unused=True))
        gradients = [next(found) if each.requires_grad else None for each in tensors]
        return (None, None, None, *(each if each is None else GpuTensor(each) for each in gradients))


def _fused(name: str, launches: int, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function by `_Fused`, with tensors of the GPU anywhere in its arguments."""
    leaves, form = tree_flatten(args)
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, GpuTensor)]

    def run(*tensors: Tensor) -> Any:
        own = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            own[place] = tensor
        return function(*tree_unflatten(own, form))

    return _Fused.apply(name, launches, run, *(leaves[place] for place in places))  # type: ignore[no-untyped-call]


def _attention(query: Any, key: Any, value: Any, mask: Any, causal: bool) -> Any:
    """`scaled_dot_product_attention`, by flash attention where it can be taken."""
    flash = mask is None and query.dtype != torch.float32 and query.size(-1) == value.size(-1)
    if mask is not None and mask.dtype == torch.bool:
        _work.launches["attention, mask to bias"] += 3  # zeros, not, masked_fill_
    if mask is not None and any(stride % 16 for stride in mask.stride()[:-1]):
        _work.launches["attention, mask padded"] += 1
    mask = _data(mask)

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        function: Any = torch._C._nn.scaled_dot_product_attention
        out: Tensor = function(query.float(), key.float(), value.float(), _in_fp32(mask), 0.0, causal)
        # Laid out as the kernels do: (B, T, H, V) in memory.
        return out.to(query.dtype).transpose(1, 2).contiguous().transpose(1, 2)

    return _fused(f"attention, {'flash' if flash else 'memory-efficient'}", 1, attend, query, key, value)


def _in_fp32(value: Any) -> Any:
    is_half = isinstance(value, Tensor) and value.dtype in (torch.float16, torch.bfloat16)
    return value.float() if is_half else value


def _is_cuda(device: Any) -> bool:
    return isinstance(device, str | torch.device) and torch.device(device).type == "cuda"


class _Mode(TorchFunctionMode):
    """What depends on the device before an operation is dispatched: transfers, factories, autocast, fused kernels."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = dict(kwargs or {}), getattr(func, "__name__", str(func))
        on_gpu = bool(args) and isinstance(args[0], GpuTensor)
        if name == "is_autocast_enabled":
            return func("cpu")  # of which autocast is entered
        if name == "get_autocast_dtype":
            return func("cpu")
        if name == "pin_memory":
            return args[0]
        if name == "backward":
            # What is computed again in the backward pass is by the mode, too, which is off while this function runs.
            with self:
                upstream = (kwargs.get("gradient"),)
                upstream = upstream if upstream[0] is not None else (torch.ones_like(args[0]),)
                keep = bool(kwargs.get("retain_graph"))
                return torch.autograd.graph._engine_run_backward(
                    (args[0],), upstream, keep, False, (), allow_unreachable=True, accumulate_grad=True
                )
        if name in ("to", "cuda", "cpu"):
            return _transfer(func, name, args, kwargs)
        if on_gpu and name in ("tolist", "numpy", "__array__"):
            _work.waits[f"{name}, {_line()}"] += 1
            return getattr(args[0].data_on_cpu.detach(), name)()
        if on_gpu and name == "contiguous" and args[0].data_on_cpu.is_contiguous():
            return args[0]
        if on_gpu and name == "new_tensor":
            _work.copies[f"new_tensor, {_line()}"] += 1
            _work.waits[f"new_tensor, {_line()}"] += 1
            return GpuTensor(args[0].data_on_cpu.new_tensor(*args[1:], **kwargs))
        if _is_cuda(kwargs.get("device")):
            kwargs["device"] = "cpu"
            if name in ("tensor", "as_tensor"):
                _work.copies[f"{name}, {_line()}"] += 1
                _work.waits[f"{name}, {_line()}"] += 1
            elif not on_gpu and name not in _NO_LAUNCH:
                _work.launches[name] += 1
            out = func(*args, **kwargs)
            return GpuTensor(out) if isinstance(out, Tensor) and not isinstance(out, GpuTensor) else out
        if on_gpu and name == "dropout" and func is F.dropout:
            rate, training = kwargs.get("p", args[1] if len(args) > 1 else 0.5), kwargs.get("training", True)
            return torch.native_dropout(args[0], rate, True)[0] if training else args[0]
        autocast = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None
        if on_gpu and autocast and name in ("scaled_dot_product_attention", "lstm", "rnn_tanh"):
            args = tree_map(lambda x: x.to(autocast) if isinstance(x, Tensor) and x.is_floating_point() else x, args)
        if on_gpu and name == "scaled_dot_product_attention":
            assert args[0].dtype == args[1].dtype == args[2].dtype, "attention takes one dtype"
            assert not kwargs.get("dropout_p"), "this GPU has no dropout of attention weights"
            query, key, value = args
            return _attention(query, key, value, kwargs.get("attn_mask"), kwargs.get("is_causal", False))
        if on_gpu and name in ("lstm", "rnn_tanh"):
            return _fused(f"cuDNN's {name}", 1, func, *args)
        if on_gpu and autocast and name in _IN_FP32 and not kwargs.get("dtype"):
            args, kwargs = tree_map(_in_fp32, args), tree_map(_in_fp32, kwargs)
        return func(*args, **kwargs)


def _transfer(func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
    """`to`, `cuda` or `cpu`."""
    tensor, *rest = args
    target = {"cuda": CUDA, "cpu": "cpu"}.get(name, kwargs.get("device"))
    if target is None and rest and isinstance(rest[0], str | torch.device):
        target = rest.pop(0)
    if target is None or isinstance(tensor, torch.nn.Module):
        return func(*args, **kwargs)
    dtype = kwargs.get("dtype") or next((each for each in rest if isinstance(each, torch.dtype)), tensor.dtype)
    is_on_gpu = isinstance(tensor, GpuTensor)
    if _is_cuda(target) == is_on_gpu:
        return tensor.to(dtype, copy=kwargs.get("copy", False)) if dtype != tensor.dtype or "copy" in kwargs else tensor
    if is_on_gpu:
        _work.waits[f"to the host, {_line()}"] += 1
        return tensor.data_on_cpu.detach().to(dtype).clone()
    _work.copies[f"to the device, {_line()}"] += 1
    if not (kwargs.get("non_blocking") or (rest and rest[-1] is True)):
        _work.waits[f"to the device, {_line()}"] += 1
    return GpuTensor(tensor.detach().to(dtype, copy=True))


def _autocast_of_cpu(device_type: str, dtype: Any = None, enabled: bool = True, **others: Any) -> torch.autocast:
    return _TORCH_AUTOCAST("cpu", dtype=dtype, enabled=enabled)


def _grouped(lists: Any, with_indices: bool = False) -> Any:
    """torch's function, which reads the devices in C++, where they are the CPU's."""
    found: Any = _TORCH_GROUPED(lists, with_indices)
    return {
        (CUDA if isinstance(group[0][0], GpuTensor) else group[0][0].device, dtype): (group, places)
        for (_, dtype), (group, places) in found.items()
    }


_TORCH_GROUPED = torch._C._group_tensors_by_device_and_dtype


def _no_grad(mode: bool = True) -> Any:
    return torch.no_grad() if mode else contextlib.nullcontext()


_TORCH_AUTOCAST = torch.autocast
_CUDA: dict[str, Callable[..., Any]] = {
    "is_available": lambda: True,
    "device_count": lambda: 1,
    "current_device": lambda: 0,
    "is_initialized": lambda: True,
    "get_device_name": lambda *_: "counting GPU",
    "current_stream": lambda *_: None,
    "Event": lambda **_: types.SimpleNamespace(
        **{name: lambda *_: None for name in ("record", "synchronize")}, query=lambda: True, elapsed_time=lambda _: 1.0
    ),
    "get_device_capability": lambda *_: (9, 0),
    "get_device_properties": lambda *_: types.SimpleNamespace(total_memory=139 * 2**30, uuid="one"),
    "mem_get_info": lambda *_: (139 * 2**30, 139 * 2**30),
    "get_rng_state": lambda *_: torch.zeros(16, dtype=torch.uint8),
    **{name: lambda *_: None for name in ("set_device", "empty_cache", "reset_peak_memory_stats", "synchronize")},
    **{name: lambda *_: None for name in ("set_rng_state", "_lazy_init", "manual_seed_all")},
    **{name: lambda *_: 0 for name in ("max_memory_allocated", "max_memory_reserved", "memory_reserved")},
}


@contextlib.contextmanager
def counting_gpu(has_bf16: bool = True) -> Iterator[Work]:
    """Let this machine have the GPU during a block; what it does is counted. has_bf16: a T4 has none."""
    from torch.nn.utils import clip_grad
    from torch.optim import optimizer

    _work.forget()
    cuda = {**_CUDA, "is_bf16_supported": lambda *_, **__: has_bf16}
    patches: list[Any] = [mock.patch.object(torch.cuda, name, value) for name, value in cuda.items()]
    patches += [
        mock.patch.object(torch, "autocast", _autocast_of_cpu),
        mock.patch("torch.cuda.amp.common.amp_definitely_not_available", return_value=False),
        mock.patch.object(torch._C, "_group_tensors_by_device_and_dtype", _grouped),
        mock.patch.object(torch.backends.cuda, "is_flash_attention_available", return_value=True),
        mock.patch.object(torch.backends.cudnn, "is_acceptable", return_value=False),
        mock.patch.object(clip_grad, "_has_foreach_support", return_value=True),
        mock.patch.object(optimizer, "_foreach_supported_types", [*optimizer._foreach_supported_types, GpuTensor]),
        # oneDNN's kernels are the CPU's alone.
        mock.patch("tolka.kernels.packing.row_counts_are_compiled", return_value=False),
        # A wrapper made in inference mode could not be used outside.
        mock.patch.object(torch, "inference_mode", _no_grad),
    ]
    with contextlib.ExitStack() as stack:
        for each in patches:
            stack.enter_context(each)
        before = torch.__future__.get_overwrite_module_params_on_conversion()
        torch.__future__.set_overwrite_module_params_on_conversion(True)
        stack.callback(torch.__future__.set_overwrite_module_params_on_conversion, before)
        stack.enter_context(_Mode())
        yield _work
