"""Initialisation of weights."""

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

# Xavier (Glorot and Bengio 2010, equation 16): U(-a, a) with a = sqrt(6 / (fan_in + fan_out)). Kaiming (He et al. 2015,
# equation 10): a = sqrt(6 / fan_in), whose variance is 2 / fan_in. The 2 makes up for the half that a ReLU zeroes; like
# the paper, every layer gets it, with a ReLU behind it or not.
INITIALIZATIONS: dict[str, Callable[[Tensor], Any]] = {
    "xavier": nn.init.xavier_uniform_,
    "kaiming": nn.init.kaiming_uniform_,
}


def initialise(model: nn.Module, initialization: str, embedding_std: float) -> None:
    """Initialise weights by `initialization`, biases to 0, embeddings from N(0, embedding_std^2) with padding 0.

    Norms keep their gain 1 and bias 0.
    """
    fill = INITIALIZATIONS[initialization]
    module: Any
    for module in model.modules():
        fused = hasattr(module, "matrices")
        if isinstance(module, nn.Linear) or fused:
            # A fused projection and the gates of a recurrence are filled matrix by matrix: the fan-out of the stack
            # would make Xavier's weights too small.
            for matrix in module.matrices() if fused else (module.weight,):
                fill(matrix)
            for name, parameter in module.named_parameters(recurse=False):
                if name.startswith("bias"):
                    nn.init.zeros_(parameter)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=embedding_std)
            if module.padding_idx is not None:
                nn.init.zeros_(module.weight[module.padding_idx].detach())


_FILL_METHODS = {"normal_", "uniform_", "zero_", "fill_"}


class SkipInitialization(TorchFunctionMode):
    """Context in which functions that fill a tensor in place do nothing, so that modules are built faster.

    For weights that are read from a file next, or that are on the meta device, where random numbers would import
    torch's compiler.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        # Functions of torch.nn.init come here whole, or as the method of a tensor that they call.
        if getattr(func, "__module__", "") == nn.init.__name__ or func.__name__ in _FILL_METHODS:
            return args[0] if args else (kwargs or {})["tensor"]
        return func(*args, **(kwargs or {}))
