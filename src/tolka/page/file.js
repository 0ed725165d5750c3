// The engine of a page in one file: a Worker with the runtime and the weights that the file has.

async function createWorkerEngine(about) {
  const weights = await Promise.all(about.models.map(readWeights));
  const runtime = new Blob([page.runtime.textContent], { type: "text/javascript" });
  const worker = new Worker(URL.createObjectURL(runtime));
  worker.onerror = ({ message = "" }) => fail(`The translator stopped; this browser may be too old. ${message}`);
  worker.postMessage({ kind: "open", about, weights }, weights);
  return worker;
}

/** Decodes a model's base64 in parts, so that it is not a string of its own on the way, and verifies the checksum. */
async function readWeights({ bytes: size, checksum }, index) {
  const text = page[`weights-${index}`].textContent;
  const bytes = new Uint8Array(Math.min(size, text.length)); // no size that the text does not have
  const part = 1 << 20;
  for (let start = 0, end = 0; start < text.length; start += part) {
    const characters = atob(text.slice(start, start + part));
    for (let i = 0; i < characters.length; i++) bytes[end++] = characters.charCodeAt(i);
  }
  page[`weights-${index}`].remove(); // its text takes more memory than the weights
  const digest = await globalThis.crypto?.subtle?.digest("SHA-256", bytes); // in files and on https, not on http
  const hex = digest && Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (digest && hex !== checksum) throw new Error("wrong checksum");
  return bytes.buffer;
}

open(createWorkerEngine).catch((error) => fail(error instanceof RangeError
  ? "This device has too little free memory for the model. Closing other programs may help."
  : `This file is damaged or incomplete; please copy or download it again. (${error.message})`));
