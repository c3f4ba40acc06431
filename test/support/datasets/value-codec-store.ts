import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { crc32c } from "../../../src/codec/checksums.js";
import type { JsonObject, JsonValue } from "../../../src/json/json-value.js";
import { parseJson } from "../../../src/json/parse-json.js";
import { exactlyCast, exactlyUnscaled, type NumberName, V3_NAMES } from "../codec/exact-numbers.js";
import { bytesOfItems } from "../codec/number-items.js";
import { startServer } from "../servers/start-server.js";
import { makeDirectory, type Teardown, v3Group, writeFiles } from "../write-store.js";

/** A Zarr v3 array with `scale_offset` and `cast_value`, by what is stored of it. */
export interface EncodedArray {
  readonly type: "f4" | "f8";
  readonly encoded: NumberName;
  readonly scale: number;
  readonly offset: number;
  /** Stored number that is NaN. */
  readonly mark?: bigint | undefined;
  readonly fillValue: number;
  readonly attributes?: JsonObject;
  /** Stored numbers, {@link ROWS} by {@link COLUMNS}. Those of the last chunk are not stored. */
  readonly items: readonly bigint[];
  readonly isSharded: boolean;
}

export const ROWS = 4;
export const COLUMNS = 128;
const CHUNK = [2, 64] as const;

/** Chunks are in a grid of two by two. */
const isAbsent = (row: number, column: number) => row >= CHUNK[0] && column >= CHUNK[1];

/** Writes a float as JSON has it. */
export function floatJson(value: number): JsonValue {
  return Number.isNaN(value) ? "NaN" : parseJson(Object.is(value, -0) ? "-0.0" : String(value));
}

/** The files of an array: `zarr.json`, chunks in gzip, or shards with an index and its checksum. */
export function encodedFiles(array: EncodedArray): Record<string, object | Uint8Array> {
  const { encoded, scale, offset, mark, isSharded, attributes = {} } = array;
  const little = { name: "bytes", configuration: { endian: "little" } };
  const map = mark === undefined ? {} : { scalar_map: { encode: [["NaN", mark]], decode: [[mark, "NaN"]] } };
  const codecs = [
    { name: "scale_offset", configuration: { scale, offset } },
    { name: "cast_value", configuration: { data_type: V3_NAMES[encoded], ...map } },
    little,
    { name: "gzip", configuration: { level: 1 } },
  ];
  const sharding = { chunk_shape: CHUNK, codecs, index_codecs: [little, { name: "crc32c" }] };
  const chunks = [0, 1, 2, 3].map((index) => {
    const [y, x] = [index >> 1, index & 1];
    const kept = array.items.filter(
      (_, at) => Math.floor(at / COLUMNS / CHUNK[0]) === y && Math.floor((at % COLUMNS) / CHUNK[1]) === x,
    );
    return gzipSync(bytesOfItems(kept, encoded));
  });
  const document = {
    zarr_format: 3,
    node_type: "array",
    shape: [ROWS, COLUMNS],
    data_type: V3_NAMES[array.type],
    chunk_grid: { name: "regular", configuration: { chunk_shape: isSharded ? [ROWS, CHUNK[1]] : CHUNK } },
    chunk_key_encoding: { name: "default" },
    fill_value: Number.isNaN(array.fillValue) ? "NaN" : array.fillValue,
    dimension_names: ["y", "x"],
    attributes,
    codecs: isSharded ? [{ name: "sharding_indexed", configuration: sharding }] : codecs,
  };
  // Marks have up to 32 bits.
  const text = JSON.stringify(document, (_key, value) => (typeof value === "bigint" ? Number(value) : value));
  const head = { "zarr.json": Buffer.from(text) };
  const [first, second, third] = chunks as [Buffer, Buffer, Buffer, Buffer];
  return isSharded
    ? { ...head, "c/0/0": shardOf([first, third]), "c/0/1": shardOf([second, undefined]) }
    : { ...head, "c/0/0": first, "c/0/1": second, "c/1/0": third };
}

function shardOf(chunks: readonly (Uint8Array | undefined)[]): Uint8Array {
  const index = Buffer.alloc(16 * chunks.length, 0xff);
  let at = 0;
  chunks.forEach((chunk, position) => {
    if (chunk === undefined) return;
    index.writeBigUInt64LE(BigInt(at), 16 * position);
    index.writeBigUInt64LE(BigInt(chunk.length), 16 * position + 8);
    at += chunk.length;
  });
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32LE(crc32c(index));
  return Buffer.concat([...chunks.filter((chunk) => chunk !== undefined), index, checksum]);
}

/** The values of an array in C order, decoded with fractions as the registry prescribes. */
export function exactValues({ type, scale, offset, mark, fillValue, items }: EncodedArray): number[] {
  const inType = (value: number) => (type === "f4" ? Math.fround(value) : value);
  return items.map((item, at) => {
    if (isAbsent(Math.floor(at / COLUMNS), at % COLUMNS)) return inType(fillValue);
    if (item === mark) return Number.NaN;
    const cast = exactlyCast(item, type, "nearest-even", undefined) as number;
    return exactlyUnscaled(cast, type, inType(scale), inType(offset)) as number;
  });
}

/** Serves arrays by name as the dataset `d`. */
export async function serveEncoded(t: Teardown, arrays: Readonly<Record<string, EncodedArray>>) {
  const directory = await makeDirectory(t);
  await writeFiles(directory, { "zarr.json": v3Group });
  for (const [name, array] of Object.entries(arrays))
    await writeFiles(join(directory, name), encodedFiles(array));
  return { ...(await serveDirectory(t, directory)), directory };
}

/** Serves a store as the dataset `d`. */
export function serveDirectory(t: Teardown, location: string) {
  return startServer(t, { datasets: [{ id: "d", location, immutable: false, encoding: {}, variables: {} }] });
}
