"""Conversion of a trained model to a dtype that decodes faster or with less memory."""

import copy

import torch

from tolka.errors import ConfigError
from tolka.models.base import Seq2Seq
from tolka.nn.quantized import quantize_linear_layers, supports_int8

_TORCH_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def check_dtype(name: str, device: torch.device, key: str) -> None:
    """Raise ConfigError if the device does not support the dtype. key: the setting that `name` came from."""
    on_cpu = device.type == "cpu"
    if name == "int8" and not (on_cpu and supports_int8()):
        reason = "this build of torch has no int8 matrix multiplication" if on_cpu else "it is for CPUs"
        raise ConfigError(f"{key}=int8 is not available on {device}: {reason}; try fp32, or bf16 on a GPU")
    if name == "fp16" and on_cpu:
        raise ConfigError(f"{key}=fp16 needs a CUDA device; on a CPU use fp32, bf16 or int8")


def convert_model(model: Seq2Seq, name: str) -> Seq2Seq:
    """Return a copy for decoding with its weights in `name`, one of DTYPES; the model itself for fp32."""
    if name == "fp32":
        return model
    model = copy.deepcopy(model).eval()
    if name == "int8":
        quantize_linear_layers(model)
        model.quantize_output()
        return model
    return model.to(_TORCH_DTYPES[name])
