"""The engine that computes with torch, in a dtype that decodes faster or with less memory where one is asked for."""

import copy
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from tolka.data.batch import PAD, Batch, Flat, collate
from tolka.engines.engine import GRADIENT, NOT_FINITE, Engine, Rows
from tolka.engines.options import DecodingConfig
from tolka.errors import CheckpointError, ConfigError
from tolka.kernels.quantized import supports_int8
from tolka.losses.cross_entropy import token_nll
from tolka.models.base import Seq2Seq
from tolka.models.quantization import is_quantized, quantizable_layers, quantize
from tolka.models.tagged import Tagged
from tolka.search.base import SearchConfig
from tolka.search.hypothesis import Hypothesis, Wishes
from tolka.system.device import choose_device, device_memory, half_precision, use_threads
from tolka.system.threads import side_by_side
from tolka.tokenizer.language_tags import NO_TAGS, Tags

_TORCH_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class TorchEngine(Engine):
    """A Seq2Seq on a torch device, with any of SEARCHES."""

    def __init__(self, model: Seq2Seq, device: torch.device) -> None:
        self.model, self.device = model, device

    @classmethod
    def of(cls, model: Seq2Seq, decoding: DecodingConfig) -> "TorchEngine":
        """Place the model on the device and convert it to the dtype that the options select.

        ConfigError if it cannot have both.
        """
        use_threads(decoding.threads)
        # A model stored in int8 translates in int8, on the CPU, whatever auto would choose.
        name, is_stored = decoding.precision, is_quantized(model)
        device = choose_device("cpu" if is_stored and decoding.device == "auto" else decoding.device, "decoding.device")
        if is_stored and (device.type != "cpu" or name not in ("auto", "fp32", "int8")):
            setting = f"decoding.precision={name}" if device.type == "cpu" else f"decoding.device={decoding.device}"
            raise ConfigError(
                f"{setting} is not for a model stored in int8, which translates in int8 on a CPU: leave it out, or "
                "give the model that it was made from"
            )
        if name == "auto":
            name = half_precision(device) if device.type == "cuda" else "fp32"
        check_dtype("int8" if is_stored else name, device)
        # Converted first: a GPU need never hold the weights in fp32.
        return cls(convert_model(model, name).to(device), device)

    def __repr__(self) -> str:
        return f"{self.model.architecture}, {self.device}"

    @property
    def cpu_threads(self) -> int:
        return torch.get_num_threads() if self.device.type == "cpu" else 0

    @property
    def gpu_memory(self) -> int:
        return device_memory(self.device)

    def translate(
        self, search: SearchConfig, sources: Rows, wishes: Wishes = (), scored: bool = False, tags: Tags = NO_TAGS
    ) -> list[list[Hypothesis]]:
        source, lengths = Flat.of(sources).with_eos()
        constraints = {"wishes": wishes} if any(wishes) else {}  # a plugin's search may lack the argument
        model = (self.model if tags == NO_TAGS else Tagged(self.model, tags)).eval()
        with torch.inference_mode():
            results = search.build().search(model, source.to(self.device), lengths.to(self.device), **constraints)
        # A search drops hypotheses whose score is NaN; where none is left, the model is damaged.
        if not all(results):
            raise CheckpointError(NOT_FINITE)
        return [hypotheses[: search.candidate_count] for hypotheses in results]

    def score(self, sources: Rows, targets: Rows, tags: Tags = NO_TAGS) -> list[list[float]]:
        batch = collate(sources, targets, tags).to(self.device)
        self.model.eval()
        with torch.inference_mode():
            features, references = self.model(batch), batch.targets  # of the target tokens but tags: (N, D), (N,)
            # Numbers at once: tensors that are kept would stand where the next chunk's logits need space.
            scores = [-nll for part in token_nll(self.model, features, references) for nll in part.tolist()]
        ends = list(accumulate(len(target) + 1 for target in targets))
        return [scores[end - len(target) - 1 : end] for end, target in zip(ends, targets, strict=True)]

    def attention(self, sources: Rows, targets: Rows, tags: Tags, *, with_gradients: bool) -> tuple[str, list[Any]]:
        batch = collate(sources, targets, tags).to(self.device)
        with torch.inference_mode():
            attention = self.model.eval().inspect(batch).attention
        if names := [name for name in attention if name.endswith("cross")]:
            name, weights = names[-1], attention[names[-1]].mean(dim=1)  # (B, H, T, S) -> (B, T, S)
        elif with_gradients:
            name, weights = GRADIENT, source_gradients(self.model, batch)
        else:
            known = ", ".join(attention) or "no attention at all"
            raise ConfigError(f"attention maps are those of a decoder to the source, and this model has {known}")
        return name, list(weights.float().cpu().numpy())

    def side_by_side(self, count: int) -> AbstractContextManager[Executor]:
        return side_by_side(count)

    def free_memory(self) -> None:
        torch.cuda.empty_cache()


def check_dtype(name: str, device: torch.device) -> None:
    """Raise ConfigError if the device does not support a decoding.precision."""
    on_cpu = device.type == "cpu"
    if name == "int8" and not (on_cpu and supports_int8()):
        reason = "this build of torch has no int8 matrix multiplication" if on_cpu else "it is for CPUs"
        raise ConfigError(f"decoding.precision=int8 is not available on {device}: {reason}; try fp32, or bf16 on a GPU")
    if name == "fp16" and on_cpu:
        raise ConfigError("decoding.precision=fp16 needs a CUDA device; on a CPU use fp32, bf16 or int8")


def convert_model(model: Seq2Seq, name: str) -> Seq2Seq:
    """Return a copy for decoding with its weights in `name`, one of DTYPES; the model itself if nothing changes."""
    # A model stored in int8 has no layers left to quantise, and its fp32 weights are in no file.
    if name == "fp32" or (name == "int8" and not quantizable_layers(model)):
        return model
    model = copy.deepcopy(model).eval()  # the caller's model stays as it is: mt-eval computes the PPL with it
    if name == "int8":
        quantize(model)
        return model
    return model.to(_TORCH_DTYPES[name])


def source_gradients(model: Seq2Seq, batch: Batch) -> Tensor:
    """Return how much each source embedding x_j says of each token y_t, (B, T, S); each row of a token sums to 1.

    It is |x_j . d log p(y_t | y_<t, x) / d x_j|, the first-order estimate of what leaving x_j out would change (Denil
    et al. 2015); B sentences, S source and T target positions. ConfigError for a model without gradients: in int8,
    under torch.inference_mode, or a plugin's whose source embedding has another name.
    """
    embedding = getattr(model, "source_embedding", None)
    if is_quantized(model) or embedding is None or torch.is_inference_mode_enabled():
        reason = "in int8" if is_quantized(model) else "without source_embedding, or under torch.inference_mode,"
        raise ConfigError(f"this model has no attention at all, and {reason} no gradients to show in its place")
    embedded: list[Tensor] = []

    def keep(module: torch.nn.Module, inputs: tuple[Tensor], output: Tensor) -> Tensor:
        if not embedded:  # a second call would be the target's, where both sides share the embedding
            output = output.detach().requires_grad_()
            embedded.append(output)
        return output

    hook = embedding.register_forward_hook(keep)
    # cuDNN's recurrent layers have no backward pass in evaluation mode.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        try:
            features = model.eval().inspect(batch).features  # (N, E)
        finally:
            hook.remove()
        [x] = embedded
        # Through the vocabulary once and in chunks, and then through the rest for each step.
        rows = features.detach().requires_grad_()
        parts = token_nll(model, rows, batch.targets)
        slopes = torch.stack([torch.autograd.grad(part.sum(), rows)[0] for part in parts]).sum(dim=0)
        found = (features * slopes).sum(dim=-1)  # (N,), whose derivatives are those of -log p
        by_step = found.new_zeros(batch.target_out.numel()).index_put((batch.target_positions,), found)
        # Sentences do not read each other: one pass back for a step of all of them.
        steps = by_step.view_as(batch.target_out).sum(dim=0)
        gradients = [torch.autograd.grad(step, x, retain_graph=True)[0] for step in steps]
    weights = torch.stack([(gradient * x.detach()).sum(dim=-1).abs() for gradient in gradients], dim=1).float()
    weights = weights.masked_fill((batch.source == PAD)[:, None], 0.0)
    return weights / weights.sum(dim=-1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)
