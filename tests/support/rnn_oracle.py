"""The recurrent models as their papers write them: one sentence, one token and one cell at a time, without padding.

Shapes: X width of a cell's input, H of its state, S source tokens, D width of states, E of embeddings, V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor

from tolka.data.batch import Batch
from tolka.models.rnn.model import RecurrentSeq2Seq

State = tuple[Tensor, ...]
"""(h,), or (h, C) of an LSTM; each (H,)."""


def cell(kind: str, layer: torch.nn.Module, suffix: str, x: Tensor, state: State) -> State:
    """One step: x (X,) and the state before it -> the state after it. suffix: "" forward, "_reverse" backward."""
    w, u, b_input, b_state = (
        getattr(layer, f"{name}_l0{suffix}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    b, h = b_input + b_state, state[0]
    if kind == "rnn":  # Elman (1990)
        return (torch.tanh(w @ x + u @ h + b),)
    gates = 4 if kind == "lstm" else 3
    w, u, b = (tensor.chunk(gates) for tensor in (w, u, b))
    if kind == "lstm":  # Hochreiter and Schmidhuber (1997), Gers et al. (2000)
        i = torch.sigmoid(w[0] @ x + u[0] @ h + b[0])
        f = torch.sigmoid(w[1] @ x + u[1] @ h + b[1])
        candidate = torch.tanh(w[2] @ x + u[2] @ h + b[2])
        o = torch.sigmoid(w[3] @ x + u[3] @ h + b[3])
        memory = f * state[1] + i * candidate
        return o * torch.tanh(memory), memory
    r = torch.sigmoid(w[0] @ x + u[0] @ h + b[0])  # Cho et al. (2014), equations 5 to 8
    z = torch.sigmoid(w[1] @ x + u[1] @ h + b[1])
    candidate = torch.tanh(w[2] @ x + u[2] @ (r * h) + b[2])
    return (z * h + (1 - z) * candidate,)


def run(kind: str, layer: torch.nn.Module, suffix: str, inputs: list[Tensor], width: int) -> list[State]:
    """States behind each of the inputs, from zeros on; the last one is where the reading ends."""
    state: State = (inputs[0].new_zeros(width),) * (2 if kind == "lstm" else 1)
    states = []
    for x in inputs:
        state = cell(kind, layer, suffix, x, state)
        states.append(state)
    return states


def encode(model: RecurrentSeq2Seq, source: Tensor) -> tuple[list[Tensor], list[State]]:
    """A sentence's ids (S,) -> the last layer's states, S of (D,), and the state in which each layer ends."""
    kind, both = model.config.cell, model.config.bidirectional
    width = model.config.hidden // (2 if both else 1)
    x, ends = [model.source_embedding.weight[token] for token in source], []
    for layer in model.encoder:
        states = run(kind, layer, "", x, width)
        end = states[-1]
        if both:
            backward = run(kind, layer, "_reverse", x[::-1], width)
            end = tuple(torch.cat(parts) for parts in zip(end, backward[-1], strict=True))
            states = [
                tuple(map(torch.cat, zip(*pair, strict=True))) for pair in zip(states, backward[::-1], strict=True)
            ]
        x = [state[0] for state in states]
        ends.append(end)
    return x, ends


def attend(model: RecurrentSeq2Seq, s: Tensor, encoded: list[Tensor]) -> Tensor:
    """c = sum_j a_j h_j with a = softmax_j(score(s, h_j)): s (D,), h_j (D,) -> (D,)."""
    kind = model.config.attention
    maps: Any = model.attention  # an Alignment, or None where kind is "none"
    if kind == "dot":  # Luong et al. (2015), equation 8
        scores = [s @ h for h in encoded]
    elif kind == "general":
        scores = [s @ maps.key.weight @ h for h in encoded]
    else:  # Bahdanau et al. (2015), appendix A.1.2, with a bias
        v = maps.energy.weight[0]
        scores = [v @ torch.tanh(maps.query.weight @ s + maps.key.weight @ h + maps.key.bias) for h in encoded]
    weights = torch.stack(scores).softmax(dim=0)
    return sum((a * h for a, h in zip(weights, encoded, strict=True)), torch.zeros_like(s))


def sentence_logits(model: RecurrentSeq2Seq, source: Tensor, target_in: Tensor) -> list[Tensor]:
    """Ids (S,) and, behind <s>, (T,) -> T rows of logits (V,)."""
    config = model.config
    readout: Any = model.readout
    output: Any = model.output_embedding
    encoded, states = encode(model, source)
    fed, rows = source.new_zeros(config.d_model, dtype=encoded[0].dtype), []
    for token in target_in:
        x = model.target_embedding.weight[token]
        h = torch.cat([x, fed]) if config.input_feeding else x
        for number, layer in enumerate(model.decoder):
            states[number] = cell(config.cell, layer, "", h, states[number])
            h = states[number][0]
        terms = [h]
        if config.attention != "none":
            terms.append(attend(model, h, encoded))
        if config.token_term:
            terms.append(x)
        features = torch.cat(terms)
        if features.numel() != config.d_model or len(terms) > 1:
            features = readout.weight @ features
        if config.input_feeding:  # Luong et al. (2015), equation 5 and section 3.3
            features = fed = torch.tanh(features)
        rows.append(output.weight @ features + model.output_bias)
    return rows


def logits(model: RecurrentSeq2Seq, batch: Batch) -> Tensor:
    """(N, V), of the valid target tokens, sentence by sentence; without dropout."""
    rows = []
    lengths = zip(batch.source_lengths.tolist(), batch.target_lengths.tolist(), strict=True)
    for number, (source_length, target_length) in enumerate(lengths):
        source, target_in = batch.source[number, :source_length], batch.target_in[number, :target_length]
        rows += sentence_logits(model, source, target_in)
    return torch.stack(rows)
