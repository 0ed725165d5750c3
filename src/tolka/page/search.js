// Greedy and beam search over any model with `start`, `step` and `logits`.
//
// Generators: they yield the tokens of the best hypothesis so far after every step, so that whoever drives them can show
// it, and stop. Shapes: k hypotheses of one sentence, V vocabulary.

import { EOS } from "./tokenizer.js";

export const PAD = 0, BOS = 1; // ids of <pad> and <s>
const NEVER = -Infinity;

// How many tokens, </s> included, a translation may have. length: of the source, </s> included, tags not.
export function lengthLimit(settings, length) {
  // The factor as the fraction that it is written as: in binary 1.1 * 10 is above 11.
  const [whole, decimals = ""] = String(settings.max_length_factor).split(".");
  const numerator = BigInt(whole + decimals);
  const denominator = 10n ** BigInt(decimals.length);
  const times = (BigInt(length) * numerator + denominator - 1n) / denominator;
  return Math.max(Number(times), 1) + settings.max_length_extra;
}

// What log-probabilities are divided by (Wu et al. 2016, section 7): every token lowers log p, and undivided, short
// translations would win.
export function lengthPenalty(settings, length) {
  const base = settings.length_normalization === "gnmt" ? (5 + length) / 6 : length;
  return base ** (settings.length_normalization === "none" ? 0 : settings.length_penalty);
}

// x_i - log sum_j exp(x_j), of one row of logits, in place.
function logSoftmax(logits) {
  let most = NEVER;
  for (let v = 0; v < logits.length; v++) if (logits[v] > most) most = logits[v];
  let sum = 0;
  for (let v = 0; v < logits.length; v++) sum += Math.exp(logits[v] - most);
  const normalizer = most + Math.log(sum);
  for (let v = 0; v < logits.length; v++) logits[v] -= normalizer;
  return logits;
}

// Forbid what a translation may not continue with, after `tokens`; log_p (V) is changed, and not normalised again.
function applyRules(logP, tokens, settings, limit) {
  const length = tokens.length;
  const n = settings.no_repeat_ngram;
  const end = logP[EOS];
  if (n > 0 && n <= length) {
    const last = tokens.slice(length - n + 1);
    for (let start = 0; start + n <= length; start++)
      if (last.every((token, i) => tokens[start + i] === token)) logP[tokens[start + n - 1]] = NEVER;
  }
  if (length < settings.min_length && length < limit - 1) logP[EOS] = NEVER;
  // A hypothesis with every token forbidden ends, instead of vanishing from the beam.
  if (logP.every((value) => value === NEVER)) logP[EOS] = end;
}

// The next tokens' log-probabilities of each hypothesis, k rows (V). prefixes: their tokens so far.
function* nextLogProbabilities(model, features, prefixes, never, settings, limit) {
  const logits = model.logits(features, prefixes.length);
  const V = logits.length / prefixes.length;
  for (const [row, prefix] of prefixes.entries()) {
    const logP = logSoftmax(logits.subarray(row * V, (row + 1) * V));
    for (const token of never) logP[token] = NEVER;
    applyRules(logP, prefix, settings, limit);
    yield logP;
  }
}

// Encode a source and have the decoder read <s> and the target's tags but the last; return the state and that one.
export function begin(model, source, beginning) {
  const state = model.start(source);
  const read = [BOS, ...beginning];
  for (const token of read.slice(0, -1)) model.step([token], state);
  return { state, first: read.at(-1) };
}

// The most likely token at every step; return [{tokens, score, finished}].
export function* greedySearch(model, { source, beginning, length, never }, settings) {
  const limit = lengthLimit(settings, length);
  const { state, first } = begin(model, source, beginning);
  const tokens = [];
  let score = 0;
  for (let token = first; tokens.length < limit; ) {
    const features = model.step([token], state);
    const [logP] = nextLogProbabilities(model, features, [tokens], never, settings, limit);
    token = PAD;
    for (let v = 0; v < logP.length; v++) if (logP[v] > logP[token]) token = v;
    score += logP[token];
    if (token === EOS) return [{ tokens, score, finished: true }];
    tokens.push(token);
    yield tokens;
  }
  return [{ tokens, score, finished: false }];
}

// Extend the beam_size most likely hypotheses by every token, and keep the best; return the finished ones, best first.
export function* beamSearch(model, { source, beginning, length, never }, settings) {
  const width = settings.beam_size;
  const limit = lengthLimit(settings, length);
  const lastPenalty = lengthPenalty(settings, limit);
  const { state, first } = begin(model, source, beginning);
  let active = [{ tokens: [], total: 0 }];
  const finished = [];
  // How many finished hypotheses no active one may be able to beat.
  const compared = settings.n_best > 1 ? width : 1;
  for (let step = 1; ; step++) {
    const features = model.step(active.map(({ tokens }) => tokens.at(-1) ?? first), state);
    const prefixes = active.map(({ tokens }) => tokens);
    // 2w candidates: at most w of them end in </s>, so that at least w do not.
    const candidates = largest(nextLogProbabilities(model, features, prefixes, never, settings, limit), active, 2 * width);
    candidates.forEach(({ total, parent, token }, place) => {
      // A hypothesis finishes only among the w best, where any other would stay in the beam.
      if (token !== EOS || place >= width) return;
      const score = Math.fround(total / lengthPenalty(settings, step));
      finished.push({ tokens: active[parent].tokens, score, finished: true });
    });
    const continued = candidates.filter(({ token }) => token !== EOS).slice(0, width);
    const parents = continued.map(({ parent }) => parent);
    active = continued.map(({ total, parent, token }) => ({ tokens: [...active[parent].tokens, token], total }));
    finished.sort((one, other) => other.score - one.score); // stable: of equal ones the first
    // At the limit; with a full beam of finished hypotheses; or when no active one can still beat the finished ones that
    // are wanted: log p only falls and the penalty only rises, so that log p / penalty(limit) bounds what can be reached.
    const bound = active.length ? Math.fround(active[0].total / lastPenalty) : NEVER;
    const beaten = finished.length >= compared && bound <= finished[compared - 1].score;
    if (!active.length || step >= limit || finished.length >= width || beaten) break;
    state.select(parents);
    yield (finished[0] ?? active[0]).tokens;
  }
  if (finished.length) return finished;
  const penalty = lengthPenalty(settings, active[0]?.tokens.length);
  return active.map(({ tokens, total }) => ({ tokens, score: total / penalty, finished: false }));
}

// The `count` largest sums of log_p (k, V) and the hypotheses' totals (k), best first; none that is -inf.
function largest(rows, active, count) {
  const best = [];
  let parent = 0;
  for (const logP of rows) {
    const { total } = active[parent];
    for (let token = 0; token < logP.length; token++) {
      const sum = Math.fround(logP[token] + total);
      if (sum === NEVER || (best.length === count && sum <= best[count - 1].total)) continue;
      // Few of a vocabulary come here: an insertion into a short list.
      let place = best.length;
      while (place > 0 && best[place - 1].total < sum) place--;
      best.splice(place, 0, { total: sum, parent, token });
      best.length = Math.min(best.length, count);
    }
    parent++;
  }
  return best;
}
