// Opens a page in Node, with elements that only hold what page.js sets: node open_page.mjs PAGE.html [BROWSER]
//
// Written is JSON: the texts of its list of directions, its notice, and the bytes of weights that its worker received.
// BROWSER, of a server's page, is JSON: its languages, what it stores, and ids of elements with the values that a person
// gives them; then written are also the texts of the lists of languages, the titles that the page has, and what is stored.
import { readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

const html = readFileSync(process.argv[2], "utf8");
const nothing = () => {};

class FakeElement {
  constructor(id = "") {
    Object.assign(this, { id, textContent: html.match(`<script [^>]*id="${id}">([^]*?)</script>`)?.[1] ?? "", options: [] });
  }
  add(option) { this.options.push(option.text); }
  replaceChildren(...children) { this.options = children.map((each) => each.text); }
  addEventListener(type, act) { this.listeners = [...this.listeners ?? [], act]; }
  dispatchEvent() { for (const act of this.listeners ?? []) act(); }
  querySelectorAll() { return []; }
}
for (const name of ["append", "remove", "close"]) FakeElement.prototype[name] = nothing;

const elements = [...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => new FakeElement(id));
const page = Object.fromEntries(elements.map((each) => [each.id, each]));
page.source.value = "";
const { languages = [], stored = {}, choices = [] } = JSON.parse(process.argv[3] ?? "{}");
const titles = [];
let received = null;
Object.defineProperty(globalThis, "navigator", { value: { languages } });
Object.assign(globalThis, {
  document: {
    querySelectorAll: (selector) => (selector === "[id]" ? elements : []),
    createElement: () => new FakeElement(),
    addEventListener: nothing,
  },
  window: { localStorage: { getItem: (key) => stored[key], setItem: (key, value) => { stored[key] = value; } } },
  Option: function Option(text) { this.text = text; },
  Worker: class {
    postMessage({ kind, weights }) { if (kind === "open") received = weights.map((each) => [...new Uint8Array(each)]); }
  },
});
new Function(/<script type="module">([^]*?)<\/script>/.exec(html)[1])();
while (!received && !page.notice.textContent && !page.from) await wait(1);
for (const [id, value] of [[], ...choices]) {
  if (id) Object.assign(page[id], { value }).onchange();
  titles.push(document.title);
}
const [options, from, into] = [page.direction, page.from, page.into].map((list) => list?.options);
const { textContent: notice } = page.notice;
process.stdout.write(JSON.stringify({ options, notice, received, from, into, titles, stored }));
