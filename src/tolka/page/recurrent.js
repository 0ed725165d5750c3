// Recurrent encoder-decoders: Elman, LSTM and GRU, with and without attention (Sutskever et al. 2014; Bahdanau et al.
// 2015; Luong et al. 2015).
//
// Shapes: S source tokens, k hypotheses, E width of embeddings, D of states, H of one direction's state, X of a layer's
// input.

import { attend, dot, join, sigmoid } from "./matrix.js";

/** One direction of a layer: W (gates * H, X), U (gates * H, H) and a bias. A state is {h (H), c (H)}, c of an LSTM. */
class RecurrentLayer {
  constructor(cell, weights, name, suffix = "") {
    const [w, u] = ["ih", "hh"].map((part) => weights.get(`${name}.weight_${part}_l0${suffix}`));
    const [b, other] = ["ih", "hh"].map((part) => weights.get(`${name}.bias_${part}_l0${suffix}`));
    Object.assign(this, { next: this[cell], w, u, bias: b.map((value, i) => value + other[i]), width: u.columns });
  }

  /** The states after one step: x (k, X), the inputs of k hypotheses, and their states before. */
  step(x, states) {
    return this.next(this.w.multiply(x, this.bias), states);
  }

  /** Read a source (S, X) from the first token to the last, or backwards: h at each position, and the last state. */
  read(x, isBackward) {
    const inputs = this.w.multiply(x, this.bias); // independent of the states: one multiplication for all positions
    const positions = isBackward ? [...x.keys()].reverse() : x.keys();
    const outputs = [];
    let state = { h: new Float32Array(this.width), c: new Float32Array(this.width) };
    for (const position of positions) {
      [state] = this.next([inputs[position]], [state]);
      outputs[position] = state.h;
    }
    return { outputs, last: state };
  }

  /** h_t = tanh(x W + h_{t-1} U + b) (Elman 1990) */
  rnn(inputs, states) {
    const recurrent = this.u.multiply(states.map(({ h }) => h));
    return states.map(({ h, c }, n) => ({ h: h.map((_, i) => Math.tanh(inputs[n][i] + recurrent[n][i])), c }));
  }

  /**
   * i, f, o = sigmoid(.), C~ = tanh(.), each of x W + h_{t-1} U + b; C_t = f C_{t-1} + i C~; h_t = o tanh(C_t)
   * (Hochreiter and Schmidhuber 1997): C_t is a sum, along which a network remembers.
   */
  lstm(inputs, states) {
    const recurrent = this.u.multiply(states.map(({ h }) => h));
    return states.map(({ c: before }, n) => {
      const gate = (number, i) => inputs[n][number * this.width + i] + recurrent[n][number * this.width + i];
      const c = before.map((value, i) => sigmoid(gate(1, i)) * value + sigmoid(gate(0, i)) * Math.tanh(gate(2, i)));
      return { h: c.map((value, i) => sigmoid(gate(3, i)) * Math.tanh(value)), c };
    });
  }

  /** r, z = sigmoid(x W + h U + b); h~ = tanh(x W + (r h) U + b); h_t = (1 - z) h~ + z h_{t-1} (Cho et al. 2014) */
  gru(inputs, states) {
    const H = this.width;
    const recurrent = this.u.part(0, 2 * H).multiply(states.map(({ h }) => h));
    const gate = (n, number, i) => sigmoid(inputs[n][number * H + i] + recurrent[n][number * H + i]);
    const reset = states.map(({ h }, n) => h.map((value, i) => gate(n, 0, i) * value));
    const candidates = this.u.part(2 * H).multiply(reset);
    const mix = (z, before, candidate) => (1 - z) * Math.tanh(candidate) + z * before;
    const next = (h, n) => h.map((before, i) => mix(gate(n, 1, i), before, inputs[n][2 * H + i] + candidates[n][i]));
    return states.map(({ h, c }, n) => ({ h: next(h, n), c }));
  }
}

export class RecurrentModel {
  constructor(options, weights) {
    this.options = options;
    this.embeddings = weights.embeddings(options.share_embeddings);
    this.outputBias = weights.get("output_bias");
    const suffixes = options.bidirectional ? ["", "_reverse"] : [""];
    const layers = [...Array(options.layers).keys()];
    const layer = (name, suffix) => new RecurrentLayer(options.cell, weights, name, suffix);
    this.encoder = layers.map((number) => suffixes.map((suffix) => layer(`encoder.${number}`, suffix)));
    this.decoder = layers.map((number) => layer(`decoder.${number}`));
    for (const name of ["key", "query", "energy"]) this[name] = weights.find(`attention.${name}.weight`);
    this.keyBias = weights.find("attention.key.bias");
    this.readout = weights.find("readout.weight");
    const v = this.energy?.row(0); // (D)
    // <s, h> and s W h are dot products with keys h or W h; additive is v tanh(W s + U h).
    this.score = v ? (query, key) => dot(v, query.map((value, i) => Math.tanh(value + key[i]))) : dot;
  }

  /** Encode a source: the state of a hypothesis without tokens, and the memory that all hypotheses attend to. */
  start(source) {
    let x = source.map((id) => this.embeddings.source.row(id)); // (S, E)
    const layers = this.encoder.map((directions) => {
      const read = directions.map((direction, number) => direction.read(x, number === 1));
      // Both directions side by side, in the outputs and in the state that a layer of the decoder begins with.
      x = x.map((_, position) => join(read.map(({ outputs }) => outputs[position]))); // (S, D)
      return { h: join(read.map(({ last }) => last.h)), c: join(read.map(({ last }) => last.c)) };
    });
    const state = { layers, fed: new Float32Array(this.options.d_model) };
    if (this.options.attention === "none") return { state, memory: null };
    const keys = this.key ? this.key.multiply(x, this.keyBias) : x; // the part of the scores that no step changes
    return { state, memory: x.map((value, j) => ({ key: keys[j], value })) };
  }

  /** The last tokens of k hypotheses and their states -> of each the features (E) of the next token, and its state. */
  step(tokens, states, memory) {
    const { input_feeding, token_term } = this.options;
    const x = tokens.map((id) => this.embeddings.target.row(id)); // (k, E)
    let h = input_feeding ? x.map((row, n) => join([row, states[n].fed])) : x;
    const layers = this.decoder.map((layer, number) => {
      const after = layer.step(h, states.map((state) => state.layers[number]));
      h = after.map((each) => each.h);
      return after;
    });
    // s_t asks; the features are [s_t; c_t; x_t] W, or of the terms that there are.
    const queries = memory && this.query ? this.query.multiply(h) : h;
    const nothing = { context: [], weights: null };
    const attended = queries.map((query) => (memory ? attend(query, memory, this.score) : nothing));
    const terms = x.map((row, n) => join([h[n], attended[n].context, token_term ? row : []]));
    let features = this.readout ? this.readout.multiply(terms) : h; // (k, E)
    if (input_feeding) features = features.map((row) => row.map(Math.tanh)); // Luong et al. 2015, equation 5
    return features.map((row, n) => ({
      features: row,
      state: { layers: layers.map((after) => after[n]), fed: row },
      attention: attended[n].weights,
    }));
  }
}
