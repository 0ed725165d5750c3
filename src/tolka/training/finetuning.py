"""Which parts of a model are trained: all of it, some of its parts, or low-rank adapters."""

from dataclasses import dataclass, field

from torch import nn

from tolka.errors import ConfigError
from tolka.models.new_rows import train_new_rows
from tolka.nn.lora import add_adapters
from tolka.options.checks import zero_or_more
from tolka.options.settings import setting
from tolka.options.suggestions import did_you_mean


@dataclass(frozen=True)
class FinetuningConfig:
    """Which weights are trained; the others keep their values."""

    freeze: list[str] = field(default_factory=list)
    """parts of the model that stay as they are, by name: [encoder], [encoder.0,target_embedding]"""
    lora_rank: int = 0
    """rank of low-rank adapters (Hu et al. 2022), which alone are then trained; 8 is usual; 0 = off"""
    lora_alpha: float = setting(16.0, needs=("finetuning.lora_rank", "finetuning.lora_rank"))
    """the adapters' output is scaled by lora_alpha / lora_rank"""

    def __post_init__(self) -> None:
        zero_or_more(self, "finetuning", "off", "lora_rank")
        if self.lora_alpha <= 0:
            raise ConfigError(f"finetuning.lora_alpha ({self.lora_alpha:g}) must be above 0; 16 is usual")
        if self.lora_rank and self.freeze:
            raise ConfigError(
                "finetuning.lora_rank trains the adapters alone, so finetuning.freeze has nothing to add: leave one out"
            )

    def check(self, model: nn.Module) -> list[nn.Module]:
        """Return the parts that finetuning.freeze names; ConfigError for one that does not exist."""
        # Of a shared module `named_modules` has the first name alone.
        parts = {name: part for name, part in model.named_modules() if name and any(True for _ in part.parameters())}
        for name in self.freeze:
            if name not in parts:
                top_level = [part for part in parts if "." not in part]
                suggestion = did_you_mean(name, parts).split(" Known:")[0]
                raise ConfigError(
                    f"finetuning.freeze: the model has no part '{name}' with weights of its own.{suggestion} "
                    f"Parts: {', '.join(top_level)} (embeddings that are shared have one name)"
                )
        return [parts[name] for name in self.freeze]

    def apply(self, model: nn.Module, new_subwords: tuple[int, int] = (0, 0)) -> None:
        """Freeze parts, or add adapters; ConfigError for a part that does not exist, or if nothing is left to train.

        new_subwords: of the source and of the target, at the end of the model's vocabularies. Their rows are trained in
        any case.
        """
        if self.lora_rank and not add_adapters(model, self.lora_rank, self.lora_alpha):
            raise ConfigError("finetuning.lora_rank: this model has no linear layers to adapt; set it to 0")
        for part in self.check(model):
            part.requires_grad_(False)
        train_new_rows(model, *new_subwords)
        if not any(weight.requires_grad for weight in model.parameters()):
            raise ConfigError(
                f"finetuning.freeze ({', '.join(self.freeze)}) leaves nothing to train: freeze fewer parts"
            )
