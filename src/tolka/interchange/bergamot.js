// Translate lines with Bergamot's engine: node bergamot.js PACKAGE OPTIONS MODEL VOCABULARY... < lines > translations
// PACKAGE: the folder of @browsermt/bergamot-translator. OPTIONS: of Marian, as YAML.
"use strict";
const { readFileSync } = require("node:fs");
const { join } = require("node:path");

const [packageFolder, options, modelFile, ...vocabularyFiles] = process.argv.slice(2);
const worker = join(packageFolder, "worker", "bergamot-translator-worker");
// The engine's imports for matrices in int8, which Firefox has natively, and its own functions for other programs.
const ownFunctions = {
  int8_prepare_a: "int8PrepareAFallback",
  int8_prepare_b: "int8PrepareBFallback",
  int8_prepare_b_from_transposed: "int8PrepareBFromTransposedFallback",
  int8_prepare_b_from_quantized_transposed: "int8PrepareBFromQuantizedTransposedFallback",
  int8_prepare_bias: "int8PrepareBiasFallback",
  int8_multiply_and_add_bias: "int8MultiplyAndAddBiasFallback",
  int8_select_columns_of_b: "int8SelectColumnsOfBFallback",
};

// The package's script finds `Module` in the global scope, and expects to be in a browser's worker.
global.self = { location: { href: "" } };
global.importScripts = () => {};
global.Module = {
  print: console.error,
  printErr: console.error,
  instantiateWasm(imports, accept) {
    const gemm = Object.entries(ownFunctions).map(([name, own]) => [name, (...args) => Module.asm[own](...args)]);
    const all = { ...imports, wasm_gemm: Object.fromEntries(gemm) };
    WebAssembly.instantiate(readFileSync(`${worker}.wasm`), all).then(({ instance }) => accept(instance));
    return {};
  },
  onRuntimeInitialized: translateAll,
};
(0, eval)(readFileSync(`${worker}.js`, "utf-8"));

function alignedMemory(bytes, alignment) {
  const memory = new Module.AlignedMemory(bytes.length, alignment);
  memory.getByteArrayView().set(bytes);
  return memory;
}

function translateAll() {
  const vocabularies = new Module.AlignedMemoryList();
  for (const file of vocabularyFiles) vocabularies.push_back(alignedMemory(readFileSync(file), 64));
  const noShortlist = alignedMemory([], 64);
  const model = new Module.TranslationModel(
    options, alignedMemory(readFileSync(modelFile), 256), noShortlist, vocabularies, null);
  const service = new Module.BlockingService({ cacheSize: 0 });
  // Line by line: the longest source of a batch limits the lengths of all its translations.
  for (const line of readFileSync(0, "utf-8").split("\n").slice(0, -1)) {
    const texts = new Module.VectorString();
    const wishes = new Module.VectorResponseOptions();
    texts.push_back(line);
    wishes.push_back({ qualityScores: false, alignment: false, html: false });
    const responses = service.translate(model, texts, wishes);
    console.log(responses.get(0).getTranslatedText().replaceAll("\n", " "));
    for (const each of [texts, wishes, responses]) each.delete();
  }
}
