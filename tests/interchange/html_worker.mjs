// Drives the worker of a page, as the page does: node html_worker.mjs PAGE.html

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const html = readFileSync(process.argv[2], "utf8");
const element = (id) => new RegExp(`<script [^>]*\\bid="${id}"[^>]*>([^]*?)</script>`).exec(html)[1];
const { createWorker } = new Function(`${element("runtime")}\nreturn { createWorker };`)();
const about = JSON.parse(element("about"));
about.models[0].search = { ...about.models[0].search, max_length_factor: 0, max_length_extra: 400 };
const weights = [Uint8Array.from(Buffer.from(element("weights-0"), "base64")).buffer];
const [direction] = about.models[0].directions;

let posted = [];
const receive = createWorker((message) => posted.push(message));
const kinds = () => posted.map(({ kind, id }) => (id === undefined ? kind : `${kind} ${id}`));
const translate = (id, text, wishes) => receive({ kind: "translate", id, model: 0, direction, text, alternatives: 0, ...wishes });

await receive({ kind: "open", about, weights });
assert.deepEqual(posted, [{ kind: "opened", simd: true }]);

posted = [];
await translate(1, "Lantern ferry.  Kettle.");
const [split] = posted;
assert.deepEqual(split, { kind: "split", id: 1, sources: ["Lantern ferry.", "Kettle."], separators: split.separators });
assert.equal(split.separators.length, 3);
const sentences = posted.filter(({ kind }) => kind === "translated");
assert.deepEqual(sentences.map(({ index }) => index), [0, 1]);
assert.ok(posted.some(({ kind, index, text }) => kind === "partial" && index === 0 && text), "partial translations");
assert.equal(kinds().at(-1), "done 1");

posted = [];
await translate(2, "Kettle.", { whole: true });
assert.deepEqual(kinds(), ["split 2", "translated 2", "done 2"]); // known, so that nothing is partial
assert.equal(posted[1].text, sentences[1].text);

posted = [];
await Promise.all([translate(3, "Pebble saddle. Orchid."), translate(4, "Copper.", { alternatives: 2 })]);
assert.ok(!kinds().includes("done 3"), "the older text is left");
assert.equal(kinds().at(-1), "done 4");
assert.equal(posted.find(({ kind, id }) => kind === "translated" && id === 4).alternatives.length, 2);

posted = [];
await translate(6, "  \n ");
assert.deepEqual(posted, [{ kind: "split", id: 6, sources: [], separators: ["  \n "] }, { kind: "done", id: 6 }]);

posted = [];
await receive({ kind: "translate", id: 7, model: 5, direction, text: "Ferry." });
assert.deepEqual(kinds(), ["failed 7"]);
console.log("as expected");
