"""A model in int8, for decoding on a CPU: its linear layers and embeddings; recurrences, norms and biases stay fp32."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import Tensor, nn

from tolka.kernels.quantized import Int8Matrix, QuantizedEmbedding, QuantizedLinear
from tolka.models.base import Seq2Seq
from tolka.models.embeddings import TokenEmbedding
from tolka.nn.feedforward import ACTIVATIONS, FeedForward
from tolka.nn.linear import FusedLinear

# Rows and columns of a linear layer; below, fp32 is as fast.
_SMALLEST_WIDTH = 32


@dataclass
class QuantizableLayer:
    """A layer that int8 replaces. names: those under which the model has it, several where it is shared."""

    weight: Tensor
    make: Callable[[Int8Matrix], nn.Module]
    names: list[str] = field(default_factory=list)

    @property
    def weight_names(self) -> list[str]:
        """The names of its weight in the model's `state_dict`."""
        return [f"{name}.weight" for name in self.names]


def quantizable_layers(model: Seq2Seq) -> list[QuantizableLayer]:
    """Return the layers that int8 replaces, in the model's order, each once."""
    layers: dict[nn.Module, QuantizableLayer] = {}
    read_by_logits = {id(parameter) for parameter in model.logits_parameters()}
    # With duplicates, as a shared module has to be replaced under each of its names.
    for name, module in model.named_modules(remove_duplicate=False):
        if module not in layers and isinstance(module, TokenEmbedding):
            layers[module] = _embedding(module, id(module.weight) in read_by_logits)
        elif module not in layers and isinstance(module, nn.Linear) and min(module.weight.shape) >= _SMALLEST_WIDTH:
            parent = model.get_submodule(name.rpartition(".")[0])
            # The outer layer reads what ReLU returns, which is never negative: int8's whole range is for the positive.
            relu = isinstance(parent, FeedForward) and parent.activation is ACTIVATIONS["relu"]
            layers[module] = _linear(module, relu and name.endswith(".outer"))
        if module in layers:
            layers[module].names.append(name)
    return list(layers.values())


def quantize(model: Seq2Seq, stored: Mapping[str, Int8Matrix] | None = None) -> None:
    """Replace the layers by int8 ones; the model can then only translate.

    stored: the matrices under the names of `quantizable_layers`, any of them; by default the model's own, rounded.
    """
    for layer in quantizable_layers(model):
        if stored is None:
            matrix = Int8Matrix.of(layer.weight)
        else:
            # A shared matrix is stored under one of its names.
            matrix = next(stored[name] for name in layer.weight_names if name in stored)
        quantized = layer.make(matrix)
        for name in layer.names:
            parent, _, attribute = name.rpartition(".")
            setattr(model.get_submodule(parent), attribute, quantized)


def is_quantized(model: nn.Module) -> bool:
    """Return whether any layer is in int8."""
    return any(isinstance(module, QuantizedLinear | QuantizedEmbedding) for module in model.modules())


def _linear(layer: nn.Linear, non_negative: bool) -> QuantizableLayer:
    widths = layer.widths if isinstance(layer, FusedLinear) else [layer.out_features]
    bias = None if layer.bias is None else layer.bias.detach()
    return QuantizableLayer(layer.weight.detach(), lambda matrix: QuantizedLinear(matrix, bias, widths, non_negative))


def _embedding(embedding: TokenEmbedding, is_output: bool) -> QuantizableLayer:
    return QuantizableLayer(embedding.weight.detach(), lambda matrix: QuantizedEmbedding(matrix, is_output))
