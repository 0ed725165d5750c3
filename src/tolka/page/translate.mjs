// Runs a page's translator in Node: node translate.mjs PAGE.html < REQUEST. For comparisons with tolka.
//
// REQUEST: JSON with the number of a `model`, a `direction`, and `lines` with `options` of `Translator.steps`, or
// `forced`: pairs of a source text and target ids. Written are the results as JSON, or logits, little-endian fp32.

import { readFileSync } from "node:fs";

const html = readFileSync(process.argv[2], "utf8");
const element = (id) => new RegExp(`<script [^>]*\\bid="${id}"[^>]*>([^]*?)</script>`).exec(html)[1];
const runtime = new Function(`${element("runtime")}\nreturn { Translator, normalizeSource };`);
const { Translator, normalizeSource } = runtime();
const { model, direction, lines, options, forced = [], simd } = JSON.parse(readFileSync(0, "utf8"));
const about = JSON.parse(element("about")).models[model];
const bytes = Uint8Array.from(Buffer.from(element(`weights-${model}`), "base64"));
const translator = new Translator(about, bytes.buffer, { simd });
const normalize = (text) => normalizeSource(text, about.characters, direction.source);
function translate(line) {
  const steps = translator.steps(normalize(line), { direction, ...options });
  for (let step = steps.next(); ; step = steps.next()) if (step.done) return step.value;
}
const plain = (_, value) => (ArrayBuffer.isView(value) ? [...value] : value);
if (lines) process.stdout.write(JSON.stringify(lines.map(translate), plain));
for (const [source, ids] of forced)
  for (const row of translator.forcedLogits(normalize(source), ids, direction))
    process.stdout.write(new Uint8Array(row.buffer));
