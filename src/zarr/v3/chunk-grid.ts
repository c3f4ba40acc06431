import { isJsonArray, type JsonValue, toBigInt } from "../../json/json-value.js";
import { describeJson } from "../../json/stringify-json.js";
import { type ChunkAxis, createChunkAxis } from "../../model/chunk-axis.js";
import { invalidField, parseArray, parseIntegers } from "../metadata-fields.js";
import { parseExtension, unsupported, v3Document } from "./v3-extension.js";

/**
 * Parses `chunk_grid`: `regular`, or `rectilinear` of the registry (zarr-extensions, chunk-grids/rectilinear), with
 * `encoded_chunk_shapes` as proposed there (#75). zarr-python 3.2 wrote lists of lengths into grids named `regular`, too.
 * @returns The shape of all files if they are equal, else their lengths along each axis.
 * @throws ZpublishError `invalid-metadata`, `unsupported`
 */
export function parseChunkGrid(
  value: JsonValue | undefined,
  shape: readonly number[],
): { readonly chunkShape: readonly number[] } | { readonly axes: readonly ChunkAxis[] } {
  const { name, configuration } = parseExtension(value, "chunk_grid");
  const { kind = "inline", chunk_shape, chunk_shapes, encoded_chunk_shapes } = configuration;
  if (name !== "regular" && name !== "rectilinear")
    throw unsupported("a chunk_grid regular or rectilinear", JSON.stringify(name));
  if (name === "regular" && !(isJsonArray(chunk_shape) && chunk_shape.some(isJsonArray)))
    return { chunkShape: parseIntegers(chunk_shape, v3Document, "chunk_shape", 1, shape.length) };
  if (kind !== "inline")
    throw unsupported('a rectilinear chunk_grid of the kind "inline"', describeJson(kind));
  const given = name === "regular" ? chunk_shape : chunk_shapes;
  const lists = parseArray(given, v3Document, "chunk_shapes");
  const decoded = parseArray(encoded_chunk_shapes ?? lists, v3Document, "encoded_chunk_shapes");
  if (lists.length !== shape.length || decoded.length !== shape.length)
    throw invalidField(
      v3Document,
      `chunk_shapes to be a list of ${shape.length} entries, one per axis`,
      given,
    );
  const axes = shape.map((extent, axis) => parseAxis(lists[axis]!, decoded[axis]!, extent));
  const isEqual = ({ runs: [run, ...others] }: ChunkAxis) =>
    others.length === 0 && run!.length === run!.decodedLength;
  return axes.every(isEqual) ? { chunkShape: axes.map(({ runs }) => runs[0]!.length) } : { axes };
}

/** Chunks of equal length, as they are written. */
interface Run {
  readonly length: number;
  readonly count: number;
}

/**
 * Parses the chunks along one axis.
 * @param given A length, which is repeated to the end of the array, or a list.
 * @param decoded The same of the lengths that chunks decode to.
 */
function parseAxis(given: JsonValue, decoded: JsonValue, extent: number): ChunkAxis {
  const runs = parseRuns(given, (length) => Math.max(1, Math.ceil(extent / length)));
  const sum = runs.reduce((before, { length, count }) => before + length * count, 0);
  if (sum < extent) throw invalidField(v3Document, `chunk_shapes to have a sum of at least ${extent}`, given);
  // An axis of length 0 may have no chunks.
  if (runs.length === 0) return createChunkAxis([{ length: 1, decodedLength: 1, count: 1 }], extent);
  const rest = [...parseRuns(decoded, () => Number.POSITIVE_INFINITY)].reverse();
  const both: (Run & { readonly decodedLength: number })[] = [];
  const mismatch = () =>
    invalidField(v3Document, "encoded_chunk_shapes to have as many chunks, none of them shorter", decoded);
  for (const { length, count } of runs) {
    for (let left = count; left > 0; ) {
      const next = rest.pop();
      if (next === undefined || next.length < length) throw mismatch();
      const taken = Math.min(left, next.count);
      both.push({ length, decodedLength: next.length, count: taken });
      left -= taken;
      if (next.count > taken) rest.push({ length: next.length, count: next.count - taken });
    }
  }
  if (rest.some(({ count }) => Number.isFinite(count))) throw mismatch();
  return createChunkAxis(both, extent);
}

/** Parses lengths and pairs of a length and how often it is repeated. @param countOf Returns how often a length alone is repeated. */
function parseRuns(given: JsonValue, countOf: (length: number) => number): readonly Run[] {
  const entries = isJsonArray(given) ? given : [given];
  return entries.map((entry) => {
    const [length, count, ...others] = (isJsonArray(entry) ? entry : [entry, 1]).map(toBigInt).map(Number);
    if (others.length > 0 || !isCount(length) || !isCount(count)) {
      const expected =
        "chunk_shapes to have positive integers, or pairs of a length and how often it is repeated";
      throw invalidField(v3Document, expected, entry);
    }
    return { length, count: isJsonArray(given) ? count : countOf(length) };
  });
}

function isCount(value: number | undefined): value is number {
  return Number.isSafeInteger(value) && value! >= 1;
}
