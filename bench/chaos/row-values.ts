import { type ChaosArray, type ChaosKey, filesOf } from "./chaos-arrays.js";

/** Every value of what is not there. */
export const FILL_VALUE = -1;
/** In place of a version: the file is not there. */
export const ABSENT = -1;

/**
 * The values of one row as a version of its file has them: version, row and noise that depends on all of these, so that
 * each value tells what it belongs to.
 */
export function rowValues(array: ChaosArray, row: number, version: number): Int32Array {
  const values = new Int32Array(array.items);
  const base = (version << 16) | (row << 8);
  let state = Math.imul(array.number * 65_537 + row * 257 + version + 1, 0x9e3779b1) | 1;
  for (let i = 0; i < values.length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    values[i] = base | (state & 0xff);
  }
  return values;
}

/** What a served chunk turned out to hold. */
export type ChunkFinding =
  | {
      /** Of each of its files, see `filesOf`; {@link ABSENT} where it holds fill values. */
      readonly versions: readonly number[];
    }
  | { readonly problem: string };

/** Compares every value of a decoded chunk with what was ever written there. */
export function checkChunk(key: ChaosKey, decoded: Uint8Array): ChunkFinding {
  const array = key.array as ChaosArray;
  const { items, rows, rowsPerChunk, rowsPerFile } = array;
  const expectedBytes = rowsPerChunk * items * 4;
  if (decoded.byteLength !== expectedBytes)
    return { problem: `expected ${expectedBytes} bytes, received ${decoded.byteLength}` };
  const values = new Int32Array(Uint8Array.from(decoded).buffer);
  const files = filesOf(key);
  const versions: number[] = [];
  for (let i = 0; i < rowsPerChunk; i++) {
    const row = key.row + i;
    const received = values.subarray(i * items, (i + 1) * items);
    const isInside = row < rows;
    const version = received[0] === FILL_VALUE || !isInside ? ABSENT : received[0]! >> 16;
    const expected =
      version === ABSENT ? new Int32Array(items).fill(FILL_VALUE) : rowValues(array, row, version);
    const at = received.findIndex((value, item) => value !== expected[item]);
    if (at >= 0) {
      const [was, is] = [expected[at]!, received[at]!].map(describe);
      return { problem: `row ${row}, item ${at}: expected ${was}, received ${is}` };
    }
    if (!isInside) continue;
    const file = Math.floor(row / rowsPerFile) - files[0]!;
    if (versions[file] !== undefined && versions[file] !== version)
      return { problem: `row ${row}: expected version ${versions[file]} of its file, received ${version}` };
    versions[file] = version;
  }
  return { versions };
}

function describe(value: number): string {
  if (value === FILL_VALUE) return "the fill value";
  return `version ${value >> 16} of row ${(value >> 8) & 0xff} (${value})`;
}
