// The Transformer (Vaswani et al. 2017) with all of tolka's options: norms, activations, positions.
//
// Shapes: S source tokens, k hypotheses, N rows of either, D model width, H heads, K and V widths of a head's keys and
// values, F inner width.

import { attend, dot, join, sigmoid } from "./matrix.js";
import { BOS } from "./search.js";
import { EOS } from "./tokenizer.js";

/** The Gauss error function (Abramowitz and Stegun 1964, 7.1.26), to 1.5e-7. */
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return Math.sign(x) * (1 - series * Math.exp(-x * x));
}

const swish = (x) => x * sigmoid(x);
/** f of FFN(x) = f(x W_1 + b_1) W_2 + b_2, of a row. SwiGLU: swish(x W + b) * (x V + c) (Shazeer 2020). */
const ACTIVATIONS = {
  relu: (row) => row.map((x) => Math.max(0, x)),
  gelu: (row) => row.map((x) => (x / 2) * (1 + erf(x / Math.SQRT2))),
  swish: (row) => row.map(swish),
  swiglu: (row) => row.subarray(0, row.length / 2).map((x, i) => swish(x) * row[row.length / 2 + i]),
};

/** x W^T + b; of the rows from .. to - 1 of W alone, if these are given. */
function linear(weights, name, from, to) {
  const [matrix, bias] = [weights.get(`${name}.weight`).part(from, to), weights.get(`${name}.bias`).subarray(from, to)];
  return (x) => matrix.multiply(x, bias);
}

/** LayerNorm (Ba et al. 2016), or RMSNorm (Zhang and Sennrich 2019), which neither centres nor has a bias. */
function norm(weights, name, kind) {
  const [gain, bias] = [weights.get(`${name}.weight`), weights.find(`${name}.bias`)];
  const [centres, epsilon] = kind === "layernorm" ? [true, 1e-5] : [false, 1e-6];
  const normalize = (row) => {
    const centre = centres ? row.reduce((sum, x) => sum + x, 0) / row.length : 0;
    const variance = row.reduce((sum, x) => sum + (x - centre) ** 2, 0) / row.length;
    return row.map((x, i) => ((x - centre) / Math.sqrt(variance + epsilon)) * gain[i] + (bias ? bias[i] : 0));
  };
  return (x) => x.map(normalize);
}

const add = (x, y) => x.map((row, n) => row.map((value, i) => value + y[n][i]));

/** Post-norm, as in the paper: Norm(x + f(x)). Pre-norm (Xiong et al. 2020): x + f(Norm(x)). */
function residual(weights, name, options) {
  const normalize = norm(weights, `${name}.norm`, options.normalization);
  return options.norm === "pre" ? (x, f) => add(x, f(normalize(x))) : (x, f) => normalize(add(x, f(x)));
}

function feedForward(weights, name, { activation }) {
  const [inner, outer] = ["inner", "outer"].map((part) => linear(weights, `${name}.${part}`));
  return (x) => outer(inner(x).map(ACTIVATIONS[activation])); // (N, D) -> (N, F) -> (N, D)
}

/** softmax(q K^T / sqrt(K)) V in H heads. A memory is an array of positions: {key (K), value (V)} of every head. */
class Attention {
  constructor(weights, name, { heads, d_model, d_v, positions }) {
    const fused = `${name}.query_key_value`; // of self-attention: W_Q, W_K and W_V in one matrix
    const isSelf = weights.find(`${fused}.weight`);
    this.query = isSelf ? linear(weights, fused, 0, d_model) : linear(weights, `${name}.query`);
    this.keyValue = isSelf ? linear(weights, fused, d_model) : linear(weights, `${name}.key_value`);
    this.output = linear(weights, `${name}.output`);
    Object.assign(this, { heads: [...Array(heads).keys()], keyWidth: d_model / heads, valueWidth: d_v, empty: [] });
    this.isRotary = isSelf && positions === "rotary";
    // A dot product of K terms of variance 1 has variance K: unscaled, the softmax would saturate.
    this.score = (query, key) => dot(query, key) / Math.sqrt(this.keyWidth);
  }

  /** A head's part of a row's queries or keys. With rotary positions (Su et al. 2021) each pair of values, as a complex
   *  number, is rotated by position / 10000^(2i / K), so that scores depend on distances alone. */
  head(row, head, position) {
    const vector = row.slice(head * this.keyWidth, (head + 1) * this.keyWidth);
    for (let i = 0; this.isRotary && i < vector.length; i += 2) {
      const angle = position * 10000 ** (-i / this.keyWidth);
      const [a, b] = [vector[i], vector[i + 1]];
      vector[i] = a * Math.cos(angle) - b * Math.sin(angle);
      vector[i + 1] = a * Math.sin(angle) + b * Math.cos(angle);
    }
    return vector;
  }

  /** Rows (N, D) as N positions of a memory. positions: of the rows, for rotary positions. */
  projectMemory(x, positions) {
    const values = this.heads.length * this.keyWidth; // where they begin
    const value = (row, head) => row.subarray(values + head * this.valueWidth, values + (head + 1) * this.valueWidth);
    return this.keyValue(x).map((row, n) =>
      this.heads.map((head) => ({ key: this.head(row, head, positions[n]), value: value(row, head) })),
    );
  }

  /** Rows (N, D), and the memory of each -> outputs (N, D), and attention (S) of each, the mean of its heads. */
  attendToMemory(x, memories, positions) {
    const attended = this.query(x).map((row, n) =>
      this.heads.map((head) => {
        const memory = memories[n].map((heads) => heads[head]);
        return attend(this.head(row, head, positions[n]), memory, this.score);
      }),
    );
    const mean = (heads, j) => heads.reduce((sum, { weights }) => sum + weights[j], 0) / heads.length;
    const attention = attended.map((heads) => heads[0].weights.map((_, j) => mean(heads, j)));
    return { outputs: this.output(attended.map((heads) => join(heads.map(({ context }) => context)))), attention };
  }

  /** The new positions x (k, D) of k hypotheses, whose prefixes they lengthen: what comes later is not there yet. */
  readPrefix(x, prefixes, positions) {
    const entries = this.projectMemory(x, positions);
    const longer = prefixes.map((prefix, n) => [...prefix, entries[n]]);
    return { longer, outputs: this.attendToMemory(x, longer, positions).outputs };
  }
}

/** The SSRU in place of a decoder's self-attention (Kim et al. 2019): a prefix is one state c (D). */
class Ssru {
  constructor(weights, name) {
    Object.assign(this, { input: weights.get(`${name}.input.weight`), forget: linear(weights, `${name}.forget`) });
    this.empty = new Float32Array(this.input.rows);
  }

  /** c_t = f_t c_{t-1} + (1 - f_t) W x_t, f_t = sigmoid(W_f x_t + b); the output is max(0, c_t). */
  readPrefix(x, prefixes) {
    const [inputs, gates] = [this.input.multiply(x), this.forget(x)];
    const mix = (f, before, input) => f * before + (1 - f) * input;
    const longer = prefixes.map((c, n) => c.map((before, i) => mix(sigmoid(gates[n][i]), before, inputs[n][i])));
    return { longer, outputs: longer.map(ACTIVATIONS.relu) };
  }
}

/**
 * PE(pos, 2i) = sin(pos / 10000^(2i / D)), PE(pos, 2i + 1) = cos(same), or in the other kinds first all sines and then
 * all cosines. Angles are rounded as in training.
 */
function sinusoid(position, width, kind) {
  const vector = new Float32Array(width);
  const isFairseq = kind === "sinusoidal_fairseq"; // positions from 2; of an odd D a last 0
  const half = isFairseq ? Math.floor(width / 2) : Math.ceil(width / 2);
  const period = { sinusoidal_fairseq: 2 * half - 2, sinusoidal_marian: width - 2 }[kind] ?? width;
  for (let i = 0; i < half; i++) {
    const rate = Math.fround(Math.exp(Math.fround(2 * i * Math.fround(-Math.log(10000) / period))));
    let angle = Math.fround((position + (isFairseq ? 2 : 0)) * rate);
    if (kind === "sinusoidal_halves") angle = position / 10000 ** ((2 * i) / width);
    // Of an odd D Marian's last sine is in the place of the first cosine.
    const halves = [i, i + (kind === "sinusoidal_marian" ? Math.floor(width / 2) : half)];
    const [sine, cosine] = kind === "sinusoidal" ? [2 * i, 2 * i + 1] : halves;
    if (cosine < width) vector[cosine] = Math.cos(angle);
    vector[sine] = Math.sin(angle);
  }
  return vector;
}

export class TransformerModel {
  constructor(options, weights) {
    this.options = options;
    this.embeddings = weights.embeddings(options.share_embeddings);
    this.outputBias = weights.find("output_bias");
    const [source, target] = ["source", "target"].map((side) => weights.find(`${side}_positions.embedding.weight`));
    this.learned = { source, target };
    const layer = (name, isSsru) => ({
      attention: isSsru ? new Ssru(weights, `${name}.ssru`) : new Attention(weights, `${name}.attention`, options),
      aroundAttention: residual(weights, `${name}.around_attention`, options),
      feedForward: feedForward(weights, `${name}.feedforward`, options),
      aroundFeedForward: residual(weights, `${name}.around_feedforward`, options),
    });
    this.encoder = Array.from({ length: options.layers }, (_, number) => layer(`encoder.${number}`));
    this.decoder = Array.from({ length: options.decoder_layers }, (_, number) => ({
      ...layer(`decoder.${number}`, options.decoder === "ssru"),
      cross: new Attention(weights, `decoder.${number}.cross`, options),
      aroundCross: residual(weights, `decoder.${number}.around_cross`, options),
    }));
    // With pre-norm no layer normalises the sum of its changes, so that each stack ends with a norm.
    const last = (name) => (options.norm === "pre" ? norm(weights, name, options.normalization) : (x) => x);
    [this.encoderNorm, this.decoderNorm] = [last("encoder_norm"), last("decoder_norm")];
  }

  /** sqrt(D) * embedding + position, (N, D). In place of <s> the decoder may read </s>, or a vector of zeros. */
  embed(ids, side, positions) {
    const { d_model, scale_embeddings, max_positions, positions: kind, decoder_start } = this.options;
    return ids.map((id, n) => {
      const scale = id === BOS && decoder_start === "zero" ? 0 : scale_embeddings ? Math.sqrt(d_model) : 1;
      const token = id === BOS && decoder_start === "eos" ? EOS : id;
      const vector = this.embeddings[side].row(token).map((value) => value * scale);
      if (kind === "rotary") return vector; // which act inside of attention
      const learned = this.learned[side]?.row(Math.min(positions[n], max_positions - 1)); // later ones share the last
      const added = learned ?? sinusoid(positions[n], d_model, kind);
      return vector.map((value, i) => value + added[i]);
    });
  }

  /** Encode a source: the state of a hypothesis without tokens, and the memories that all hypotheses attend to. */
  start(source) {
    const positions = [...source.keys()];
    let x = this.embed(source, "source", positions); // (S, D)
    for (const { attention, aroundAttention, feedForward, aroundFeedForward } of this.encoder) {
      x = aroundAttention(x, (y) => {
        const memory = attention.projectMemory(y, positions);
        return attention.attendToMemory(y, positions.map(() => memory), positions).outputs; // all attend to all
      });
      x = aroundFeedForward(x, feedForward);
    }
    x = this.encoderNorm(x);
    const memory = this.decoder.map(({ cross }) => cross.projectMemory(x, positions));
    return { memory, state: { position: 0, prefixes: this.decoder.map(({ attention }) => attention.empty) } };
  }

  /** The last tokens of k hypotheses and their states -> of each the features (D) of the next token, and its state. */
  step(tokens, states, memory) {
    const positions = states.map(({ position }) => position);
    const prefixes = []; // of each layer
    let attention;
    let x = this.embed(tokens, "target", positions); // (k, D)
    for (const [number, layer] of this.decoder.entries()) {
      x = layer.aroundAttention(x, (y) => {
        const before = states.map((state) => state.prefixes[number]);
        const { longer, outputs } = layer.attention.readPrefix(y, before, positions);
        prefixes.push(longer);
        return outputs;
      });
      x = layer.aroundCross(x, (y) => {
        const attended = layer.cross.attendToMemory(y, states.map(() => memory[number]), positions);
        attention = attended.attention;
        return attended.outputs;
      });
      x = layer.aroundFeedForward(x, layer.feedForward);
    }
    return this.decoderNorm(x).map((features, n) => ({
      features,
      state: { position: positions[n] + 1, prefixes: prefixes.map((longer) => longer[n]) },
      attention: attention[n],
    }));
  }
}
