"""The engine that computes with torch, in a dtype that decodes faster or with less memory where one is asked for."""

import copy
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from itertools import accumulate

import torch

from tolka.data.batch import Flat, collate
from tolka.engines.engine import NOT_FINITE, Engine, Rows
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
from tolka.system.memory import is_out_of_memory
from tolka.system.threads import side_by_side
from tolka.tokenizer.language_tags import NO_TAGS, Tags

_TORCH_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class TorchEngine(Engine):
    """A Seq2Seq on a torch device, with any of SEARCHES."""

    has_attention = True

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
    ) -> list[list[Hypothesis]] | None:
        source, lengths = Flat.of(sources).with_eos()
        constraints = {"wishes": wishes} if any(wishes) else {}  # a plugin's search may lack the argument
        model = (self.model if tags == NO_TAGS else Tagged(self.model, tags)).eval()
        try:
            with torch.inference_mode():
                results = search.build().search(model, source.to(self.device), lengths.to(self.device), **constraints)
        except (RuntimeError, MemoryError) as error:
            # A single sentence cannot be made smaller: its error is the user's.
            if not is_out_of_memory(error) or len(sources) == 1:
                raise
            return None
        # A search drops hypotheses whose score is NaN; where none is left, the model is damaged.
        if not all(results):
            raise CheckpointError(NOT_FINITE)
        return [hypotheses[: search.candidate_count] for hypotheses in results]

    def score(self, sources: Rows, targets: Rows, tags: Tags = NO_TAGS) -> list[list[float]] | None:
        batch = collate(sources, targets, tags).to(self.device)
        self.model.eval()
        try:
            with torch.inference_mode():
                features, references = self.model(batch), batch.targets  # of the target tokens but tags: (N, D), (N,)
                # Numbers at once: tensors that are kept would stand where the next chunk's logits need space.
                scores = [-nll for part in token_nll(self.model, features, references) for nll in part.tolist()]
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error) or len(sources) == 1:
                raise
            return None
        ends = list(accumulate(len(target) + 1 for target in targets))
        return [scores[end - len(target) - 1 : end] for end, target in zip(ends, targets, strict=True)]

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
