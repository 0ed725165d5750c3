// The Transformer (Vaswani et al. 2017) with all of tolka's options: norms, activations, positions.
//
// Shapes: S source tokens, k hypotheses, N rows of either, D model width, H heads, K and V widths of a head's keys and
// values, F inner width. Matrices are (outputs, inputs), vectors of N rows lie behind one another.

import { concatenateRows, dot, sigmoid, softmax } from "./matrix.js";
import { BOS } from "./search.js";
import { EOS } from "./tokenizer.js";

// The Gauss error function (Abramowitz and Stegun 1964, 7.1.26), to 1.5e-7.
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return Math.sign(x) * (1 - series * Math.exp(-x * x));
}

const ACTIVATIONS = {
  relu: (x) => Math.max(0, x),
  gelu: (x) => (x / 2) * (1 + erf(x / Math.SQRT2)),
  swish: (x) => x * sigmoid(x),
};

// x W^T + b
class LinearLayer {
  constructor(weights, name) {
    this.weight = weights.matrix(`${name}.weight`);
    this.bias = weights.vector(`${name}.bias`);
  }

  apply(x, n) {
    return this.weight.multiply(x, n, this.bias);
  }
}

// LayerNorm (Ba et al. 2016): (x - mean) / sqrt(variance + eps) * gain + bias. RMSNorm (Zhang and Sennrich 2019) neither
// centres nor has a bias.
class Norm {
  constructor(weights, name, kind) {
    this.gain = weights.vector(`${name}.weight`);
    this.centred = kind === "layernorm";
    if (this.centred) this.bias = weights.vector(`${name}.bias`);
  }

  apply(x) {
    const D = this.gain.length;
    const result = new Float32Array(x.length);
    for (let start = 0; start < x.length; start += D) {
      let mean = 0;
      let variance = 0;
      for (let i = 0; this.centred && i < D; i++) mean += x[start + i] / D;
      for (let i = 0; i < D; i++) variance += (x[start + i] - mean) ** 2 / D;
      const scale = 1 / Math.sqrt(variance + (this.centred ? 1e-5 : 1e-6));
      for (let i = 0; i < D; i++)
        result[start + i] = (x[start + i] - mean) * scale * this.gain[i] + (this.bias ? this.bias[i] : 0);
    }
    return result;
  }
}

// Post-norm, as in the paper: Norm(x + f(x)). Pre-norm (Xiong et al. 2020): x + f(Norm(x)).
class Residual {
  constructor(weights, name, options) {
    this.norm = new Norm(weights, `${name}.norm`, options.normalization);
    this.isPre = options.norm === "pre";
  }

  apply(x, sublayer) {
    const change = sublayer(this.isPre ? this.norm.apply(x) : x);
    const sum = x.map((value, i) => value + change[i]);
    return this.isPre ? sum : this.norm.apply(sum);
  }
}

// FFN(x) = f(x W_1 + b_1) W_2 + b_2; SwiGLU has silu(x W + b) * (x V + c) in place of f (Shazeer 2020).
class FeedForward {
  constructor(weights, name, activation) {
    this.inner = new LinearLayer(weights, `${name}.inner`);
    this.outer = new LinearLayer(weights, `${name}.outer`);
    this.activation = activation;
  }

  apply(x, n) {
    const inner = this.inner.apply(x, n);
    if (this.activation !== "swiglu") return this.outer.apply(inner.map(ACTIVATIONS[this.activation]), n);
    const F = inner.length / n / 2;
    const gated = new Float32Array(n * F);
    for (let row = 0; row < n; row++)
      for (let i = 0; i < F; i++) gated[row * F + i] = ACTIVATIONS.swish(inner[row * 2 * F + i]) * inner[row * 2 * F + F + i];
    return this.outer.apply(gated, n);
  }
}

// softmax(q K^T / sqrt(K)) V in H heads, for one query at a time.
class Attention {
  constructor(weights, name, options) {
    const { heads, d_model, d_v } = options;
    Object.assign(this, { heads, keyWidth: d_model / heads, valueWidth: d_v });
    this.allKeys = d_model; // H * K
    this.allValues = heads * d_v; // H * V
    this.output = new LinearLayer(weights, `${name}.output`);
    this.rotary = options.positions === "rotary";
  }

  // One query's context, from its place in `queries`; entries: of each position {key: (H * K), value: (H * V)}.
  // attention (S): where given, gets the mean of the heads' weights.
  attend(queries, place, entries, contexts, contextPlace, attention = null) {
    const { heads, keyWidth, valueWidth } = this;
    for (let head = 0; head < heads; head++) {
      const start = head * keyWidth;
      const scores = new Float32Array(entries.length);
      entries.forEach(({ key }, j) => {
        // Of terms with variance 1: unscaled, the softmax would saturate.
        scores[j] = dot(queries, key, place + start, start, keyWidth) / Math.sqrt(keyWidth);
      });
      softmax(scores);
      entries.forEach(({ value }, j) => {
        for (let i = head * valueWidth; i < (head + 1) * valueWidth; i++) contexts[contextPlace + i] += scores[j] * value[i];
        if (attention) attention[j] += scores[j] / heads;
      });
    }
  }

  // The keys and values of one row of projections, which has them from `place` on.
  entry(projected, place) {
    const key = projected.slice(place, place + this.allKeys);
    return { key, value: projected.slice(place + this.allKeys, place + this.allKeys + this.allValues) };
  }

  // RoPE (Su et al. 2021): each pair of values, as a complex number, is rotated by position / 10000^(2i / K).
  rotate(x, start, position) {
    for (let i = 0; i < this.allKeys; i += 2) {
      const angle = position * 10000 ** (-(i % this.keyWidth) / this.keyWidth);
      const [cos, sin, a, b] = [Math.cos(angle), Math.sin(angle), x[start + i], x[start + i + 1]];
      x[start + i] = a * cos - b * sin;
      x[start + i + 1] = a * sin + b * cos;
    }
  }
}

class SelfAttention extends Attention {
  constructor(weights, name, options) {
    super(weights, name, options);
    this.projection = new LinearLayer(weights, `${name}.query_key_value`);
    this.width = 2 * this.allKeys + this.allValues;
  }

  // Queries, keys and values of N rows at their positions: {projected (N, 2 H K + H V), entries}.
  project(x, n, positionOf) {
    const projected = this.projection.apply(x, n);
    const entries = [];
    for (let row = 0; row < n; row++) {
      const place = row * this.width;
      if (this.rotary) for (const start of [place, place + this.allKeys]) this.rotate(projected, start, positionOf(row));
      entries.push(this.entry(projected, place + this.allKeys));
    }
    return { projected, entries };
  }

  // entriesOf: row number -> what that row attends to. (N, D) -> (N, D)
  contexts(projected, n, entriesOf) {
    const contexts = new Float32Array(n * this.allValues);
    for (let row = 0; row < n; row++)
      this.attend(projected, row * this.width, entriesOf(row), contexts, row * this.allValues);
    return this.output.apply(contexts, n);
  }
}

class CrossAttention extends Attention {
  constructor(weights, name, options) {
    super(weights, name, options);
    this.query = new LinearLayer(weights, `${name}.query`);
    this.keyValue = new LinearLayer(weights, `${name}.key_value`);
  }

  // Encoder states (S, D) -> keys and values, once per sentence.
  memory(encoded, length) {
    const projected = this.keyValue.apply(encoded, length);
    const width = this.allKeys + this.allValues;
    return Array.from({ length }, (_, position) => this.entry(projected, position * width));
  }

  // (k, D) -> {(k, D), weights (S) of each}
  apply(x, k, memory) {
    const queries = this.query.apply(x, k);
    const contexts = new Float32Array(k * this.allValues);
    const weights = Array.from({ length: k }, () => new Float32Array(memory.length));
    weights.forEach((each, row) => this.attend(queries, row * this.allKeys, memory, contexts, row * this.allValues, each));
    return { change: this.output.apply(contexts, k), weights };
  }
}

// PE(pos, 2i) = sin(pos / 10000^(2i / D)), PE(pos, 2i + 1) = cos(same), or the sines first and then the cosines. In the
// precision in which the model was trained: angles in fp32 are off by up to 1e-5.
function sinusoid(position, width, kind) {
  const vector = new Float32Array(width);
  const half = Math.floor(width / 2);
  const isFairseq = kind === "sinusoidal_fairseq"; // counts positions from 2, with exponents i / (D / 2 - 1)
  for (let i = 0; i < (isFairseq ? half : width / 2); i++) {
    const exponent = isFairseq ? i * Math.fround(-Math.log(10000) / (half - 1)) : 2 * i * Math.fround(-Math.log(10000) / width);
    let angle = Math.fround((position + 2 * isFairseq) * Math.fround(Math.exp(Math.fround(exponent))));
    if (kind === "sinusoidal_halves") angle = position / 10000 ** ((2 * i) / width);
    const [sine, cosine] = kind === "sinusoidal" ? [2 * i, 2 * i + 1] : [i, i + (isFairseq ? half : Math.ceil(width / 2))];
    vector[sine] = Math.sin(angle);
    if (cosine < width) vector[cosine] = Math.cos(angle);
  }
  return vector;
}

export class TransformerModel {
  constructor(options, weights) {
    this.options = options;
    this.embeddings = weights.embeddings(options.share_embeddings);
    this.outputBias = options.output_bias ? weights.vector("output_bias") : null;
    this.scale = options.scale_embeddings ? Math.sqrt(options.d_model) : 1;
    this.learned = {};
    if (options.positions === "learned")
      for (const side of ["source", "target"]) this.learned[side] = weights.matrix(`${side}_positions.embedding.weight`);
    const residual = (name) => new Residual(weights, name, options);
    const layer = (name) => ({
      attention: new SelfAttention(weights, `${name}.attention`, options),
      aroundAttention: residual(`${name}.around_attention`),
      feedforward: new FeedForward(weights, `${name}.feedforward`, options.activation),
      aroundFeedforward: residual(`${name}.around_feedforward`),
    });
    this.encoder = Array.from({ length: options.layers }, (_, number) => layer(`encoder.${number}`));
    this.decoder = Array.from({ length: options.decoder_layers }, (_, number) => ({
      ...layer(`decoder.${number}`),
      cross: new CrossAttention(weights, `decoder.${number}.cross`, options),
      aroundCross: residual(`decoder.${number}.around_cross`),
    }));
    const last = (name) => (options.norm === "pre" ? new Norm(weights, name, options.normalization) : null);
    this.norms = { source: last("encoder_norm"), target: last("decoder_norm") };
  }

  // sqrt(D) * embedding + position. ids (N) -> (N, D)
  embed(ids, side, positionOf) {
    const { positions, d_model, max_positions } = this.options;
    return concatenateRows(
      ids.map((id, row) => {
        const vector = this.embeddings[side].row(id).map((value) => value * this.scale);
        if (positions === "rotary") return vector; // inside of attention instead
        const position = positionOf(row);
        const added = this.learned[side]
          ? this.learned[side].row(Math.min(position, max_positions - 1)) // later ones share the last
          : sinusoid(position, d_model, positions);
        return vector.map((value, i) => value + added[i]);
      }),
    );
  }

  // Encode a source; return the state of one hypothesis before the first token.
  start(source) {
    const length = source.length;
    let x = this.embed(source, "source", (row) => row);
    for (const layer of this.encoder) {
      x = layer.aroundAttention.apply(x, (y) => {
        const { projected, entries } = layer.attention.project(y, length, (row) => row);
        return layer.attention.contexts(projected, length, () => entries); // every token attends to all
      });
      x = layer.aroundFeedforward.apply(x, (y) => layer.feedforward.apply(y, length));
    }
    if (this.norms.source) x = this.norms.source.apply(x);
    return new TransformerState(this.decoder.map(({ cross }) => cross.memory(x, length)));
  }

  // The last token of each of k hypotheses -> features (k, D) of the next one; the state is changed.
  step(tokens, state) {
    const k = tokens.length;
    const start = this.options.decoder_start === "eos" ? EOS : BOS; // what the decoder reads in place of <s>
    let x = this.embed(tokens.map((token) => (token === BOS ? start : token)), "target", () => state.position);
    this.decoder.forEach((layer, number) => {
      x = layer.aroundAttention.apply(x, (y) => {
        const { projected, entries } = layer.attention.project(y, k, () => state.position);
        const cache = state.caches[number];
        entries.forEach((entry, row) => cache[row].push(entry));
        return layer.attention.contexts(projected, k, (row) => cache[row]); // only what comes before, and itself
      });
      x = layer.aroundCross.apply(x, (y) => {
        const { change, weights } = layer.cross.apply(y, k, state.memories[number]);
        state.attention = weights;
        return change;
      });
      x = layer.aroundFeedforward.apply(x, (y) => layer.feedforward.apply(y, k));
    });
    state.position++;
    return this.norms.target ? this.norms.target.apply(x) : x;
  }

  // Features (k, D) -> logits (k, V): dot products with the output embeddings, plus the bias.
  logits(features, k) {
    return this.embeddings.output.multiply(features, k, this.outputBias);
  }
}

// Keys and values: of each layer and hypothesis its prefix's, and of each layer the source's.
class TransformerState {
  constructor(memories) {
    Object.assign(this, { memories, caches: memories.map(() => [[]]), position: 0, attention: null });
  }

  // Keep, repeat or drop hypotheses: the new ones continue those numbered `parents`, and share their entries.
  select(parents) {
    this.caches = this.caches.map((cache) => parents.map((parent) => [...cache[parent]]));
  }
}
