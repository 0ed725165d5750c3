// A model of a file: its weights, its network, and `Translator`, which translates sentences with it.

import { Matrix, Memory, concatenateRows } from "./matrix.js";
import { RecurrentModel } from "./recurrent.js";
import { BOS, PAD, beamSearch, begin, greedySearch } from "./search.js";
import { Splitter } from "./sentences.js";
import { EOS, Tokenizer } from "./tokenizer.js";
import { TransformerModel } from "./transformer.js";

const NETWORKS = { rnn: RecurrentModel, transformer: TransformerModel };
const SEARCHES = { greedy: greedySearch, beam: beamSearch };
const BEAM = { name: "beam", beam_size: 5, length_normalization: "gnmt", length_penalty: 1 }; // for alternatives of greedy search

// The tensors of a model by name: matrices in one memory, vectors as arrays.
class Weights {
  constructor(tensors, bytes, simd) {
    const matrices = tensors.filter(({ shape }) => shape.length === 2);
    const memory = new Memory(matrices.reduce((sum, tensor) => sum + Matrix.size(tensor), 0), simd);
    this.simd = memory.simd;
    this.tensors = new Map(
      tensors.map((tensor) => {
        const { name, shape, offset } = tensor;
        return [name, shape.length === 2 ? Matrix.from(memory, bytes, tensor) : new Float32Array(bytes, offset, shape[0])];
      }),
    );
  }

  has(name) {
    return this.tensors.has(name);
  }

  matrix(name) {
    if (!this.has(name)) throw new Error(`the file has no tensor ${name}`);
    return this.tensors.get(name);
  }

  vector(name) {
    return this.matrix(name);
  }

  // Source, target and output embeddings, of which some are one matrix (Press and Wolf 2017).
  embeddings(sharing) {
    const target = this.matrix("target_embedding.weight");
    const source = ["all", "source_target"].includes(sharing) ? target : this.matrix("source_embedding.weight");
    if (["all", "target_output"].includes(sharing)) return { target, source, output: target };
    return { target, source, output: sharing === "source_output" ? source : this.matrix("output_embedding.weight") };
  }
}

// Return a Translator of a model; an Error, in a line for people, if the file is damaged.
export function openModel(about, bytes, { simd = true } = {}) {
  const Network = NETWORKS[about.model.name];
  if (!Network) throw new Error(`this page does not know the architecture ${about.model.name}`);
  const weights = new Weights(about.tensors, bytes, simd);
  return new Translator(about, new Network(about.model, weights), weights.simd);
}

export class Translator {
  // simd: whether its matrices are multiplied by WebAssembly.
  constructor(about, network, simd) {
    Object.assign(this, { about, network, simd });
    this.tokenizer = new Tokenizer(about.tokenizer);
    this.splitter = new Splitter(about.splitter, about.characters, this.tokenizer);
  }

  // Translate one sentence; see `steps`. onToken: receives the translation so far.
  translate(text, options = {}) {
    const steps = this.steps(text, options);
    for (let step = steps.next(); ; step = steps.next()) {
      if (step.done) return step.value;
      options.onToken?.(step.value);
    }
  }

  // A generator of the translation so far, which returns {text, score, alternatives: [{text, score}], attention}.
  // alternatives: how many different translations are wanted. attention: whether a map of it is.
  *steps(text, { direction = this.about.directions[0], alternatives = 0, attention = false, settings = this.about.search } = {}) {
    const input = this.input(text, direction);
    const render = ({ tokens, score }) => ({ text: this.textOf(tokens, text), score });
    const isGreedy = settings.name === "greedy";
    let best = alternatives && !isGreedy ? null : yield* this.search(input, text, settings);
    let others = [];
    if (alternatives) {
      const wide = { ...BEAM, ...settings, name: "beam", n_best: alternatives };
      wide.beam_size = Math.max(wide.beam_size, alternatives);
      others = yield* this.search(input, text, wide);
      best ??= others;
    }
    // A text may be spelt in several sequences of subwords: the first of them, the best of a beam, stands for it.
    const texts = new Map(others.map(render).reverse().map((each) => [each.text.split(/\s+/).join(" ").trim(), each]));
    return {
      ...render(best[0]),
      alternatives: [...texts.values()].reverse().slice(0, alternatives),
      attention: attention ? this.attention(input, best[0].tokens) : null,
    };
  }

  // What a search is given: ids of the source with tags and </s>, those that the decoder reads first, and its length.
  input(text, direction) {
    const source = this.tokenizer.encodeSource(text, direction);
    const tags = this.tokenizer.tags(direction).source.length;
    const never = [PAD, BOS, ...this.tokenizer.withoutText];
    return { source, tags, length: source.length - tags, beginning: this.tokenizer.beginning(direction), never };
  }

  *search(input, text, settings) {
    const search = SEARCHES[settings.name](this.network, input, settings);
    for (let step = search.next(); ; step = search.next()) {
      if (step.done) return step.value;
      yield this.textOf(step.value, text);
    }
  }

  textOf(tokens, source) {
    const text = this.tokenizer.decodeTarget(tokens);
    // It stands for bytes that could not be read: a model writes it if its training text had it, where nothing calls for it.
    return source.includes("\ufffd") ? text : text.replaceAll("\ufffd", "");
  }

  // The last decoder layer's attention to the source, the mean over its heads, for a translation that is there: T and S
  // with </s>, without tags. null for a model without attention.
  attention({ source, tags, beginning }, tokens) {
    const { state, first } = begin(this.network, source, beginning);
    const rows = [first, ...tokens].flatMap((token) => {
      this.network.step([token], state);
      return state.attention ? [state.attention[0].subarray(tags)] : [];
    });
    if (!rows.length) return null;
    const sums = rows.map((row) => row.reduce((sum, weight) => sum + weight, 0));
    return {
      source: this.tokenizer.sourcePieces(source.slice(tags)),
      target: this.tokenizer.targetPieces([...tokens, EOS]),
      weights: concatenateRows(rows.map((row, t) => row.map((weight) => weight / sums[t]))), // (T, S)
    };
  }

  // The logits (T + 1, V) after <s>, tags and each of the target's ids: for a comparison with another program.
  forcedLogits(text, target, direction) {
    const { source, beginning } = this.input(text, direction);
    const state = this.network.start(source);
    const features = [BOS, ...beginning, ...target].map((token) => this.network.step([token], state));
    return features.map((each) => this.network.logits(each, 1));
  }
}
