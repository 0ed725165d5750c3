"""A model whose decoding steps are CUDA graphs: one for each shape of work, whatever the architecture and the search.

Shapes: B sentences, k hypotheses a sentence, S source tokens, D width of features. Sentences stand in slots, of which
there are a power of two; those that are done stay in theirs until a quarter of the slots would do.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tolka.batch import BOS, Batch
from tolka.cuda_graph import WARM_UP, GraphPool, Recording, power_of_two, recorded
from tolka.errors import ConfigError
from tolka.models.arena import Arena, changed, copy_state, size_of, tensors
from tolka.models.base import DecoderState, Inspection, Seq2Seq

_MOST = 128  # graphs; steps of further shapes are computed without one
_COMES_AGAIN = 2  # steps of a shape that are computed without one: a capture takes as long as some of them
_LEAST_ROOM, _LEAST_WIDTH = 32, 16  # positions of hypotheses, and of sources


def check_captured(device: torch.device) -> None:
    """ConfigError where there are no CUDA graphs."""
    if device.type != "cuda":
        raise ConfigError(f"decoding.cuda_graphs=true needs a CUDA device, not {device.type}: leave it out")


class Shape(NamedTuple):
    """What a graph is for: slots, hypotheses in each, the sizes of a state's tensors."""

    slots: int
    beam: int
    sizes: tuple[torch.Size, ...]


@dataclass(frozen=True)
class CapturedState(DecoderState):
    """A model's state, and where in it the sentences are.

    slots (B,). beam: k. filled: steps so far. width: S. search: which one it is of. order (slots, k): hypotheses that
    the next step goes on with; None for all as they are. shape: of the model's state where graphs work on it, else
    None; then there are as many slots as sentences. room: steps that there may be in all before it is too small.
    """

    state: DecoderState
    slots: Tensor
    beam: int
    filled: int
    width: int
    search: int
    order: Tensor | None = None
    shape: Shape | None = None
    room: int = 0

    def select(self, rows: Tensor) -> "CapturedState":
        """See DecoderState.select; while there are not many slots too many, it is left to the next step."""
        slots = self.slots[rows[:, 0] // self.beam]
        inner = slots[:, None] * self.beam + rows % self.beam
        if self.shape is None or rows.size(1) != self.beam or 4 * power_of_two(len(rows)) <= self.shape.slots:
            state = self.ordered().select(inner)
            return replace(self, state=state, slots=_count(rows), beam=rows.size(1), order=None, shape=None)
        if self.beam == 1:  # there is nothing to re-order
            return replace(self, slots=slots)
        order = _in_order(self.shape, rows.device)
        order[slots] = inner
        return replace(self, slots=slots, order=order if self.order is None else self.order.flatten()[order])

    def ordered(self) -> DecoderState:
        """The model's state with the hypotheses to go on with."""
        return self.state if self.order is None else self.state.select(self.order)


def _count(rows: Tensor) -> Tensor:
    """0, 1 and so on, as many as there are rows."""
    return torch.arange(len(rows), device=rows.device)


def _in_order(shape: Shape, device: torch.device) -> Tensor:
    """(slots, k): all hypotheses where they are."""
    return torch.arange(shape.slots * shape.beam, device=device).view(shape.slots, shape.beam)


@dataclass(frozen=True)
class _Step:
    """A step of one shape. run: computes it on tensors that stay where they are: token and order (slots, k), which it
    reads, and the state. order: None where a sentence has one hypothesis. recording: of `run`, where there is one."""

    run: Callable[[], Tensor]
    token: Tensor
    order: Tensor | None
    recording: Recording | None = None

    def __call__(self) -> Tensor:
        """Features (slots, k, D), overwritten by the next step."""
        if self.recording is None:
            return self.run()
        self.recording.replay()
        return self.recording.result


class CapturedModel(Seq2Seq):
    """Decodes as the model does; all else is the model's own. One search at a time, without gradients.

    The first step, in which beam search has one hypothesis, is computed as ever; so is the encoder.
    """

    def __init__(self, model: Seq2Seq, device: torch.device) -> None:
        super().__init__()
        self.model = model
        self.vocabulary_size, self.feature_size = model.vocabulary_size, model.feature_size
        self._device = device
        self._searches = 0
        self.forget()

    def forget(self, size: int = 0) -> None:
        """All graphs and their memory. size: bytes for the states of those to come."""
        self._pool = GraphPool(self._device)
        self._arena = Arena(size, self._device)
        self._states: dict[Shape, DecoderState] = {}
        self._steps: dict[Shape, _Step] = {}
        self._uses: Counter[Shape] = Counter()
        self._captures = 0

    def forward(self, batch: Batch) -> Tensor:
        """See Seq2Seq.forward."""
        features: Tensor = self.model(batch)
        return features

    def logits(self, features: Tensor) -> Tensor:
        """See Seq2Seq.logits."""
        return self.model.logits(features)

    def logits_parameters(self) -> list[nn.Parameter]:
        """See Seq2Seq.logits_parameters."""
        return self.model.logits_parameters()

    def inspect(self, batch: Batch) -> Inspection:
        """See Seq2Seq.inspect."""
        return self.model.inspect(batch)

    def quantize(self) -> None:
        """See Seq2Seq.quantize."""
        self.model.quantize()

    def compile_layers(self, backend: str = "inductor") -> None:
        """See Seq2Seq.compile_layers."""
        self.model.compile_layers(backend)

    def start(self, source: Tensor, lengths: Tensor) -> CapturedState:
        """See Seq2Seq.start; a state of an earlier search is of no use from now on."""
        self._searches += 1
        state = self.model.start(source, lengths)
        return CapturedState(state, _count(source), 1, 0, source.size(1), self._searches)

    def step(self, token: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """See Seq2Seq.step; TolkaError where a step cannot be captured."""
        assert isinstance(state, CapturedState)
        if state.search != self._searches:
            raise RuntimeError("another search has begun on these graphs: its states are where this one's were")
        if state.filled == 0:
            features, inner = self.model.step(token, state.state)
            return features, replace(state, state=inner, filled=1)
        # What stays must be of use in any mode, and tensors of inference mode are not.
        with torch.inference_mode(False), torch.no_grad():
            if state.shape is None or state.filled + WARM_UP >= state.room:  # that many runs come with a capture
                state = self._placed(state)
            step = self._step(state)
        step.token.index_copy_(0, state.slots, token)
        if step.order is not None:
            assert state.shape is not None
            step.order.copy_(_in_order(state.shape, self._device) if state.order is None else state.order)
        features = step().index_select(0, state.slots)
        return features, replace(state, order=None, filled=state.filled + 1)

    def _placed(self, state: CapturedState) -> CapturedState:
        """Where graphs work on it, with more slots than sentences or more room than it needs."""
        inner, sentences = state.ordered(), len(state.slots)
        slots = power_of_two(sentences) if state.shape is None else state.shape.slots
        if state.shape is None and slots > sentences:
            rows = torch.arange(slots, device=self._device).clamp_(max=sentences - 1)  # the last one fills the rest
            inner = inner.select(rows[:, None] * state.beam + torch.arange(state.beam, device=self._device))
        room = power_of_two(max(_LEAST_ROOM, state.filled + WARM_UP + 1))
        width = power_of_two(max(_LEAST_WIDTH, state.width))
        fixed = self._arena.elsewhere(inner.fixed(state.filled, room, width))
        if not self._arena.has_room(fixed):
            self.forget(2 * size_of(fixed))  # as hypotheses grow
        shape = Shape(slots, state.beam, tuple(tensor.shape for tensor in tensors(fixed)))
        if shape in self._states:
            copy_state(fixed, self._states[shape])
        else:
            self._states[shape] = self._arena.place(fixed)
        return replace(state, state=self._states[shape], order=None, shape=shape, room=room)

    def _step(self, state: CapturedState) -> _Step:
        """The one of its shape, captured when that has proved to come again."""
        assert state.shape is not None
        if state.shape not in self._steps:
            self._steps[state.shape] = self._uncaptured(state.state, state.shape)
        step = self._steps[state.shape]
        self._uses[state.shape] += 1
        if step.recording is None and self._uses[state.shape] > _COMES_AGAIN and self._captures < _MOST:
            self._captures += 1
            step = self._steps[state.shape] = self._captured(step, state.state)
        return step

    def _uncaptured(self, state: DecoderState, shape: Shape) -> _Step:
        token = torch.full((shape.slots, shape.beam), BOS, dtype=torch.long, device=self._device)
        order = _in_order(shape, self._device) if shape.beam > 1 else None
        model = self.model
        return _Step(lambda: _advance(model, state, token, order), token, order)

    def _captured(self, step: _Step, state: DecoderState) -> _Step:
        """Leaves the state as it is, though running the step changes it."""
        kept = changed(state, Tensor.clone)
        what = f"a step of {len(step.token)} sentences"
        recording = recorded(step.run, self._pool, "decoding.cuda_graphs", what)
        copy_state(kept, state)
        return replace(step, recording=recording)


def _advance(model: Seq2Seq, state: DecoderState, token: Tensor, order: Tensor | None) -> Tensor:
    """Features of a step from `state`, which becomes the state after it, in the same tensors."""
    features, after = model.step(token, state if order is None else state.select(order))
    copy_state(after, state)
    return features
