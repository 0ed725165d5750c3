// Matrices of weights in one memory, and their multiplication by rows of activations.
//
// Shapes: N rows of activations (positions of a source, or hypotheses of a beam), I inputs, O outputs.

import { KERNELS } from "./kernels.js";

const PAGE = 65536; // bytes by which a WebAssembly memory grows
const ALIGNMENT = 16; // bytes of a SIMD register, and values that one turn of a kernel's loop takes
const LARGEST_INT16 = 32767;
const LARGEST_SUM = 2 ** 31 - 1; // of products, in int32

const roundUp = (size) => Math.ceil(size / ALIGNMENT) * ALIGNMENT;

// The kernels in JavaScript, for an engine without WebAssembly or SIMD, and for who reads them: see kernels.wat.
function plainKernels(memory) {
  const multiply = (weights, activations, out, rows, width, n) => {
    for (let o = 0; o < rows; o++)
      for (let k = 0; k < n; k++) {
        let sum = 0;
        for (let i = 0, w = o * width, x = k * width; i < width; i++) sum += weights[w++] * activations[x++];
        out[k * rows + o] = sum;
      }
  };
  return {
    int8Rows(w, x, out, rows, stride, n) {
      const { buffer } = memory;
      multiply(new Int8Array(buffer, w), new Int16Array(buffer, x), new Int32Array(buffer, out), rows, stride, n);
    },
    fp32Rows(w, x, out, rows, stride, n) {
      const { buffer } = memory;
      multiply(new Float32Array(buffer, w), new Float32Array(buffer, x), new Float32Array(buffer, out), rows, stride / 4, n);
    },
  };
}

// A memory for all weights of a model, with space behind them for the activations of one multiplication.
export class Memory {
  constructor(bytes, simd = true) {
    const pages = Math.ceil(bytes / PAGE) + 1;
    this.free = 0;
    if (typeof WebAssembly === "undefined") this.memory = { buffer: new ArrayBuffer(pages * PAGE) };
    else this.memory = new WebAssembly.Memory({ initial: pages });
    this.kernels = plainKernels(this.memory);
    this.simd = simd;
    try {
      const code = Uint8Array.from(atob(KERNELS), (character) => character.charCodeAt(0));
      const module = new WebAssembly.Module(code);
      if (simd) this.kernels = new WebAssembly.Instance(module, { page: { memory: this.memory } }).exports;
    } catch {
      this.simd = false;
      // No WebAssembly, none with SIMD, or a policy that forbids it: slower, and the same translations.
    }
  }

  get buffer() {
    return this.memory.buffer;
  }

  allocate(bytes) {
    const offset = this.free;
    this.free += roundUp(bytes);
    return offset;
  }

  // Make sure that there are so many bytes behind the weights; return where they begin.
  scratch(bytes) {
    const missing = this.free + bytes - this.buffer.byteLength;
    if (missing > 0 && this.memory.grow) this.memory.grow(Math.ceil(missing / PAGE));
    else if (missing > 0) {
      const larger = new Uint8Array(this.free + bytes);
      larger.set(new Uint8Array(this.buffer, 0, this.free));
      this.memory.buffer = larger.buffer;
    }
    return this.free;
  }
}

// A matrix W (O, I). In int8, row o is scales[o] * its integers.
export class Matrix {
  constructor(memory, offset, rows, columns, scales) {
    Object.assign(this, { memory, offset, rows, columns, scales });
    this.width = roundUp(columns); // of a row in memory, in values
    this.stride = this.width * (scales ? 1 : 4); // in bytes
  }

  // Copy a matrix from the bytes of a file, where rows have no space between them.
  static from(memory, bytes, { shape: [rows, columns], offset, scales }) {
    const dtype = scales === undefined ? Float32Array : Int8Array;
    const values = new dtype(bytes, offset, rows * columns);
    const matrix = new Matrix(memory, 0, rows, columns, scales === undefined ? null : new Float32Array(bytes, scales, rows));
    matrix.offset = memory.allocate(rows * matrix.stride);
    for (let row = 0; row < rows; row++)
      matrix.values(row).set(values.subarray(row * columns, (row + 1) * columns));
    return matrix;
  }

  // Bytes that `from` allocates.
  static size({ shape: [rows, columns], scales }) {
    return roundUp(rows * roundUp(columns) * (scales === undefined ? 4 : 1));
  }

  // The matrix of the rows from .. to - 1, which shares the memory.
  part(from, to) {
    const scales = this.scales && this.scales.subarray(from, to);
    return new Matrix(this.memory, this.offset + from * this.stride, to - from, this.columns, scales);
  }

  values(row) {
    const dtype = this.scales ? Int8Array : Float32Array;
    return new dtype(this.memory.buffer, this.offset + row * this.stride, this.columns);
  }

  // Row number `row` in fp32, (I): a subword's embedding.
  row(row) {
    const vector = new Float32Array(this.values(row));
    return this.scales ? vector.map((value) => value * this.scales[row]) : vector;
  }

  // x (N, I) -> x W^T + b, (N, O)
  multiply(x, n, bias = null) {
    const { memory, rows, columns, width, scales } = this;
    const size = scales ? 2 : 4; // bytes of an activation
    const input = memory.scratch(roundUp(n * width * size) + n * rows * 4);
    const output = input + roundUp(n * width * size);
    const inputs = new (scales ? Int16Array : Float32Array)(memory.buffer, input, n * width).fill(0);
    const activationScales = scales && this.quantise(x, n, inputs);
    if (!scales) for (let k = 0; k < n; k++) inputs.set(x.subarray(k * columns, (k + 1) * columns), k * width);
    memory.kernels[scales ? "int8Rows" : "fp32Rows"](this.offset, input, output, rows, this.stride, n);
    const sums = new (scales ? Int32Array : Float32Array)(memory.buffer, output, n * rows);
    const result = new Float32Array(sums);
    for (let k = 0, place = 0; k < n; k++)
      for (let o = 0; o < rows; o++, place++) {
        if (scales) result[place] = sums[place] * scales[o] * activationScales[k];
        if (bias) result[place] += bias[o];
      }
    return result;
  }

  // Round each row of x (N, I) to int16, in its own steps of s = max|x| / largest; return the steps (N).
  quantise(x, n, inputs) {
    // Activations get 16 bits, not 8: on SIMD it costs the same, and only the weights' rounding is left.
    const { columns, width } = this;
    const largest = Math.min(LARGEST_INT16, Math.floor(LARGEST_SUM / (127 * width)));
    const steps = new Float32Array(n);
    for (let k = 0; k < n; k++) {
      let most = 0;
      for (let i = k * columns; i < (k + 1) * columns; i++) most = Math.max(most, Math.abs(x[i]));
      steps[k] = most / largest;
      if (most > 0)
        for (let i = 0; i < columns; i++) inputs[k * width + i] = Math.round((x[k * columns + i] * largest) / most);
    }
    return steps;
  }
}

// Rows of one matrix (N, width) side by side, in the order of `numbers`.
export function selectRows(x, width, numbers) {
  const selected = new Float32Array(numbers.length * width);
  numbers.forEach((number, row) => selected.set(x.subarray(number * width, (number + 1) * width), row * width));
  return selected;
}

// Matrices (N, a), (N, b), ... side by side: (N, a + b + ...).
export function concatenate(parts, n) {
  const widths = parts.map((part) => part.length / n);
  const total = widths.reduce((sum, width) => sum + width, 0);
  const joined = new Float32Array(n * total);
  for (let k = 0; k < n; k++) {
    let place = k * total;
    parts.forEach((part, number) => {
      joined.set(part.subarray(k * widths[number], (k + 1) * widths[number]), place);
      place += widths[number];
    });
  }
  return joined;
}

export function dot(a, b, aStart, bStart, width) {
  let sum = 0;
  for (let i = 0; i < width; i++) sum += a[aStart + i] * b[bStart + i];
  return sum;
}

// exp(x_i - max) / sum, in place.
export function softmax(scores) {
  let most = -Infinity;
  for (const score of scores) most = Math.max(most, score);
  let sum = 0;
  for (let i = 0; i < scores.length; i++) sum += scores[i] = Math.exp(scores[i] - most);
  for (let i = 0; i < scores.length; i++) scores[i] /= sum;
  return scores;
}

// Vectors of one width behind one another: (N, width).
export function concatenateRows(vectors) {
  return concatenate(vectors, 1);
}

export const sigmoid = (x) => 1 / (1 + Math.exp(-x));
