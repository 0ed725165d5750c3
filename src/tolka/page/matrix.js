// Matrices of weights in one memory, and their multiplication by rows of activations.
//
// Activations are arrays of rows, each a Float32Array. Shapes: N rows (positions of a source, or hypotheses of a beam),
// I inputs, O outputs.

const PAGE_BYTES = 65536; // by which WebAssembly counts its memory
const MOST_ROWS = 64; // that one multiplication has space for
const DTYPES = {
  int8: { kernel: "int8Rows", Weights: Int8Array, Activations: Int16Array, Sums: Int32Array },
  fp32: { kernel: "fp32Rows", Weights: Float32Array, Activations: Float32Array, Sums: Float32Array },
};

const roundUp = (size) => Math.ceil(size / 16) * 16; // to SIMD registers, and to what one turn of a kernel's loop takes

/** The kernels in JavaScript, for browsers without SIMD and for who reads them: out[n, o] = sum_i W[o, i] x[n, i]. */
function plainKernels(buffer) {
  const kernelOf = ({ Weights, Activations, Sums }) => (w, x, out, rows, stride, n) => {
    const [weights, activations, sums] = [new Weights(buffer, w), new Activations(buffer, x), new Sums(buffer, out)];
    const width = stride / Weights.BYTES_PER_ELEMENT;
    for (let row = 0; row < rows; row++)
      for (let k = 0; k < n; k++) {
        let sum = 0;
        for (let i = 0; i < width; i++) sum += weights[row * width + i] * activations[k * width + i];
        sums[k * rows + row] = sum;
      }
  };
  return Object.fromEntries(Object.values(DTYPES).map((dtype) => [dtype.kernel, kernelOf(dtype)]));
}

/** A memory for all matrices of a model, and, at its beginning, for the activations of one multiplication. */
export class Memory {
  constructor(tensors, simd) {
    const matrices = tensors.filter(({ shape }) => shape.length === 2);
    this.free = 0;
    let bytes = 0;
    for (const { shape: [rows, columns], dtype } of matrices) {
      this.free = Math.max(this.free, roundUp(MOST_ROWS * 4 * (roundUp(columns) + rows)));
      bytes += rows * roundUp(columns) * DTYPES[dtype].Weights.BYTES_PER_ELEMENT;
    }
    const pages = Math.ceil((this.free + bytes) / PAGE_BYTES);
    try {
      if (!simd) throw new Error("not wanted");
      const memory = new WebAssembly.Memory({ initial: pages });
      const code = Uint8Array.from(atob(KERNELS), (character) => character.charCodeAt(0));
      const instance = new WebAssembly.Instance(new WebAssembly.Module(code), { page: { memory } });
      Object.assign(this, { buffer: memory.buffer, kernels: instance.exports, simd: true });
    } catch {
      // No WebAssembly, none with SIMD, or a policy that forbids it: slower, and the same translations.
      const buffer = new ArrayBuffer(pages * PAGE_BYTES);
      Object.assign(this, { buffer, kernels: plainKernels(buffer), simd: false });
    }
  }
}

/** A matrix W (O, I). In int8, row o is scales[o] times its integers; in fp32 there are no scales. */
export class Matrix {
  constructor(memory, offset, rows, columns, scales) {
    Object.assign(this, { memory, offset, rows, columns, scales, dtype: scales ? DTYPES.int8 : DTYPES.fp32 });
    this.width = roundUp(columns); // of a row in memory, the last values of which are 0
    this.stride = this.width * this.dtype.Weights.BYTES_PER_ELEMENT;
  }

  /** The matrix of the file's `bytes`, where its rows have no space between them, copied into the memory. */
  static from(memory, bytes, { shape: [rows, columns], offset, scales }) {
    const matrix = new Matrix(memory, memory.free, rows, columns, scales && new Float32Array(bytes, scales, rows));
    const values = new matrix.dtype.Weights(bytes, offset, rows * columns);
    for (let row = 0; row < rows; row++) matrix.values(row).set(values.subarray(row * columns, (row + 1) * columns));
    memory.free += rows * matrix.stride;
    return matrix;
  }

  /** The matrix of the rows from .. to - 1, in the same memory. */
  part(from, to) {
    const scales = this.scales && this.scales.subarray(from, to);
    return new Matrix(this.memory, this.offset + from * this.stride, to - from, this.columns, scales);
  }

  values(row) {
    return new this.dtype.Weights(this.memory.buffer, this.offset + row * this.stride, this.columns);
  }

  /** A row in fp32, (I): a subword's embedding. */
  row(row) {
    const vector = new Float32Array(this.values(row));
    return this.scales ? vector.map((value) => value * this.scales[row]) : vector;
  }

  /** x (N, I) -> x W^T + b, (N, O) */
  multiply(x, bias = null) {
    const [first, others] = [x.slice(0, MOST_ROWS), x.slice(MOST_ROWS)];
    if (others.length) return [...this.multiply(first, bias), ...this.multiply(others, bias)];
    const { memory, rows, width, scales } = this;
    const { kernel, Activations, Sums } = this.dtype;
    const inputs = new Activations(memory.buffer, 0, x.length * width).fill(0);
    const output = MOST_ROWS * 4 * width; // behind the inputs
    const steps = x.map((row, n) => (scales ? quantize : copy)(row, inputs.subarray(n * width)));
    memory.kernels[kernel](this.offset, 0, output, rows, this.stride, x.length);
    const sums = new Sums(memory.buffer, output, x.length * rows);
    return steps.map((step, n) => {
      const result = new Float32Array(rows);
      for (let o = 0; o < rows; o++)
        result[o] = sums[n * rows + o] * step * (scales ? scales[o] : 1) + (bias ? bias[o] : 0);
      return result;
    });
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
  const sum = exponentials.reduce((total, value) => total + value, 0);
  const weights = exponentials.map((value) => value / sum);
  const context = new Float32Array(memory[0].value.length);
  memory.forEach(({ value }, j) => {
    for (let i = 0; i < context.length; i++) context[i] += weights[j] * value[i];
  });
  return { weights, context };
}

// kernels.wat, assembled, in base64; tests/formats/html/test_kernels.py assembles it again.
const KERNELS =
  "AGFzbQEAAAABCgFgBn9/f39/fwACEAEEcGFnZQZtZW1vcnkCAAEDAwIAAAcXAghpbnQ4Um93cwAACGZwMzJSb3dzAAEKwwMC0wECBX8BeyADIQYDQCAFIQcgASEIIAIhCQNA/QwAAAAAAAAAAAAAAAAAAAAAIQtBACEKA0AgCyAAIApq/QEDACAIIApBAXRq/QAEAP26ASAAIApq/QEDCCAIIApBAXRq/QAEEP26Af2uAf2uASELIApBEGohCiAKIARJDQALIAkgC/0bACAL/RsBaiAL/RsCIAv9GwNqajYCACAJIANBAnRqIQkgCCAEQQF0aiEIIAdBAWshByAHDQALIAAgBGohACACQQRqIQIgBkEBayEGIAYNAAsL6wECBX8CeyADIQYDQCAFIQcgASEIIAIhCQNA/QwAAAAAAAAAAAAAAAAAAAAAIQv9DAAAAAAAAAAAAAAAAAAAAAAhDEEAIQoDQCALIAAgCmr9AAQAIAggCmr9AAQA/eYB/eQBIQsgDCAAIApq/QAEECAIIApq/QAEEP3mAf3kASEMIApBIGohCiAKIARJDQALIAsgDP3kASELIAkgC/0fACAL/R8BkiAL/R8CIAv9HwOSkjgCACAJIANBAnRqIQkgCCAEaiEIIAdBAWshByAHDQALIAAgBGohACACQQRqIQIgBkEBayEGIAYNAAsL";
