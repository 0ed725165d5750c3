"""Attention maps of finished translations, computed by forced decoding; of models without attention, gradients.

Shapes: B sentences, S source positions with </s>, T target positions with </s>, E embedding width.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tolka.data.batch import PAD, Batch, collate
from tolka.data.buckets import longest_first
from tolka.engines.torch_engine import TorchEngine
from tolka.errors import ConfigError
from tolka.losses.cross_entropy import token_nll
from tolka.models.base import Seq2Seq
from tolka.models.quantization import is_quantized
from tolka.text.direction import Direction
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.translation.results import Candidate, Translation

_WEIGHTS_PER_BATCH = 2**20  # of one map and head: memory grows with the square of the lengths
_END, _BLANK = "</s>", "▁"
GRADIENT = "gradient"
"""Name of a map of gradients."""


@dataclass(frozen=True)
class AttentionMap:
    """The attention map of one segment. rows, columns: subwords. weights: (rows, columns), each row sums to 1.

    name: of the layer ("decoder.2.cross"), of which it is the mean over the heads, or GRADIENT. Tags of languages are
    left out.
    """

    name: str
    rows: list[str]
    columns: list[str]
    weights: list[list[float]]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for a JSON file."""
        return {
            "map": self.name,
            **({} if self.name == GRADIENT else {"head": "mean"}),
            "rows": self.rows,
            "columns": self.columns,
            "weights": [[round(weight, 6) for weight in row] for row in self.weights],
        }


@dataclass(frozen=True)
class AttentionReader:
    """Computes the attention maps of translations: of the last decoder layer to the source, the mean over its heads.

    tokens: ceiling on a batch. with_gradients: of a model without attention there are `source_gradients`, which are not
    for alignments.
    """

    engine: TorchEngine
    tokenizer: Tokenizer
    direction: Direction
    tokens: int
    with_gradients: bool = False

    def __call__(self, translations: Sequence[Translation | Candidate]) -> list[list[AttentionMap]]:
        """Return the maps of each translation, one for each segment, in order; none for a blank text.

        ConfigError for a model without cross-attention, unless `with_gradients`.
        """
        segments = [segment for translation in translations for segment in translation.segments]
        lengths = [max(len(source), len(target)) + 1 for source, target in segments]
        maps_by_number: dict[int, AttentionMap] = {}
        for batch in longest_first(lengths, self.tokens):
            # Batches have a ceiling on tokens; that alone would let maps of long segments fill the memory.
            most = max(1, _WEIGHTS_PER_BATCH // lengths[batch[0]] ** 2)
            for numbers in (batch[start : start + most] for start in range(0, len(batch), most)):
                maps_by_number |= zip(numbers, self._read([segments[number] for number in numbers]), strict=True)
        ordered = iter(maps_by_number[number] for number in range(len(segments)))
        return [[next(ordered) for _ in translation.segments] for translation in translations]

    def _read(self, segments: Sequence[tuple[list[int], list[int]]]) -> list[AttentionMap]:
        """Return the map of each segment, from one forward pass."""
        sources, targets = zip(*segments, strict=True)
        tokenizer, tags = self.tokenizer, self.tokenizer.tags(self.direction)
        batch = collate(sources, targets, tags).to(self.engine.device)
        with torch.inference_mode():
            attention = self.engine.model.eval().inspect(batch).attention
        names = [name for name in attention if name.endswith("cross")]
        if names:
            name, all_weights = names[-1], attention[names[-1]].mean(dim=1)  # (B, H, T, S) -> (B, T, S)
        elif self.with_gradients:
            name, all_weights = GRADIENT, source_gradients(self.engine.model, batch)
        else:
            known = ", ".join(attention) or "no attention at all"
            raise ConfigError(f"attention maps are those of a decoder to the source, and this model has {known}")
        maps = []
        # Padding is cut off here.
        for source, target, weights in zip(sources, targets, all_weights.cpu(), strict=True):
            rows, columns = [*tokenizer.target_pieces(target), _END], [*tokenizer.source_pieces(source), _END]
            own = weights[len(tags.target) :, len(tags.source) :][: len(rows), : len(columns)]
            own = own / own.sum(dim=1, keepdim=True) if tags.source else own
            maps.append(AttentionMap(name, rows, columns, own.tolist()))
        return maps


def source_gradients(model: Seq2Seq, batch: Batch) -> Tensor:
    """Return how much each source embedding x_j says of each token y_t, (B, T, S); each row of a token sums to 1.

    It is |x_j . d log p(y_t | y_<t, x) / d x_j|, the first-order estimate of what leaving x_j out would change (Denil
    et al. 2015). ConfigError for a model without gradients: in int8, under torch.inference_mode, or a plugin's whose
    source embedding has another name.
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


def word_alignment(maps: Sequence[AttentionMap]) -> list[tuple[int, int]]:
    """Return (source, target) for each target word and the source word with its largest weight, numbered from 0.

    maps: one per segment. Words are separated by blanks. Words of a segment whose source is blank are not aligned.
    ConfigError for maps of gradients, which are too dim for that.
    """
    if any(each.name == GRADIENT for each in maps):
        raise ConfigError("word alignments are read from attention, and this model has no attention at all")
    pairs: list[tuple[int, int]] = []
    sources = targets = 0  # words in earlier segments
    for each in maps:
        columns, rows = word_numbers(each.columns[:-1]), word_numbers(each.rows[:-1])  # without </s>
        weights = np.array(each.weights)[:-1, :-1]
        # Weights are averaged over a target word's subwords and summed over a source word's (as Garg et al. 2019 do).
        for word in sorted({*rows}) if columns else ():
            shares = np.bincount(columns, weights[np.equal(rows, word)].mean(axis=0))
            pairs.append((sources + int(shares.argmax()), targets + word))
        sources += 1 + max(columns, default=-1)
        targets += 1 + max(rows, default=-1)
    return pairs


def word_numbers(subwords: Sequence[str]) -> list[int]:
    """Return the number of the word that each subword belongs to, from 0. subwords: without `</s>`."""
    numbers: list[int] = []
    word, at_boundary = -1, True
    for subword in subwords:
        for character in subword:
            if character == _BLANK:
                at_boundary = True
            elif at_boundary:
                word, at_boundary = word + 1, False
        numbers.append(word + 1 if at_boundary else word)  # a blank alone belongs to the word that follows
    return numbers
