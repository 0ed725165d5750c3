// Recurrent encoder-decoders: Elman, LSTM and GRU, with and without attention (Sutskever et al. 2014; Bahdanau et al.
// 2015; Luong et al. 2015).
//
// Shapes: S source tokens, k hypotheses, E width of embeddings, D of states, H of one direction's state, X of a layer's
// input. Matrices are (outputs, inputs), vectors of k rows lie behind one another.

import { concatenate, concatenateRows, dot, selectRows, sigmoid, softmax } from "./matrix.js";

const GATES = { rnn: 1, lstm: 4, gru: 3 };

// One direction of a layer: W (gates * H, X), U (gates * H, H) and their biases.
class Cell {
  constructor(kind, weights, name, suffix) {
    this.kind = kind;
    this.w = weights.matrix(`${name}.weight_ih_l0${suffix}`);
    this.u = weights.matrix(`${name}.weight_hh_l0${suffix}`);
    const [b, c] = ["ih", "hh"].map((part) => weights.vector(`${name}.bias_${part}_l0${suffix}`));
    this.bias = b.map((value, i) => value + c[i]);
    this.width = this.u.columns; // H
    if (kind === "gru") {
      this.gates = this.u.part(0, 2 * this.width);
      this.candidate = this.u.part(2 * this.width, 3 * this.width);
    }
  }

  zeros() {
    return { h: new Float32Array(this.width), c: this.kind === "lstm" ? new Float32Array(this.width) : null };
  }

  // x W + b: independent of the state, so that all positions of a source are one multiplication. (N, X) -> (N, gates * H)
  project(x, n) {
    return this.w.multiply(x, n, this.bias);
  }

  // The state after one step of k hypotheses: inputs (k, gates * H) from `project`, h and c (k, H).
  step(inputs, { h, c }, k) {
    const H = this.width;
    const after = { h: new Float32Array(k * H), c: c && new Float32Array(k * H) };
    if (this.kind === "gru") return this.gruStep(inputs, h, after, k);
    const recurrent = this.u.multiply(h, k);
    const width = GATES[this.kind] * H;
    for (let row = 0; row < k; row++)
      for (let i = 0; i < H; i++) {
        const gate = (number) => inputs[row * width + number * H + i] + recurrent[row * width + number * H + i];
        const place = row * H + i;
        if (this.kind === "rnn") {
          after.h[place] = Math.tanh(gate(0)); // h_t = tanh(x W + h_{t-1} U + b)
          continue;
        }
        // C_t = f C_{t-1} + i C~: a sum, along which a network remembers; h_t = o tanh(C_t)
        after.c[place] = sigmoid(gate(1)) * c[place] + sigmoid(gate(0)) * Math.tanh(gate(2));
        after.h[place] = sigmoid(gate(3)) * Math.tanh(after.c[place]);
      }
    return after;
  }

  // r, z = sigmoid(x W + h U + b); h~ = tanh(x W + (r h) U + b); h_t = (1 - z) h~ + z h_{t-1} (Cho et al. 2014)
  gruStep(inputs, h, after, k) {
    const H = this.width;
    const recurrent = this.gates.multiply(h, k); // (k, 2H)
    const gate = (row, number, i) => sigmoid(inputs[row * 3 * H + number * H + i] + recurrent[row * 2 * H + number * H + i]);
    const reset = new Float32Array(k * H);
    for (let row = 0; row < k; row++)
      for (let i = 0; i < H; i++) reset[row * H + i] = gate(row, 0, i) * h[row * H + i];
    const candidate = this.candidate.multiply(reset, k);
    for (let row = 0; row < k; row++)
      for (let i = 0; i < H; i++) {
        const place = row * H + i;
        const z = gate(row, 1, i);
        after.h[place] = (1 - z) * Math.tanh(inputs[row * 3 * H + 2 * H + i] + candidate[place]) + z * h[place];
      }
    return after;
  }

  // Read a source (S, X) from its first token to the last, or backwards: all h (S, H), and the last state.
  read(x, length, backwards) {
    const projected = this.project(x, length);
    const width = GATES[this.kind] * this.width;
    const outputs = new Float32Array(length * this.width);
    let state = this.zeros();
    for (let step = 0; step < length; step++) {
      const position = backwards ? length - 1 - step : step;
      state = this.step(projected.subarray(position * width, (position + 1) * width), state, 1);
      outputs.set(state.h, position * this.width);
    }
    return { outputs, state };
  }
}

export class RecurrentModel {
  constructor(options, weights) {
    this.options = options;
    this.embeddings = weights.embeddings(options.share_embeddings);
    this.outputBias = weights.vector("output_bias");
    const directions = options.bidirectional ? ["", "_reverse"] : [""];
    const numbers = [...Array(options.layers).keys()];
    this.encoder = numbers.map((n) => directions.map((suffix) => new Cell(options.cell, weights, `encoder.${n}`, suffix)));
    this.decoder = numbers.map((n) => new Cell(options.cell, weights, `decoder.${n}`, ""));
    const matrix = (name) => (weights.has(name) ? weights.matrix(name) : null);
    this.readout = matrix("readout.weight");
    this.key = matrix("attention.key.weight");
    this.query = matrix("attention.query.weight");
    if (options.attention === "additive") {
      this.keyBias = weights.vector("attention.key.bias");
      this.energy = weights.matrix("attention.energy.weight").row(0); // v, (D)
    }
  }

  // Encode a source; return the state of one hypothesis before the first token.
  start(source) {
    const length = source.length;
    let x = concatenateRows(source.map((id) => this.embeddings.source.row(id))); // (S, E)
    const layers = this.encoder.map((cells) => {
      const directions = cells.map((cell, number) => cell.read(x, length, number === 1));
      // Both directions side by side, in the outputs and in the state that a decoder's layer begins with.
      x = concatenate(directions.map((each) => each.outputs), length); // (S, D)
      const [h, c] = ["h", "c"].map((part) => directions.map((each) => each.state[part]));
      return { h: concatenate(h, 1), c: c[0] && concatenate(c, 1) };
    });
    const memory = this.options.attention === "none" ? null : { encoded: x, keys: this.keys(x, length), length };
    return new RecurrentState(layers, this.options.input_feeding ? new Float32Array(this.options.d_model) : null, memory);
  }

  // The part of the score that is independent of the decoder, once per sentence: W h_j, or U h_j + b. (S, D)
  keys(encoded, length) {
    return this.key ? this.key.multiply(encoded, length, this.keyBias) : encoded;
  }

  // The last token of each of k hypotheses -> features (k, E) of the next one; the state is changed.
  step(tokens, state) {
    const k = tokens.length;
    const x = concatenateRows(tokens.map((id) => this.embeddings.target.row(id))); // (k, E)
    let h = state.fed ? concatenate([x, state.fed], k) : x;
    this.decoder.forEach((cell, number) => {
      state.layers[number] = cell.step(cell.project(h, k), state.layers[number], k);
      h = state.layers[number].h;
    });
    const terms = [h]; // s_t
    if (state.memory) terms.push(this.attend(h, state, k)); // c_t
    if (this.options.token_term) terms.push(x);
    let features = this.readout ? this.readout.multiply(concatenate(terms, k), k) : h; // [s; c; x] W
    if (state.fed) state.fed = features = features.map(Math.tanh); // Luong et al. 2015, equation 5
    return features;
  }

  // a_tj = softmax_j(score(s_t, h_j)), c_t = sum_j a_tj h_j: states (k, D) -> contexts (k, D)
  attend(s, state, k) {
    const { encoded, keys, length } = state.memory;
    const D = this.options.hidden;
    const query = this.query ? this.query.multiply(s, k) : s;
    const contexts = new Float32Array(k * D);
    state.attention = [];
    for (let row = 0; row < k; row++) {
      const scores = new Float32Array(length);
      for (let j = 0; j < length; j++) scores[j] = this.score(query, row * D, keys, j * D, D);
      state.attention.push(softmax(scores));
      for (let j = 0; j < length; j++)
        for (let i = 0; i < D; i++) contexts[row * D + i] += scores[j] * encoded[j * D + i];
    }
    return contexts;
  }

  // <s, h> and s W h are dot products with the keys; additive is v tanh(W s + U h).
  score(query, q, keys, j, D) {
    if (!this.energy) return dot(query, keys, q, j, D);
    let sum = 0;
    for (let i = 0; i < D; i++) sum += this.energy[i] * Math.tanh(query[q + i] + keys[j + i]);
    return sum;
  }

  // Features (k, E) -> logits (k, V): dot products with the output embeddings, plus the bias.
  logits(features, k) {
    return this.embeddings.output.multiply(features, k, this.outputBias);
  }
}

// Each layer's h and c (k, D), the features fed back (k, E), and what a sentence's hypotheses attend to together.
class RecurrentState {
  constructor(layers, fed, memory) {
    Object.assign(this, { layers, fed, memory, attention: null });
    this.hypotheses = 1;
  }

  // Keep, repeat or drop hypotheses: the new ones continue those numbered `parents`.
  select(parents) {
    const rows = (x) => x && selectRows(x, x.length / this.hypotheses, parents);
    this.layers = this.layers.map(({ h, c }) => ({ h: rows(h), c: rows(c) }));
    this.fed = rows(this.fed);
    this.hypotheses = parents.length;
  }
}
