// The worker of a page: it translates one text at a time, sentence by sentence, and listens to the page in between.

import { openModel } from "./model.js";

const CACHED_SENTENCES = 200;
const LISTEN_AFTER = 20; // milliseconds of work

// post: sends a message to the page. Returns what receives the page's messages.
export function createWorker(post) {
  let translators = [];
  let current = null; // id of the latest request
  const results = new Map(); // of the latest sentences, the oldest first
  const channel = new MessageChannel();
  const messagesAreRead = () =>
    new Promise((resolve) => {
      channel.port1.onmessage = resolve; // at once, where a timer would wait for 4 ms
      channel.port2.postMessage(null);
    });

  // Return the translation of a sentence, or null if another request has come.
  async function translateSentence({ id, model, direction, alternatives, attention }, sentence, onPartial) {
    const key = JSON.stringify([model, direction, sentence, alternatives, attention]);
    if (results.has(key)) return results.get(key);
    const steps = translators[model].steps(sentence, { direction, alternatives, attention });
    let listened = performance.now();
    for (let step = steps.next(); ; step = steps.next()) {
      if (step.done) {
        if (results.size >= CACHED_SENTENCES) results.delete(results.keys().next().value);
        results.set(key, step.value);
        return step.value;
      }
      if (performance.now() - listened < LISTEN_AFTER) continue;
      onPartial(step.value);
      await messagesAreRead();
      if (current !== id) return null;
      listened = performance.now();
    }
  }

  async function translate(request) {
    const { id, model, text, direction, whole } = request;
    const { splitter } = translators[model];
    const { sentences, separators } = whole ? { sentences: [text], separators: ["", ""] } : splitter.split(text, direction);
    post({ kind: "split", id, count: sentences.length, sources: sentences, separators });
    for (const [index, source] of sentences.entries()) {
      const result = await translateSentence(request, source, (partial) => post({ kind: "partial", id, index, text: partial }));
      if (result === null) return;
      post({ kind: "translated", id, index, source, ...result });
      await messagesAreRead();
      if (current !== id) return;
    }
    post({ kind: "done", id });
  }

  return async (message) => {
    const { kind, id } = message;
    try {
      if (kind === "open") {
        translators = message.about.models.map((about, number) => openModel(about, message.weights[number]));
        post({ kind: "opened", simd: translators.every(({ simd }) => simd) });
      }
      if (kind === "cancel" && id === current) current = null;
      if (kind !== "translate") return;
      current = id;
      await translate(message);
    } catch (error) {
      const isMemory = error instanceof RangeError && kind === "open";
      post({ kind: "failed", id, message: isMemory ? "This device has too little memory for the model." : error.message });
    }
  };
}

// In a page's worker, `self` is the page's other end; in Node nobody listens.
if (typeof WorkerGlobalScope !== "undefined") {
  const receive = createWorker((message) => self.postMessage(message));
  self.onmessage = ({ data }) => receive(data);
}
