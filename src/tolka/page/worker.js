// The worker of a page: it translates one text at a time, sentence by sentence, and listens to the page in between.
//
// From the page: {kind: "open", about, weights}, and {kind: "translate", id, model: its number, direction, text,
// alternatives: how many, attention: whether, whole: whether the text is one sentence}; a newer one ends an older one.
// To the page: "opened", then "split", "partial" and "translated" of each sentence, and "done"; or "failed".

import { Translator } from "./model.js";

const CACHED_SENTENCES = 200;
const LISTEN_AFTER = 20; // milliseconds of work

/** Let the page's messages be read, at once, where a timer would wait for 4 ms. */
const readMessages = () =>
  new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => resolve(port1.close());
    port2.postMessage(null);
  });

/** What receives the page's messages; `post` sends one to the page. */
export function createWorker(post) {
  let translators = [];
  let current = null; // id of the latest request
  const results = new Map(); // of the latest sentences, the oldest first

  /** The translation of a sentence; null if another request has come. */
  async function translateSentence({ id, model, direction, alternatives, attention }, source, index) {
    const key = JSON.stringify([model, direction, source, alternatives, attention]);
    if (results.has(key)) return results.get(key);
    const steps = translators[model].steps(source, { direction, alternatives, attention });
    let step = steps.next();
    for (let readAt = performance.now(); !step.done; step = steps.next()) {
      if (performance.now() - readAt < LISTEN_AFTER) continue;
      post({ kind: "partial", id, index, text: step.value });
      await readMessages();
      if (current !== id) return null;
      readAt = performance.now();
    }
    if (results.size >= CACHED_SENTENCES) results.delete(results.keys().next().value);
    results.set(key, step.value);
    return step.value;
  }

  async function translate(request) {
    const { id, model, text, direction, whole } = request;
    current = id;
    const asOne = { sentences: [text], separators: ["", ""] };
    const { sentences, separators } = whole ? asOne : translators[model].splitter.split(text, direction);
    post({ kind: "split", id, sources: sentences, separators });
    for (const [index, source] of sentences.entries()) {
      const result = await translateSentence(request, source, index);
      if (result) post({ kind: "translated", id, index, ...result });
      await readMessages();
      if (current !== id) return;
    }
    post({ kind: "done", id });
  }

  function open({ about, weights }) {
    translators = about.models.map((model, number) => new Translator(model, weights[number]));
    post({ kind: "opened", simd: translators.every(({ simd }) => simd) });
  }

  return async (request) => {
    const isOpening = request.kind === "open";
    try {
      await (isOpening ? open(request) : translate(request));
    } catch (error) {
      const isMemory = error instanceof RangeError && isOpening;
      const message = isMemory ? "This device has too little memory for the model." : error.message;
      post({ kind: "failed", id: request.id, message });
    }
  };
}

// In a page's worker, `self` is the page's other end; in Node nobody listens.
if (typeof WorkerGlobalScope !== "undefined") {
  const receive = createWorker((message) => self.postMessage(message));
  self.onmessage = ({ data }) => receive(data);
}
