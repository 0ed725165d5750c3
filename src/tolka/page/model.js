// A model of a file: its weights, its network, and `Translator`, which translates sentences with it.

import { Memory, Matrix } from "./matrix.js";
import { RecurrentModel } from "./recurrent.js";
import { BOS, PAD, beamSearch, greedySearch } from "./search.js";
import { Tokenizer } from "./tokenizer.js";
import { TransformerModel } from "./transformer.js";

const NETWORKS = { rnn: RecurrentModel, transformer: TransformerModel };
const SEARCHES = { greedy: greedySearch, beam: beamSearch };
const BEAM = { name: "beam", beam_size: 5, length_normalization: "gnmt", length_penalty: 1 }; // for alternatives of greedy search

// The tensors of a model by name: matrices in one memory, vectors as arrays.
class Weights {
  constructor(tensors, bytes, simd) {
    const matrices = tensors.filter(({ shape }) => shape.length === 2);
    const memory = new Memory(matrices.reduce((sum, tensor) => sum + Matrix.size(tensor), 0), simd);
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
  return new Translator(about, new Network(about.model, new Weights(about.tensors, bytes, simd)));
}

export class Translator {
  constructor(about, network) {
    Object.assign(this, { about, network });
    this.tokenizer = new Tokenizer(about.tokenizer);
  }

  // Translate one sentence; see `steps`.
  translate(text, options = {}) {
    const steps = this.steps(text, options);
    for (let step = steps.next(); ; step = steps.next()) {
      if (step.done) return step.value;
      options.onToken?.(step.value);
    }
  }

  // A generator of the translation so far, which returns {text, score, alternatives: [{text, score}], attention}.
  // alternatives: how many different translations are wanted. attention: whether its map is.
  *steps(text, { direction = 0, alternatives = 1, attention = false, settings = this.about.search } = {}) {
    const input = this.input(text, direction);
    const search = { n_best: alternatives, ...settings };
    let best = yield* this.hypotheses(input, search);
    let others = best;
    if (alternatives > 1) {
      const wide = { ...BEAM, ...settings, name: "beam", n_best: alternatives };
      wide.beam_size = Math.max(wide.beam_size, alternatives);
      others = yield* this.hypotheses(input, wide);
      if (settings.name !== "greedy") best = others;
    }
    const decoded = (hypotheses) => hypotheses.map(({ tokens, score }) => ({ text: this.tokenizer.decodeTarget(tokens), score }));
    return {
      ...decoded(best.slice(0, 1))[0],
      alternatives: different(decoded(others)).slice(0, alternatives),
      attention: attention ? this.attention(input, best[0].tokens) : null,
    };
  }

  *hypotheses(input, settings) {
    const search = SEARCHES[settings.name](this.network, input, settings);
    for (let step = search.next(); ; step = search.next()) {
      if (step.done) return step.value;
      yield this.tokenizer.decodeTarget(step.value);
    }
  }
}
