"""How far gradients flow back through a recurrent encoder (Bengio et al. 1994; Pascanu et al. 2013, equation 5).

    python scripts/gradient_flow.py runs/rnn runs/lstm -o gradient_flow.svg

prints, for each model, the norm of the total derivative of a sentence's loss with respect to the states of its encoder,
by their distance from the end of the recurrence, and draws these. The derivative goes through everything that depends
on a state: later states, upper layers, attention, the decoder. Shapes: B sentences, S source positions.
"""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from tolka.data.batch import Batch, collate
from tolka.formats.any_model import load_any
from tolka.losses.cross_entropy import token_nll
from tolka.metrics.tables import table
from tolka.models.base import Seq2Seq
from tolka.models.rnn.model import RecurrentSeq2Seq
from tolka.nn.rnn_cells import RecurrentLayer, State
from tolka.system.package_data import sample_dir
from tolka.text.lines import read_lines

PAIRS = 64  # measured as one batch
SHOWN = (0, 5, 10, 20)  # distances in the table


@dataclass(frozen=True)
class GradientFlow:
    """Gradient norms of one layer and direction ("encoder.0.forward") and one part of its state, h or C.

    norms: by distance, in steps, from the final state of the recurrence (0): the norm of the total derivative of a
    sentence's loss, in nats, with respect to the state; the mean over the `sentences` that are long enough.
    """

    layer: str
    state: str
    norms: list[float]
    sentences: list[int]


@contextmanager
def unrolled(model: RecurrentSeq2Seq) -> Iterator[dict[str, list[State]]]:
    """Let the encoder compute its equations step by step; yields its states, part of the graph, by layer."""
    # torch's kernel does not return C_t, nor states whose gradient can be asked for.
    states: dict[str, list[State]] = {}
    layers = list(model.encoder)

    def encode(number: int, layer: RecurrentLayer, x: Tensor, lengths: Tensor) -> tuple[Tensor, State]:
        names = ("forward", "backward")
        both = [layer.unroll(x, lengths, direction=direction) for direction in layer.directions]
        states.update({f"encoder.{number}.{name}": one for name, one in zip(names, both, strict=False)})
        inside = torch.arange(x.size(1), device=x.device) < lengths[:, None]
        h = torch.cat([torch.stack([state[0] for state in one], dim=1) for one in both], dim=-1)
        # The backward direction ends at the first token.
        ends = [one[0] if direction else one[-1] for direction, one in enumerate(both)]
        return h * inside[..., None], tuple(torch.cat(parts, dim=-1) for parts in zip(*ends, strict=True))

    for number, layer in enumerate(layers):
        layer.encode = lambda x, lengths, n=number, each=layer: encode(n, each, x, lengths)  # type: ignore[method-assign,misc]
    try:
        yield states
    finally:
        for layer in layers:
            del layer.encode


def gradient_flow(model: Seq2Seq, batch: Batch) -> list[GradientFlow]:
    """Measure a model with dropout off; leave no gradients. batch: on the model's device.

    ValueError for an architecture without a recurrence.
    """
    if not isinstance(model, RecurrentSeq2Seq):
        raise ValueError(f"{type(model).__name__} has no recurrence along which a gradient could flow")
    training = model.training
    model.eval()
    try:
        with torch.enable_grad(), unrolled(model) as found:
            features = model(batch)
            # A sum over sentences: the gradient at a state is of its own sentence's loss, as sentences are independent.
            loss = torch.stack([part.sum() for part in token_nll(model, features, batch.targets)]).sum()
            tensors = [tensor for steps in found.values() for state in steps for tensor in state]
            # A state that reaches no loss, as one of padding may, has a gradient of zeros.
            gradients = iter(torch.autograd.grad(loss, tensors, allow_unused=True, materialize_grads=True))
    finally:
        model.train(training)
    return [flow for layer, steps in found.items() for flow in _flows(layer, steps, gradients, batch)]


def _flows(layer: str, steps: list[State], gradients: Iterator[Tensor], batch: Batch) -> Iterator[GradientFlow]:
    """Yield the flow of each part of the state. gradients: of all steps' parts, in their order."""
    norms = torch.stack([torch.stack([next(gradients).norm(dim=-1) for _ in state]) for state in steps]).cpu()
    lengths = batch.source_lengths.cpu()
    for part, part_norms in zip(("h", "C"), norms.unbind(1), strict=False):  # (S, B)
        means, counts = [], []
        for distance in range(len(steps)):
            rows = (lengths > distance).nonzero().squeeze(1)
            if not len(rows):
                break
            # The recurrence ends at the last token, or, where it runs backward, at the first.
            times = torch.full_like(rows, distance) if layer.endswith("backward") else lengths[rows] - 1 - distance
            means.append(part_norms[times, rows].mean().item())
            counts.append(len(rows))
        yield GradientFlow(layer, part, means, counts)


def draw(flows: dict[str, list[GradientFlow]], path: Path) -> None:
    """Draw the last layer's h of each model, on a logarithmic scale."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name, found in flows.items():
        last = [flow for flow in found if flow.state == "h" and flow.layer.endswith("forward")][-1]
        axes.plot(last.norms, label=name)
    axes.set(yscale="log", xlabel="steps before the end", ylabel="norm of the derivative of the loss")
    axes.legend()
    figure.savefig(path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path, help="runs or model directories of recurrent models")
    parser.add_argument("--source", type=Path, default=sample_dir() / "valid.en", help="sources, one per line")
    parser.add_argument("--target", type=Path, default=sample_dir() / "valid.ko", help="their translations")
    parser.add_argument("-o", "--output", type=Path, help="a picture to write: .svg or .png")
    options = parser.parse_args(arguments)
    sources, targets = (list(read_lines(path))[:PAIRS] for path in (options.source, options.target))
    flows = {}
    for name in options.models:
        saved = load_any(name)
        batch = collate(saved.tokenizer.encode_source(sources), saved.tokenizer.encode_target(targets))
        flows[str(name)] = gradient_flow(saved.model, batch)
    rows = [
        [name, flow.layer, flow.state, *(f"{flow.norms[d]:.2g}" if d < len(flow.norms) else "" for d in SHOWN)]
        for name, found in flows.items()
        for flow in found
    ]
    print(table(rows, ["model", "layer", "state", *(f"{distance} steps" for distance in SHOWN)], "lllrrrr"))
    if options.output:
        draw(flows, options.output)


if __name__ == "__main__":
    main()
