"""Converting a trained model to a dtype that decodes faster or in less memory."""

import copy

import torch

from tolka.errors import ConfigError
from tolka.models.base import Seq2Seq
from tolka.nn.quantized import quantize_linear_layers, supports_int8

FORMATS = ("fp32", "bf16", "fp16", "int8")
_TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def check_format(name: str, device: torch.device, key: str) -> None:
    """Raise ConfigError when the device cannot compute in it. key: the setting that `name` came from."""
    on_cpu = device.type == "cpu"
    if name == "int8" and not (on_cpu and supports_int8()):
        reason = "this build of torch has no products of such numbers" if on_cpu else "it is for CPUs"
        raise ConfigError(f"{key}=int8 is not to be had on {device}: {reason}; try fp32, or bf16 on a GPU")
    if name == "fp16" and on_cpu:
        raise ConfigError(f"{key}=fp16 needs a CUDA device; on a CPU use fp32, bf16 or int8")


def in_format(model: Seq2Seq, name: str) -> Seq2Seq:
    """Return a copy of the model with its weights in `name`, one of FORMATS, for decoding only; itself for fp32."""
    if name == "fp32":
        return model
    model = copy.deepcopy(model).eval()
    if name == "int8":
        quantize_linear_layers(model)
        model.quantize_output()
        return model
    return model.to(_TYPES[name])
