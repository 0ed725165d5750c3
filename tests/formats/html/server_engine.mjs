// Drives the engine of a server's page with a server of its own making: node server_engine.mjs .../page PAGE.html
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

const [folder, file] = process.argv.slice(2);
const { ServerEngine, parseTerms } = await import(`${folder}/server.js`);
new Function(/<script type="module">([^]*?)<\/script>/.exec(readFileSync(file, "utf8"))[1]); // it is JavaScript

const direction = { source: "en", target: "de" };
const about = { models: [{ title: "mine" }], abilities: { characters: 400, token: true } };
let asked = []; // [path, fields, headers] of each request
let refusals = []; // answers to the next requests in place of the right ones
let aborted = 0;
const attention = { rows: ["▁a", "</s>"], columns: ["▁b"], weights: [[1], [0.5]] };
const translated = (source) => ({
  source, flags: ["missing_number", "new_flag"], attention: [attention], hypotheses: [{ text: source.toUpperCase() }],
});
const answers = {
  "v1/sentences": ({ text }) => ({ sentences: text.split(" "), separators: [...text].map(() => "") }),
  "v1/translate": ({ texts }) => ({ translations: texts.map(translated) }),
};
globalThis.fetch = async (path, { method, headers, body, signal }) => {
  assert.equal(method, "POST");
  asked.push([path, JSON.parse(body), headers]);
  await wait(1);
  if (signal.aborted) aborted += 1;
  signal.throwIfAborted();
  const refused = refusals.shift();
  if (refused) return refused();
  return Response.json(answers[path](JSON.parse(body)));
};

let posted = [];
const tokens = [];
const engine = new ServerEngine(about, async (refused) => {
  tokens.push(refused);
  return "right";
});
engine.onmessage = ({ data }) => posted.push(data);
async function translate(id, text, wishes = {}) {
  asked = [];
  posted = [];
  engine.postMessage({ kind: "translate", id, model: 0, direction, text, alternatives: 0, attention: true, ...wishes });
  while (!posted.some((each) => each.id === id && (each.kind === "done" || each.isLast))) await wait(5);
}
const texts = () => asked.filter(([path]) => path === "v1/translate").map(([, fields]) => fields.texts);
const kinds = () => posted.map(({ kind, index, message }) => [kind, index, message].filter((each) => each !== undefined).join(" "));

// Sentences go in requests that grow; each once, and each to all of its places.
await translate(1, "a b a c d e f g h");
assert.deepEqual(texts(), [["a"], ["b", "c"], ["d", "e", "f", "g"], ["h"]]);
const { headers, ...fields } = { ...asked[1][1], headers: asked[1][2] };
assert.deepEqual(fields, {
  ...direction, model: "mine", texts: ["a"], search: {}, glossary: {}, details: true, attention: true,
});
assert.deepEqual(headers, { "Content-Type": "application/json" });
assert.deepEqual(kinds(), ["split", ...[0, 2, 1, 3, 4, 5, 6, 7, 8].map((index) => `translated ${index}`), "done"]);
assert.deepEqual(posted[1], {
  kind: "translated", id: 1, index: 0, text: "A", alternatives: [{ text: "A" }],
  doubts: ["a number is missing or differs", "new flag"],
  attention: { target: ["▁a", "</s>"], source: ["▁b"], weights: [1, 0.5] },
});

// What was translated is not sent again, unless other things are wanted.
await translate(2, "h new a");
assert.deepEqual(texts(), [["new"]]);
await translate(3, "a", { alternatives: 4, attention: false, whole: true });
assert.deepEqual(asked.map(([path]) => path), ["v1/translate"]);
assert.deepEqual(asked[0][1].search, { n_best: 4 });
engine.glossary = { a: ["z"] };
await translate(4, "a");
assert.deepEqual(texts(), [["a"]]);
assert.deepEqual(asked[1][1].glossary, { a: ["z"] });
await translate(5, " \n");
assert.deepEqual([asked, kinds()], [[], ["split", "done"]]);

// A newer request ends an older one, of which nothing more is heard.
engine.postMessage({ kind: "translate", id: 6, model: 0, direction, text: "old", alternatives: 0 });
await translate(7, "newer");
assert.deepEqual([aborted, posted.filter((each) => each.id === 6)], [1, []]);

// A server that is busy or gone is asked again; one that wants a token gets it.
const refuse = (status, error, more) => () => Response.json({ error }, { status, ...more });
refusals = [() => { throw new TypeError("network"); }, refuse(503, "busy", { headers: { "Retry-After": "0.01" } })];
await translate(8, "later");
assert.deepEqual(kinds(), [
  "failed The server cannot be reached. Trying again …", "failed The server answers: busy. Trying again …",
  "split", "translated 0", "done",
]);
refusals = [refuse(403, "a token is needed"), refuse(403, "a token is needed")];
await translate(9, "closed");
assert.deepEqual(tokens, ["", "right"]);
assert.deepEqual(asked.map(([, , { Authorization }]) => Authorization), [undefined, "Bearer right", "Bearer right", "Bearer right"]);

// Other errors are shown, and not asked for again; so is a text that is too long.
refusals = [refuse(400, "nothing translates from en to de")];
engine.postMessage({ kind: "translate", id: 10, model: 0, direction, text: "wrong", alternatives: 0 });
await wait(50);
assert.deepEqual(kinds().at(-1), "failed The server answers: nothing translates from en to de.");
asked = [];
engine.postMessage({ kind: "translate", id: 11, model: 0, direction, text: "x".repeat(401), alternatives: 0 });
await wait(20);
assert.deepEqual([asked, kinds().at(-1)], [[], "failed 401 characters: this server takes 400 at once."]);

assert.deepEqual(parseTerms("a = b\n\nc|d = e | f\nnothing\n漢字＝字 = 1\na\tg\n= h"), {
  glossary: { a: ["b", "g"], c: ["e", "f"], d: ["e", "f"], 漢字: ["字 = 1"] }, faulty: [4, 7],
});
console.log("as expected");
