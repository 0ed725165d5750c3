"""The engine that computes with torch."""

from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from itertools import accumulate

import torch

from tolka.data.batch import Flat, collate
from tolka.engines.dtypes import convert_model, device_and_dtype
from tolka.engines.engine import NOT_FINITE, Engine
from tolka.engines.options import DecodingConfig
from tolka.errors import CheckpointError
from tolka.losses.cross_entropy import token_nll
from tolka.models.base import Seq2Seq
from tolka.models.tagged import Tagged
from tolka.search.base import SearchConfig
from tolka.search.hypothesis import Hypothesis, Wish
from tolka.system.device import use_threads
from tolka.system.memory import is_out_of_memory
from tolka.system.threads import side_by_side
from tolka.tokenizer.language_tags import NO_TAGS, Tags


class TorchEngine(Engine):
    """A Seq2Seq on a torch device, with any of SEARCHES."""

    has_attention = True

    def __init__(self, model: Seq2Seq, device: torch.device) -> None:
        self.model, self.device = model, device

    @classmethod
    def of(cls, model: Seq2Seq, decoding: DecodingConfig) -> "TorchEngine":
        """Place the model on the device and convert it to the dtype that the options select."""
        use_threads(decoding.threads)
        device, dtype = device_and_dtype(model, decoding.device, decoding.precision)
        return cls(convert_model(model.to(device), dtype), device)

    def __repr__(self) -> str:
        return f"{self.model.architecture}, {self.device}"

    @property
    def cpu_threads(self) -> int:
        return torch.get_num_threads() if self.device.type == "cpu" else 0

    def translate(
        self,
        search: SearchConfig,
        sources: list[list[int]],
        wishes: Sequence[Wish] = (),
        scored: bool = False,
        tags: Tags = NO_TAGS,
    ) -> list[list[Hypothesis]] | None:
        source, lengths = Flat.of(sources).with_eos()
        constraints = {"wishes": wishes} if any(wishes) else {}  # a plugin's search may lack the argument
        model = (self.model if tags == NO_TAGS else Tagged(self.model, tags)).eval()
        try:
            with torch.inference_mode():
                results = search.build().search(
                    model, source.to(self.device), lengths.to(self.device), scored, **constraints
                )
        except (RuntimeError, MemoryError) as error:
            # A single sentence cannot be made smaller: its error is the user's.
            if not is_out_of_memory(error) or len(sources) == 1:
                raise
            return None
        # A search drops hypotheses whose score is NaN; where none is left, the model is damaged.
        if not all(results):
            raise CheckpointError(NOT_FINITE)
        return [hypotheses[: search.candidate_count] for hypotheses in results]

    def score(
        self, sources: list[list[int]], targets: list[list[int]], tags: Tags = NO_TAGS
    ) -> list[list[float]] | None:
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
