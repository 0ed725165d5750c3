// Beam search over any model with `start` and `step`; greedy search is a beam of one.
//
// A hypothesis is {tokens, score, state}; score: its log-probability, in the end over the penalty.
// Shapes: k hypotheses of one sentence, V vocabulary.

import { EOS } from "./tokenizer.js";

export const PAD = 0, BOS = 1; // ids of <pad> and <s>
const NEVER = -Infinity;

/** How many tokens, </s> included, a translation may have. length: of the source, </s> included, tags not. */
function lengthLimit({ max_length_factor, max_length_extra }, length) {
  return Math.max(Math.ceil(length * max_length_factor), 1) + max_length_extra;
}

/** What log-probabilities are divided by: every token lowers them, and undivided, short translations would win. */
function lengthPenalty({ length_penalty = 1 }, length) {
  return ((5 + length) / 6) ** length_penalty; // Wu et al. 2016, section 7
}

/** A sentence that a model translates, step by step. */
export class Decoder {
  /** input: ids of the `source` with tags and </s>, its `length`, ids of the `beginning` of the target, and those that
   *  `never` are in a translation. */
  constructor(model, input, settings) {
    Object.assign(this, { model, settings, never: input.never, limit: lengthLimit(settings, input.length) });
    const { state, memory } = model.start(input.source);
    Object.assign(this, { memory, first: BOS, empty: { tokens: [], score: 0, state } });
    for (const tag of input.beginning) {
      [this.empty] = this.step([this.empty]).map((after) => ({ ...this.empty, state: after.state }));
      this.first = tag; // read before the first token, in place of <s>
    }
  }

  /** Read the last token of each hypothesis: see `step` of the models. */
  step(hypotheses) {
    const last = hypotheses.map(({ tokens }) => tokens.at(-1) ?? this.first);
    return this.model.step(last, hypotheses.map(({ state }) => state), this.memory);
  }

  logits(steps) {
    const { embeddings, outputBias } = this.model;
    return embeddings.output.multiply(steps.map(({ features }) => features), outputBias); // (k, V): dot products
  }

  /** After each hypothesis the state, and the log-probabilities (V) of the next token. */
  next(hypotheses) {
    const steps = this.step(hypotheses);
    return this.logits(steps).map((logits, n) => {
      const most = logits.reduce((one, other) => Math.max(one, other));
      const normalizer = most + Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - most), 0));
      const logP = logits.map((logit) => logit - normalizer);
      for (const token of this.never) logP[token] = NEVER;
      return { logP, state: steps[n].state };
    });
  }
}

/**
 * The beam_size most likely hypotheses are extended by every token, and the best of these continue; best first.
 *
 * A generator: it yields the tokens of the best hypothesis so far after every step, so that whoever drives it can show
 * it, and stop.
 */
export function* beamSearch(model, input, settings) {
  const decoder = new Decoder(model, input, settings);
  const { beam_size, n_best } = settings;
  const lastPenalty = lengthPenalty(settings, decoder.limit);
  const compared = n_best > 1 ? beam_size : 1; // finished hypotheses that no active one may be able to beat in the end
  const enough = beam_size > 1 ? 2 * beam_size : 1; // of the first that finish some are short and poor
  const finished = [];
  let active = [decoder.empty];
  for (let step = 1; ; step++) {
    const next = decoder.next(active);
    const penalty = lengthPenalty(settings, step);
    // 2k candidates: at most k of them end in </s>, so that at least k do not.
    const candidates = best(next, active, 2 * beam_size);
    // A hypothesis finishes only among the k best, where any other would stay in the beam.
    for (const { parent, token, score } of candidates.slice(0, beam_size))
      if (token === EOS) finished.push({ ...active[parent], score: Math.fround(score / penalty) });
    const extend = ({ parent, token, score }) => {
      return { tokens: [...active[parent].tokens, token], score, state: next[parent].state };
    };
    active = candidates.filter(({ token }) => token !== EOS).slice(0, beam_size).map(extend);
    finished.sort((one, other) => other.score - one.score); // of equal ones the first stays first
    // Log-probabilities only fall, and penalties only rise: this bounds every score that can be reached.
    const bound = active.length ? Math.fround(active[0].score / lastPenalty) : NEVER;
    const isBeaten = finished.length >= compared && bound <= finished[compared - 1].score;
    if (isBeaten || !active.length || step >= decoder.limit || finished.length >= enough)
      return finished.length ? finished : active.map((each) => ({ ...each, score: each.score / penalty }));
    yield (finished[0] ?? active[0]).tokens;
  }
}

/** The `count` best extensions of the hypotheses by a token, best first: {parent, token, score}. */
function best(next, hypotheses, count) {
  const found = [];
  next.forEach(({ logP }, parent) => {
    logP.forEach((value, token) => {
      const score = Math.fround(value + hypotheses[parent].score);
      if (score === NEVER || (found.length === count && score <= found[count - 1].score)) return;
      // Few of a vocabulary come here: an insertion into a short list.
      let place = found.length;
      while (place > 0 && found[place - 1].score < score) place--;
      found.splice(place, 0, { parent, token, score });
      found.length = Math.min(found.length, count);
    });
  });
  return found;
}
