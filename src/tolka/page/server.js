// The engine of a server's page: it turns the page's messages, which worker.js has, into requests to its own server.

const CACHED_TRANSLATIONS = 3000; // more than a server takes sentences at once
const MOST_AT_ONCE = 32; // sentences in a request: those of others come in between
const LONGEST_PAUSE = 8; // seconds until a server that gave no answer is asked again
const LATER = [429, 502, 503, 504]; // states of HTTP that may pass

// What docs/howto/quality.md says of each flag, and of what documents have beside them.
const DOUBTS = {
  low_confidence: "the model is unsure of it",
  unfinished: "it may lack its end",
  copy: "it has the words of the source",
  repetition: "something is repeated in it",
  length: "it is unusually short or long",
  missing_number: "a number is missing or differs",
  invented_number: "it has a number that the source lacks",
  missing_placeholder: "a placeholder, tag, address or sign is missing",
  invented_placeholder: "it has a placeholder, tag or address that the source lacks",
  missing_term: "a term of the glossary is missing",
  banned_phrase: "it has a banned phrase",
  untranslated: "it was left as it is",
  markup: "its formatting may be at the wrong words",
  kept_text: "something to be kept may be at the wrong place",
};

export const inWords = (flags) => flags.map((flag) => DOUBTS[flag] ?? flag.replaceAll("_", " "));

/** Waits for seconds; ends with an error where the signal aborts. */
export const pause = (seconds, signal) => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, 1000 * seconds);
  signal?.addEventListener("abort", () => {
    clearTimeout(timer);
    reject(signal.reason);
  });
});

/** The terms of a text with a term and its translation a line, and the numbers of lines that have something else. */
export function parseTerms(text) {
  const terms = new Map();
  const faulty = [];
  for (const [index, line] of text.split("\n").entries()) {
    const [left, right] = line.split(/[=＝\t]([^]*)/).map((side) => side.split("|").map((form) => form.trim()));
    if (left.every(Boolean) && right?.every(Boolean)) {
      for (const term of left) terms.set(term, [...(terms.get(term) ?? []), ...right]);
    } else if (line.trim()) faulty.push(index + 1);
  }
  return { glossary: Object.fromEntries(terms), faulty };
}

export class ServerEngine {
  typingPause = 150; // shorter than a worker's: the way to the server and back takes time, too
  token = "";
  glossary = {}; // translations by their terms
  onmessage = null;
  #results = new Map(); // of the latest sentences, the oldest first
  #newest = new AbortController();

  /** askForToken: returns a promise of the token, where the server has taken none or another one. */
  constructor({ models, abilities }, askForToken) {
    Object.assign(this, { models, abilities, askForToken });
  }

  postMessage(request) {
    this.#newest.abort(); // the server then stops as well
    this.#newest = new AbortController();
    const { signal } = this.#newest;
    const failed = (message) => this.#post({ kind: "failed", id: request.id, message });
    this.#translate(request, { signal, failed }).catch(({ message }) => signal.aborted || failed(message));
  }

  #post(data) {
    this.onmessage({ data });
  }

  /** The server's answer to a request, once it has one: without a connection, and where it has too much to do, `failed`
   *  receives why, and it is asked again. Error with what it says where that would be in vain. */
  async ask(method, path, { fields, form, signal, failed }) {
    const body = form ?? (fields && JSON.stringify(fields));
    for (let wait = 1; ; wait = Math.min(2 * wait, LONGEST_PAUSE)) {
      const { token } = this;
      const headers = { ...(token && { Authorization: `Bearer ${token}` }) };
      if (fields) headers["Content-Type"] = "application/json";
      let seconds = wait;
      let reason = "The server cannot be reached.";
      try {
        const response = await fetch(path, { method, headers, body, signal });
        if (response.ok) return response.status === 204 ? null : await response.json();
        const { error } = await response.json().catch(() => ({ error: response.statusText }));
        if (response.status === 403 && this.abilities.token) {
          this.token = await this.askForToken(token);
          continue;
        }
        reason = `The server answers: ${error}.`;
        if (!LATER.includes(response.status)) throw new ServerError(reason);
        seconds = Number(response.headers.get("Retry-After")) || wait;
      } catch (error) {
        if (signal?.aborted || error instanceof ServerError) throw error;
      }
      failed?.(`${reason} Trying again …`);
      await pause(seconds, signal);
    }
  }

  async #translate({ id, model, direction, text, alternatives, attention, whole }, { signal, failed }) {
    if (text.length > this.abilities.characters) {
      throw new Error(`${text.length} characters: this server takes ${this.abilities.characters} at once.`);
    }
    const { title } = this.models[model];
    const send = (path, fields) =>
      this.ask("POST", path, { fields: { ...direction, model: title, ...fields }, signal, failed });
    const isOne = whole || !text.trim();
    const asOne = { sentences: whole ? [text] : [], separators: whole ? ["", ""] : [text] };
    const { sentences, separators } = isOne ? asOne : await send("v1/sentences", { text });
    this.#post({ kind: "split", id, sources: sentences, separators });
    const wishes = {
      search: alternatives ? { n_best: alternatives } : {},
      glossary: this.glossary,
      details: true,
      attention,
    };
    const keyOf = (source) => JSON.stringify([model, direction, source, wishes]);
    const show = (source, index) => {
      const result = this.#results.get(keyOf(source));
      if (result) this.#post({ kind: "translated", id, index, ...result });
    };
    const places = new Map(); // of each sentence
    for (const source of sentences) places.set(source, []);
    sentences.forEach((source, index) => places.get(source).push(index));
    sentences.forEach(show);
    const missing = [...places.keys()].filter((source) => !this.#results.has(keyOf(source)));
    for (let size = 1; missing.length; size = Math.min(2 * size, MOST_AT_ONCE)) { // the first answer comes soon
      const texts = missing.splice(0, size);
      const { translations } = await send("v1/translate", { texts, ...wishes });
      translations.forEach((each, i) => this.#results.set(keyOf(texts[i]), resultOf(each)));
      for (const source of texts) places.get(source).forEach((index) => show(source, index));
    }
    for (const key of [...this.#results.keys()].slice(0, -CACHED_TRANSLATIONS)) this.#results.delete(key);
    this.#post({ kind: "done", id });
  }
}

/** An error that asking again would not change. */
class ServerError extends Error {}

/** What the page shows of a translation. */
function resultOf({ hypotheses, flags, attention = [] }) {
  const [map, ...others] = attention; // several of a sentence that is translated in parts
  return {
    text: hypotheses[0].text,
    alternatives: hypotheses,
    doubts: inWords(flags),
    attention: map && !others.length ? { target: map.rows, source: map.columns, weights: map.weights.flat() } : null,
  };
}
