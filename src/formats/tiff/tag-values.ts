import { ZpublishError } from "../../errors.js";
import { type CooperativeTask, runCooperatively } from "../../event-loop/cooperative-task.js";
import type { FileBlocks } from "../file-format.js";
import type { TagPlace } from "./tiff-directory.js";

/** Bytes of a value by field type (TIFF 6.0, section 2; BigTIFF: 16 to 18). */
export const TYPE_BYTES: Readonly<Record<number, number>> = {
  1: 1,
  2: 1,
  3: 2,
  4: 4,
  5: 8,
  6: 1,
  7: 1,
  8: 2,
  9: 4,
  10: 8,
  11: 4,
  12: 8,
  13: 4,
  16: 8,
  17: 8,
  18: 8,
};

/** Values that are converted between two looks at the clock. */
const VALUES_PER_STEP = 4096;

type Reader = (view: DataView, at: number, isLittleEndian: boolean) => number;

const unsigned: Reader = (view, at) => view.getUint8(at);
const long: Reader = (view, at, le) => view.getUint32(at, le);
const long8: Reader = (view, at, le) =>
  view.getUint32(at + (le ? 4 : 0), le) * 2 ** 32 + view.getUint32(at + (le ? 0 : 4), le);

const READERS: Readonly<Record<number, Reader>> = {
  1: unsigned,
  2: unsigned,
  3: (view, at, le) => view.getUint16(at, le),
  4: long,
  5: (view, at, le) => view.getUint32(at, le) / view.getUint32(at + 4, le),
  6: (view, at) => view.getInt8(at),
  7: unsigned,
  8: (view, at, le) => view.getInt16(at, le),
  9: (view, at, le) => view.getInt32(at, le),
  10: (view, at, le) => view.getInt32(at, le) / view.getInt32(at + 4, le),
  11: (view, at, le) => view.getFloat32(at, le),
  12: (view, at, le) => view.getFloat64(at, le),
  13: long,
  16: long8,
  17: (view, at, le) => Number(view.getBigInt64(at, le)),
  18: long8,
};

/** Reads the values of a tag that is known to be short. Rationals are divided. */
export async function readNumbers(
  file: FileBlocks,
  { type, count, offset }: TagPlace,
  isLittleEndian: boolean,
): Promise<readonly number[]> {
  const size = TYPE_BYTES[type] as number;
  const read = READERS[type] as Reader;
  const bytes = await file.read(offset, count * size);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: count }, (_, index) => read(view, index * size, isLittleEndian));
}

/** Reads a text, up to its first null character. It is UTF-8 as GDAL writes it, or Latin-1 if it cannot be that. */
export async function readText(file: FileBlocks, { count, offset }: TagPlace): Promise<string> {
  const bytes = await file.read(offset, count);
  const end = bytes.indexOf(0);
  const text = Buffer.from(end === -1 ? bytes : bytes.subarray(0, end));
  const decoded = text.toString("utf8");
  return decoded.includes("\ufffd") ? text.toString("latin1") : decoded;
}

/**
 * Reads a list of offsets or lengths, which may be long.
 * @param expected The number of entries that are needed; further ones are left out.
 * @throws ZpublishError `invalid-metadata` if there are fewer.
 */
export async function readList(
  file: FileBlocks,
  { type, count, offset }: TagPlace,
  expected: number,
  isLittleEndian: boolean,
): Promise<Float64Array> {
  if (count < expected || ![3, 4, 13, 16, 18].includes(type)) {
    throw new ZpublishError(
      "invalid-metadata",
      `expected a list of ${expected} offsets or lengths, received ${count} of field type ${type}`,
    );
  }
  const bytes = await file.readOnce(offset, expected * (TYPE_BYTES[type] as number));
  return runCooperatively(listSteps(bytes, type, expected, isLittleEndian));
}

function* listSteps(
  bytes: Uint8Array,
  type: number,
  count: number,
  isLittleEndian: boolean,
): CooperativeTask<Float64Array> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const size = TYPE_BYTES[type] as number;
  const read = READERS[type] as Reader;
  const list = new Float64Array(count);
  for (let index = 0; index < count; index++) {
    if (index % VALUES_PER_STEP === 0) yield;
    list[index] = read(view, index * size, isLittleEndian);
  }
  return list;
}
