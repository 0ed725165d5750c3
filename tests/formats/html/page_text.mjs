// Runs functions of src/tolka/page/ for test_page_text.py: JSON in, JSON out.
import { readFileSync } from "node:fs";

const [folder, name] = process.argv.slice(2);
const { normalizeSource } = await import(`${folder}/characters.js`);
const { splitSentences, Splitter } = await import(`${folder}/sentences.js`);
const { Tokenizer } = await import(`${folder}/tokenizer.js`);
const calls = {
  tokenize({ about, direction, lines, rows }) {
    const tokenizer = new Tokenizer(about);
    const encoded = lines.map((line) => tokenizer.encodeSource(line, direction));
    return { encoded, beginning: tokenizer.tags(direction).target, decoded: rows.map((row) => tokenizer.decodeTarget(row)) };
  },
  normalize: (cases) => cases.map(({ about, language, lines }) => lines.map((line) => normalizeSource(line, about, language))),
  sentences: (rows) => rows.map(([text, language, abbreviations]) => splitSentences(text, language, abbreviations)),
  split({ about, characters, tokenizer, direction, texts }) {
    const splitter = new Splitter(about, characters, new Tokenizer(tokenizer));
    return texts.map((text) => splitter.split(text, direction));
  },
};
process.stdout.write(JSON.stringify(calls[name](JSON.parse(readFileSync(0, "utf8")))));
