"""Conversion of a trained model to a dtype that decodes faster or with less memory."""

import copy

import torch

from tolka.errors import ConfigError
from tolka.kernels.quantized import supports_int8
from tolka.models.base import Seq2Seq
from tolka.models.quantization import is_quantized, quantizable_layers, quantize
from tolka.system.device import choose_device

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
    """Return a copy for decoding with its weights in `name`, one of DTYPES; the model itself if nothing changes."""
    # A model stored in int8 has no layers left to quantise, and its fp32 weights are in no file.
    if name == "fp32" or (name == "int8" and not quantizable_layers(model)):
        return model
    model = copy.deepcopy(model).eval()  # the caller's model stays as it is: mt-eval computes the PPL with it
    if name == "int8":
        quantize(model)
        return model
    return model.to(_TORCH_DTYPES[name])


def device_and_dtype(model: Seq2Seq, device: str, name: str) -> tuple[torch.device, str]:
    """Return decoding.device and decoding.precision, resolved for a model; ConfigError if it cannot have both."""
    if not is_quantized(model):
        chosen = choose_device(device, "decoding.device")
        check_dtype(name, chosen, "decoding.precision")
        return chosen, name
    # A model stored in int8 translates in int8, on the CPU, whatever auto would choose.
    chosen = choose_device("cpu" if device == "auto" else device, "decoding.device")
    if chosen.type != "cpu" or name not in ("fp32", "int8"):
        setting = f"decoding.precision={name}" if chosen.type == "cpu" else f"decoding.device={device}"
        raise ConfigError(
            f"{setting} is not for a model stored in int8, which translates in int8 on a CPU: leave it out, or give "
            "the model that it was made from"
        )
    check_dtype("int8", chosen, "decoding.precision")
    return chosen, name
