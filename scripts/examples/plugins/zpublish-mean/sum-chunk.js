import * as zarr from "zarrita";

/**
 * Plain data about an array.
 * @typedef {object} ArrayToSum
 * @property {string} document Its `.zarray`.
 * @property {readonly number[]} missing Stored numbers that mean a missing value.
 * @property {boolean | undefined} isUnsigned Whether stored integers are unsigned; undefined if the type tells.
 */

/**
 * Part of a chunk that is summed over an axis.
 * @typedef {object} ChunkToSum
 * @property {ArrayToSum} array
 * @property {Uint8Array} bytes Encoded.
 * @property {number} axis
 * @property {number[]} begin First index within the chunk, by axis.
 * @property {number[]} end Index behind the last.
 */

/**
 * Sums of the values that are not missing, and their numbers, in C order without the axis.
 * @typedef {object} ChunkSums
 * @property {Float64Array} sums
 * @property {Float64Array} counts
 */

/**
 * Decodes a chunk and sums it over an axis. It runs in a thread of its own, since the server's thread answers requests.
 * @param {ChunkToSum} chunk
 * @returns {Promise<ChunkSums>}
 */
export default async function sumChunk({ array, bytes, axis, begin, end }) {
  const { data, stride } = await decode(array.document, bytes);
  const values = numbersOf(data, array);
  const lengths = end.map((last, at) => last - begin[at]);
  const size = lengths.reduce((product, length, at) => (at === axis ? product : product * length), 1);
  const sums = new Float64Array(size);
  const counts = new Float64Array(size);
  const last = lengths.length - 1;
  /** @type {(at: number, offset: number, target: number) => void} */
  const sumFrom = (at, offset, target) => {
    if (at < last) {
      for (let index = 0; index < lengths[at]; index++) {
        const next = at === axis ? target : target * lengths[at] + index;
        sumFrom(at + 1, offset + (begin[at] + index) * stride[at], next);
      }
      return;
    }
    const step = axis === last ? 0 : 1;
    const first = axis === last ? target : target * lengths[at];
    for (let index = 0; index < lengths[at]; index++) {
      const value = values[offset + (begin[at] + index) * stride[at]];
      if (Number.isNaN(value)) continue;
      sums[first + index * step] += value;
      counts[first + index * step]++;
    }
  };
  sumFrom(0, 0, 0);
  return { sums, counts };
}

/**
 * Decodes a chunk as any client does: by the array's document.
 * @param {string} document
 * @param {Uint8Array} bytes
 */
async function decode(document, bytes) {
  const text = new TextEncoder().encode(document);
  const store = { get: async (/** @type {string} */ key) => (key.endsWith("/.zarray") ? text : bytes) };
  const array = await zarr.open.v2(zarr.root(store), { kind: "array", attrs: false });
  return array.getChunk(array.shape.map(() => 0));
}

/** Signed and unsigned types of the same size, for `_Unsigned` (NUG, Best Practices). */
const SIGNED = [Int8Array, Int16Array, Int32Array, BigInt64Array];
const UNSIGNED = [Uint8Array, Uint16Array, Uint32Array, BigUint64Array];

/**
 * Returns stored numbers, NaN for missing values.
 * @param {any} data
 * @param {ArrayToSum} array
 */
function numbersOf(data, { isUnsigned, missing }) {
  const [from, to] = isUnsigned ? [SIGNED, UNSIGNED] : [UNSIGNED, SIGNED];
  const Signed = isUnsigned === undefined ? undefined : to[from.findIndex((Type) => data instanceof Type)];
  const stored = Signed === undefined ? data : new Signed(data.buffer, data.byteOffset, data.length);
  const isBig = stored instanceof BigInt64Array || stored instanceof BigUint64Array;
  // As the type has them: 1e20 is another number in float32.
  const marks = missing.map((mark) => Number(stored.constructor.of(isBig ? BigInt(mark) : mark)[0]));
  const values = new Float64Array(stored.length);
  for (let index = 0; index < stored.length; index++) {
    const value = Number(stored[index]);
    values[index] = marks.includes(value) ? Number.NaN : value;
  }
  return values;
}
