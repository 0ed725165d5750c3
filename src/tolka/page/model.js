// A model of a file: its weights, its network, and `Translator`, which translates sentences with it.

import { Matrix, Memory, join } from "./matrix.js";
import { RecurrentModel } from "./recurrent.js";
import { BOS, Decoder, PAD, beamSearch } from "./search.js";
import { Splitter } from "./sentences.js";
import { EOS, Tokenizer } from "./tokenizer.js";
import { TransformerModel } from "./transformer.js";

const NETWORKS = { rnn: RecurrentModel, transformer: TransformerModel };

/** The tensors of a model by name: matrices, and vectors as arrays. */
class Weights {
  constructor(tensors, bytes, simd) {
    const memory = new Memory(tensors, bytes, simd);
    const read = (tensor) => {
      const { shape: [length, width], dtype, offset, scales } = tensor;
      if (!width) return memory.vector(offset, length);
      const ofRows = dtype === "int8" ? memory.vector(scales, length) : new Float32Array(length).fill(1);
      return new Matrix(memory, tensor, ofRows);
    };
    this.simd = memory.simd;
    this.tensors = new Map(tensors.map((tensor) => [tensor.name, read(tensor)]));
  }

  /** A tensor, or null if the model has none of this name. */
  find(name) {
    return this.tensors.get(name) ?? null;
  }

  get(name) {
    if (!this.tensors.has(name)) throw new Error(`This file is damaged: it has no tensor ${name}.`);
    return this.tensors.get(name);
  }

  /** Source, target and output embeddings, of which some are one matrix (Press and Wolf 2017). */
  embeddings(sharing) {
    const target = this.get("target_embedding.weight");
    const source = this.find("source_embedding.weight") ?? target;
    const shared = sharing === "source_output" ? source : target;
    return { target, source, output: this.find("output_embedding.weight") ?? shared };
  }
}

export class Translator {
  /** about: the model's entry in the file. bytes: of its tensors. An Error is a sentence for people. */
  constructor(about, bytes, { simd = true } = {}) {
    const Network = NETWORKS[about.model.name];
    const endOf = ({ shape, offset }) => offset + shape.reduce((a, b) => a * b);
    if (!Network || about.tensors.some((tensor) => endOf(tensor) > bytes.byteLength))
      throw new Error("This file is damaged: what it says of its model does not fit the weights.");
    const weights = new Weights(about.tensors, bytes, simd);
    Object.assign(this, { about, simd: weights.simd, network: new Network(about.model, weights) });
    this.tokenizer = new Tokenizer(about.tokenizer);
    this.splitter = new Splitter(about.splitter, about.characters, this.tokenizer);
  }

  /**
   * Translate one sentence, in the model's form of characters. A generator of the translation so far, which returns
   * {text, score, alternatives: [{text, score}], attention}. alternatives: how many different translations are wanted.
   * attention: whether a map is. search: its settings.
   */
  *steps(text, { direction, alternatives = 0, attention = false, search = this.about.search }) {
    const input = this.input(text, direction);
    const settings = { ...search, beam_size: Math.max(search.beam_size ?? 1, alternatives), n_best: alternatives };
    const steps = beamSearch(this.network, input, settings);
    let step = steps.next();
    for (; !step.done; step = steps.next()) yield this.textOf(step.value, text);
    const found = step.value.map(({ tokens, score }) => ({ text: this.textOf(tokens, text), score }));
    // A text may be spelt in several sequences of subwords: the best of them stands for it.
    const isFirst = ({ text }, n) => n === found.findIndex((each) => each.text.trim() === text.trim());
    return {
      ...found[0],
      alternatives: found.filter(isFirst).slice(0, alternatives),
      attention: attention ? this.attention(input, step.value[0].tokens) : null,
    };
  }

  /** What `Decoder` is given of a source, and the number of tags before its subwords. */
  input(text, direction) {
    const { source: { length: tags }, target: beginning } = this.tokenizer.tags(direction);
    const source = this.tokenizer.encodeSource(text, direction);
    return { source, tags, length: source.length - tags, beginning, never: [PAD, BOS, ...this.tokenizer.withoutText] };
  }

  textOf(tokens, source) {
    const text = this.tokenizer.decodeTarget(tokens);
    // It stands for bytes that could not be read; a model may write it where nothing calls for it.
    return source.includes("\ufffd") ? text : text.replaceAll("\ufffd", "");
  }

  /** The decoder and the steps of a model that is made to translate into these tokens. */
  force(input, tokens) {
    const decoder = new Decoder(this.network, input, this.about.search);
    let hypothesis = decoder.empty;
    const steps = [...tokens, EOS].map((token) => {
      const [step] = decoder.step([hypothesis]);
      hypothesis = { tokens: [...hypothesis.tokens, token], state: step.state };
      return step;
    });
    return { decoder, steps };
  }

  /** The last decoder layer's attention to the source, both with </s> and without tags; null for a model without. */
  attention(input, tokens) {
    const rows = this.force(input, tokens).steps.map(({ attention }) => attention?.subarray(input.tags));
    if (!rows[0]) return null;
    const normalize = (row) => row.map((weight) => weight / row.reduce((sum, other) => sum + other));
    const { source, target } = this.tokenizer;
    return {
      source: input.source.slice(input.tags).map((id) => source.names[id]),
      target: [...tokens, EOS].map((id) => target.names[id]),
      weights: join(rows.map(normalize)), // (T, S)
    };
  }

  /** The logits (V) of each of the target's ids and of </s>, tags included: for a comparison with another program. */
  forcedLogits(text, target, direction) {
    const input = this.input(text, direction);
    const { decoder, steps } = this.force({ ...input, beginning: [] }, [...input.beginning, ...target]);
    return decoder.logits(steps);
  }
}
