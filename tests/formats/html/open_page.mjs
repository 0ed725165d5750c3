// Opens a page in Node, with elements that only hold what page.js sets: node open_page.mjs PAGE.html
//
// Written is JSON: the texts of its list of languages, its notice, and the bytes of weights that its worker received.
import { readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

const html = readFileSync(process.argv[2], "utf8");
const nothing = () => {};

class FakeElement {
  constructor(id = "") {
    Object.assign(this, { id, textContent: html.match(`<script [^>]*id="${id}">([^]*?)</script>`)?.[1] ?? "", options: [] });
  }
  add(option) { this.options.push(option.text); }
  querySelectorAll() { return []; }
}
for (const name of ["append", "replaceChildren", "remove", "close", "dispatchEvent"]) FakeElement.prototype[name] = nothing;

const elements = [...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => new FakeElement(id));
const page = Object.fromEntries(elements.map((each) => [each.id, each]));
page.source.value = "";
let received = null;
Object.assign(globalThis, {
  document: {
    querySelectorAll: (selector) => (selector === "[id]" ? elements : []),
    createElement: () => new FakeElement(),
    addEventListener: nothing,
  },
  Option: function Option(text) { this.text = text; },
  Worker: class {
    postMessage({ kind, weights }) { if (kind === "open") received = weights.map((each) => [...new Uint8Array(each)]); }
  },
});
new Function(/<script type="module">([^]*?)<\/script>/.exec(html)[1])();
while (!received && !page.notice.textContent) await wait(1);
process.stdout.write(JSON.stringify({ options: page.direction.options, notice: page.notice.textContent, received }));
