// Runs a page's translator in Node: node translate.mjs PAGE.html < REQUEST. For comparisons with tolka.
//
// REQUEST: JSON with the number of a `model`, a `direction`, and either `lines` and a `search`, or `forced`: pairs of a
// source text and target ids. Written are the translations as JSON, or the logits (fp32, little-endian) one behind another.

import { readFileSync } from "node:fs";

const html = readFileSync(process.argv[2], "utf8");
const element = (id) => new RegExp(`<script [^>]*\\bid="${id}"[^>]*>([^]*?)</script>`).exec(html)[1];
const { openModel, normalizeSource } = new Function(`${element("runtime")}\nreturn { openModel, normalizeSource };`)();
const { model, direction, lines, search, forced, simd } = JSON.parse(readFileSync(0, "utf8"));
const about = JSON.parse(element("about")).models[model];
const bytes = Uint8Array.from(Buffer.from(element(`weights-${model}`), "base64"));
const translator = openModel(about, bytes.buffer, { simd });
const normalize = (text) => normalizeSource(text, about.characters, direction.source);

if (lines) {
  const texts = lines.map((line) => translator.translate(normalize(line), { direction, search }).text);
  process.stdout.write(JSON.stringify(texts));
} else {
  const logits = forced.flatMap(([source, ids]) => translator.forcedLogits(normalize(source), ids, direction));
  for (const row of logits) process.stdout.write(new Uint8Array(row.buffer));
}
