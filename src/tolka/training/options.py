"""Options of the training loop."""

import math
from dataclasses import dataclass

from tolka.errors import ConfigError
from tolka.losses.cross_entropy import Objective
from tolka.metrics.options import COMMAND, MINIMIZED, PRINTED_NAMES
from tolka.metrics.validation import ALWAYS_MEASURED
from tolka.models.base import Seq2Seq
from tolka.options.checks import MOST_THREADS, at_least, at_most, one_of, share_below_one, zero_or_more
from tolka.options.settings import setting
from tolka.system.device import PRECISIONS

_MOST_BATCHES = 100_000  # of an update
PARALLEL = ("auto", "ddp", "fsdp")
# Decimals of these in tables; a difference that they do not show does not count.
_SHOWN_DIGITS = {"bleu": 2, "chrf": 2}


def model_rank(metric: str, value: float, nll: float | None) -> tuple[float, float]:
    """Return a sort key for models, larger for better ones: a trainer.metric, then the validation loss `nll`.

    BLEU and chrF are rounded to two decimals. An nll that is not known counts as the worst.
    """
    rank = -value if metric in MINIMIZED else round(value, _SHOWN_DIGITS.get(metric, 15))
    return rank, -math.inf if nll is None else -nll


@dataclass(frozen=True)
class TrainerConfig:
    """Options of the training loop."""

    updates: int = setting(20000, resumable=True)
    """updates of the weights at most; 0 = as many as trainer.epochs makes"""
    epochs: float = setting(0.0, resumable=True)
    """passes over the training text at most, where trainer.updates does not end it before; 0 = no limit"""
    max_minutes: float = setting(0.0, resumable=True)
    """minutes of training at most, validations included; 0 = no limit"""
    validate_every: int = setting(500, resumable=True)
    """updates between two validations"""
    patience: int = setting(10, resumable=True)
    """stop after this many validations without a better trainer.metric; 0 = never"""
    metric: str = "bleu"
    """which model is best in validation: bleu, chrf, nll, ppl, command or others of metrics; of equals by lower nll"""
    log_every: int = setting(50, resumable=True)
    """updates between two lines in metrics.jsonl and train.log (on stderr too, where it is no terminal)"""
    samples: int = setting(3, resumable=True)
    """sample translations of the last validation that are shown at the end; trackers get those of each"""
    label_smoothing: float = 0.1
    """probability spread evenly over the vocabulary (Szegedy et al. 2016)"""
    teacher: str = setting("", literal=True)
    """model with the same subwords, or several joined by commas, whose probabilities are learnt with the references"""
    accumulate: int = 1
    """batches whose gradients make one update, divided once by all their target tokens"""
    ema: float = 0.0
    """moving average of the weights, which is then validated and saved: share that an update keeps (0.999); 0 = off"""
    average: int = 0
    """how many of the last validated checkpoints are kept and averaged at the end, if that is better; 0 = none"""
    keep_best: int = setting(0, resumable=True)
    """how many of the best validated checkpoints stay in checkpoints/, beside best/"""
    keep_every: int = setting(0, resumable=True)
    """updates between two checkpoints that stay in checkpoints/; 0 = none"""
    clip_norm: float = 1.0
    """ceiling on the norm of the gradient; 0 = off"""
    recompute: bool = False
    """store only the input of each Transformer layer, and recompute the rest in the backward pass"""
    memory: float = setting(0.0, needs=("run.init_from", "run.init_from"))
    """GB that fine-tuning may take: batches are divided and parts frozen, so that it fits; 0 = most of the machine's"""
    device: str = "auto"
    """auto (the first GPU, else the CPU), cpu, cuda, cuda:N"""
    deterministic: bool = False
    """take no GPU kernel whose result may differ from run to run; an operation that has no other ends the training"""
    devices: int = setting(1, resumable=True)
    """processes that train together, each with a share of every batch, on as many GPUs or cores; auto = all GPUs"""
    parallel: str = setting("auto", resumable=True)
    """how processes train together: ddp, fsdp (weights and optimizer shared out), or auto"""
    threads: int = setting(0, resumable=True)
    """CPU threads to compute with, and processes that prepare text, as for two jobs at once; 0 = one for each core"""
    precision: str = "auto"
    """auto, fp32, bf16 or fp16; auto asks the machine, and on a CPU measures"""

    def __post_init__(self) -> None:
        at_least(self, "trainer", 0 if self.epochs else 1, "updates")
        at_least(self, "trainer", 1, "validate_every", "log_every", "accumulate")
        zero_or_more(self, "trainer", "off", "max_minutes", "patience", "samples", "average", "clip_norm")
        zero_or_more(self, "trainer", "none", "keep_best", "keep_every")
        zero_or_more(self, "trainer", "most of the machine's", "memory")
        zero_or_more(self, "trainer", "no limit", "epochs")
        zero_or_more(self, "trainer", "torch's own choice", "threads")
        zero_or_more(self, "trainer", "one for each GPU", "devices")
        at_most(self, "trainer", MOST_THREADS, "threads", "devices")
        at_most(self, "trainer", _MOST_BATCHES, "accumulate")
        share_below_one(self, "trainer", "label_smoothing", "ema")
        one_of(self, "trainer", "metric", {*ALWAYS_MEASURED, COMMAND, *PRINTED_NAMES})
        one_of(self, "trainer", "precision", PRECISIONS)
        one_of(self, "trainer", "parallel", PARALLEL)
        if self.average == 1:
            raise ConfigError("trainer.average (1) must be 0 (none), or at least 2: the mean of one is itself")

    def objective(self, model: Seq2Seq, teacher: Seq2Seq | None = None) -> Objective:
        """Return the model with the loss that these options describe."""
        return Objective(model, self.label_smoothing, teacher)
