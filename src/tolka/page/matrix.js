// Matrices of weights in one memory, and their multiplication by rows of activations.
//
// Activations are arrays of rows, each a Float32Array. Shapes: N rows (positions of a source, or hypotheses of a beam),
// I inputs, O outputs.

import { bytesOfBase64 } from "./characters.js";

const PAGE_BYTES = 65536; // by which WebAssembly counts its memory
const MOST_ROWS = 64; // that one multiplication has space for
const DTYPES = {
  int8: { Weights: Int8Array, Activations: Int16Array },
  fp32: { Weights: Float32Array, Activations: Float32Array },
};

const roundUp = (size) => Math.ceil(size / 16) * 16; // to SIMD registers, and to what one turn of a kernel's loop takes

/** kernels.wat in JavaScript, for browsers without SIMD and for who reads it. */
function plainKernels(buffer) {
  const kernelOf = ({ Weights, Activations }) => {
    const [weights, activations] = [new Weights(buffer), new Activations(buffer)];
    return (w, x, bytes) => {
      const [first, start] = [w / Weights.BYTES_PER_ELEMENT, x / Activations.BYTES_PER_ELEMENT];
      let sum = 0;
      for (let i = 0; i < bytes / Weights.BYTES_PER_ELEMENT; i++) sum += weights[first + i] * activations[start + i];
      return sum;
    };
  };
  return { int8: kernelOf(DTYPES.int8), fp32: kernelOf(DTYPES.fp32) };
}

/** A memory for the bytes of all tensors of a model, and, at its beginning, for the activations of a multiplication. */
export class Memory {
  constructor(tensors, bytes, simd) {
    const widest = Math.max(...tensors.map(({ shape }) => roundUp(shape[1] ?? 0)));
    this.start = MOST_ROWS * widest * 4; // of the tensors
    const pages = Math.ceil((this.start + bytes.byteLength) / PAGE_BYTES);
    try {
      if (!simd) throw new Error("not wanted");
      const memory = new WebAssembly.Memory({ initial: pages });
      const code = new WebAssembly.Module(bytesOfBase64(KERNELS));
      const { exports } = new WebAssembly.Instance(code, { page: { memory } });
      Object.assign(this, { buffer: memory.buffer, kernels: exports, simd: true });
    } catch {
      // No WebAssembly, none with SIMD, or a policy that forbids it: slower, and the same translations.
      const buffer = new ArrayBuffer(pages * PAGE_BYTES);
      Object.assign(this, { buffer, kernels: plainKernels(buffer), simd: false });
    }
    new Uint8Array(this.buffer).set(new Uint8Array(bytes), this.start);
  }

  vector(offset, length) {
    return new Float32Array(this.buffer, this.start + offset, length);
  }
}

/** A matrix W (O, I). In int8, row o is scales[o] times its integers; in fp32 the scales are 1. */
export class Matrix {
  constructor(memory, { shape: [rows, columns], dtype, offset }, scales) {
    Object.assign(this, { memory, rows, columns, dtype, offset, scales, ...DTYPES[dtype] });
    this.address = memory.start + offset;
    this.width = roundUp(columns); // of a row in memory, the last values of which are 0
    this.stride = this.width * this.Weights.BYTES_PER_ELEMENT;
  }

  /** The matrix of the rows from .. to - 1, in the same memory. */
  part(from = 0, to = this.rows) {
    const about = { shape: [to - from, this.columns], dtype: this.dtype, offset: this.offset + from * this.stride };
    return new Matrix(this.memory, about, this.scales.subarray(from, to));
  }

  /** A row in fp32, (I): a subword's embedding. */
  row(row) {
    const values = new this.Weights(this.memory.buffer, this.address + row * this.stride, this.columns);
    return new Float32Array(values).map((value) => value * this.scales[row]);
  }

  /** x (N, I) -> x W^T + b, (N, O) */
  multiply(x, bias = null) {
    const [first, others] = [x.slice(0, MOST_ROWS), x.slice(MOST_ROWS)];
    if (others.length) return [...this.multiply(first, bias), ...this.multiply(others, bias)];
    const { memory, dtype, address, rows, width, stride, scales, Activations } = this;
    const inputs = new Activations(memory.buffer, 0, x.length * width).fill(0);
    const steps = x.map((row, n) => (dtype === "int8" ? quantize : copy)(row, inputs.subarray(n * width)));
    const results = x.map(() => new Float32Array(rows));
    const [kernel, inputStride] = [memory.kernels[dtype], width * Activations.BYTES_PER_ELEMENT];
    // Each row of W is read once for all N, so that the hypotheses of a beam share one pass over the weights.
    for (let o = 0; o < rows; o++)
      for (let n = 0; n < x.length; n++) {
        const sum = kernel(address + o * stride, n * inputStride, stride);
        results[n][o] = sum * steps[n] * scales[o] + (bias ? bias[o] : 0);
      }
    return results;
  }
}

function copy(row, values) {
  values.set(row);
  return 1;
}

/**
 * Round a row of activations to int16; return the size of a step. With SIMD 16 bits cost no more than 8, and leave only
 * the weights' rounding. The largest value is such that no sum of products with int8 leaves 32 bits.
 */
function quantize(row, integers) {
  const largest = Math.min(32767, Math.floor((2 ** 31 - 1) / (127 * roundUp(row.length))));
  const most = row.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  if (most > 0) row.forEach((value, i) => (integers[i] = Math.round((value * largest) / most)));
  return most / largest;
}

/** Vectors side by side, as one. */
export function join(vectors) {
  const joined = new Float32Array(vectors.reduce((sum, vector) => sum + vector.length, 0));
  vectors.reduce((place, vector) => (joined.set(vector, place), place + vector.length), 0);
  return joined;
}

export const sigmoid = (x) => 1 / (1 + Math.exp(-x));

export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/**
 * Attention of one query to a memory of {key, value}: weights a_j = softmax_j(score(query, key_j)), and the context
 * sum_j a_j value_j.
 */
export function attend(query, memory, score) {
  const scores = Float32Array.from(memory, ({ key }) => score(query, key));
  const most = Math.max(...scores);
  const exponentials = scores.map((value) => Math.exp(value - most));
  const sum = exponentials.reduce((total, value) => total + value);
  const weights = exponentials.map((value) => value / sum);
  const context = new Float32Array(memory[0].value.length);
  memory.forEach(({ value }, j) => {
    for (let i = 0; i < context.length; i++) context[i] += weights[j] * value[i];
  });
  return { weights, context };
}

// kernels.wat, assembled, in base64; tests/formats/html/test_kernels.py assembles it again.
const KERNELS =
  "AGFzbQEAAAABDwJgA39/fwF/YAN/f38BfQIQAQRwYWdlBm1lbW9yeQIAAQMDAgABBw8CBGludDgAAARmcDMyAAEK2AECZAIBfwF7IAAgAmohAwNAIAQgAP0BAwAgAf0ABAD9ugEgAP0BAwggAf0ABBD9ugH9rgH9rgEhBCAAQRBqIQAgAUEgaiEBIAAgA0kNAAsgBP0bACAE/RsBaiAE/RsCIAT9GwNqagtxAgF/AnsgACACaiEDA0AgBCAA/QAEACAB/QAEAP3mAf3kASEEIAUgAP0ABBAgAf0ABBD95gH95AEhBSAAQSBqIQAgAUEgaiEBIAAgA0kNAAsgBCAF/eQBIQQgBP0fACAE/R8BkiAE/R8CIAT9HwOSkgs=";
