import { packingOf, stringifyJson } from "zpublish";
import { refused } from "./read-query.js";

/**
 * @import { Piscina } from "piscina"
 * @import { DatasetSnapshot, PluginContext, RouteRequest, ServedArray } from "zpublish"
 * @import { Selection } from "./read-query.js"
 * @import { ChunkSums, ChunkToSum } from "./sum-chunk.js"
 */

/**
 * Bounds of a request.
 * @typedef {object} Limits
 * @property {number} maxChunks Most chunks that it may read.
 * @property {number} maxValues Most means that it may ask for.
 */

/**
 * Sums all chunks of a selection, one after the other, until the client has gone.
 * @param {PluginContext} context
 * @param {{ snapshot: DatasetSnapshot, array: ServedArray, selection: Selection, request: RouteRequest, pool: Piscina,
 *   limits: Limits }} work
 * @returns {Promise<ChunkSums>}
 */
export async function sumArray({ chunks }, { snapshot, array, selection, request, pool, limits }) {
  const { axis, begin, end } = selection;
  const { chunkShape, itemSize } = { ...array.variable, ...array.variable.dataType };
  const lengths = end.map((last, at) => (at === axis ? 1 : last - begin[at]));
  const firsts = begin.map((first, at) => Math.floor(first / chunkShape[at]));
  const lasts = end.map((last, at) => Math.floor((last - 1) / chunkShape[at]));
  const count = lasts.reduce((product, last, at) => product * (last - firsts[at] + 1), 1);
  if (count > limits.maxChunks) throw refused("isel", `expected at most ${limits.maxChunks} chunks`, count);
  const size = lengths.reduce((product, length) => product * length, 1);
  if (size > limits.maxValues) throw refused("isel", `expected at most ${limits.maxValues} means`, size);

  const { missing, isUnsigned } = packingOf(array.variable.attrs, array.document.fill_value);
  const toSum = { document: stringifyJson({ ...array.document }), missing, isUnsigned };
  // A decoded chunk, its numbers as float64, and at most as many sums and counts.
  await request.reserve(chunkShape.reduce((product, length) => product * length, itemSize + 24));
  const sums = new Float64Array(size);
  const counts = new Float64Array(size);
  for (const coords of gridOf(firsts, lasts)) {
    const bytes = await chunks.read(snapshot, array, coords.join("."), request.signal);
    // An absent chunk holds fill values only, which are missing.
    if (bytes === undefined) continue;
    const inChunk = (/** @type {number} */ index, /** @type {number} */ at) =>
      Math.min(chunkShape[at], Math.max(0, index - coords[at] * chunkShape[at]));
    /** @type {ChunkToSum} */
    const chunk = { array: toSum, bytes, axis, begin: begin.map(inChunk), end: end.map(inChunk) };
    /** @type {ChunkSums} */
    const part = await pool.run(chunk, { signal: request.signal, transferList: [bytes.buffer] });
    const partLengths = chunk.end.map((last, at) => (at === axis ? 1 : last - chunk.begin[at]));
    const starts = coords.map((coord, at) =>
      at === axis ? 0 : coord * chunkShape[at] + chunk.begin[at] - begin[at],
    );
    let from = 0;
    for (const row of gridOf(
      partLengths.map(() => 0),
      partLengths.map((length, at) => (at === partLengths.length - 1 ? 0 : length - 1)),
    )) {
      const to = row.reduce((place, index, at) => place * lengths[at] + starts[at] + index, 0);
      for (let index = 0; index < (partLengths.at(-1) ?? 1); index++, from++) {
        sums[to + index] += part.sums[from];
        counts[to + index] += part.counts[from];
      }
    }
  }
  return { sums, counts };
}

/**
 * Counts through a box of indices, the last axis fastest.
 * @param {readonly number[]} firsts
 * @param {readonly number[]} lasts
 * @returns {Generator<number[]>}
 */
function* gridOf(firsts, lasts) {
  const [first, ...otherFirsts] = firsts;
  if (first === undefined) return yield [];
  for (let index = first; index <= lasts[0]; index++)
    for (const rest of gridOf(otherFirsts, lasts.slice(1))) yield [index, ...rest];
}
