// The worker of a page: it translates one text at a time, sentence by sentence, and listens to the page in between.

import { openModel } from "./model.js";

const CACHED_SENTENCES = 200;
const LISTEN_AFTER = 20; // milliseconds of work

/** Let the page's messages be read, at once, where a timer would wait for 4 ms. */
async function readMessages() {
  const { port1, port2 } = new MessageChannel();
  await new Promise((resolve) => {
    port1.onmessage = resolve;
    port2.postMessage(null);
  });
  port1.close();
}

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
    const asOne = { sentences: [text], separators: ["", ""] };
    const { sentences, separators } = whole ? asOne : translators[model].splitter.split(text, direction);
    post({ kind: "split", id, count: sentences.length, sources: sentences, separators });
    for (const [index, source] of sentences.entries()) {
      const result = await translateSentence(request, source, index);
      if (result) post({ kind: "translated", id, index, source, ...result });
      await readMessages();
      if (current !== id) return;
    }
    post({ kind: "done", id });
  }

  return async (request) => {
    const { kind, id } = request;
    try {
      if (kind === "open") {
        translators = request.about.models.map((about, number) => openModel(about, request.weights[number]));
        post({ kind: "opened", simd: translators.every(({ simd }) => simd) });
      }
      if (kind === "cancel" && id === current) current = null;
      if (kind !== "translate") return;
      current = id;
      await translate(request);
    } catch (error) {
      const isMemory = error instanceof RangeError && kind === "open";
      const message = isMemory ? "This device has too little memory for the model." : error.message;
      post({ kind: "failed", id, message });
    }
  };
}

// In a page's worker, `self` is the page's other end; in Node nobody listens.
if (typeof WorkerGlobalScope !== "undefined") {
  const receive = createWorker((message) => self.postMessage(message));
  self.onmessage = ({ data }) => receive(data);
}
