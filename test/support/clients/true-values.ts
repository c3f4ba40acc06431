import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { FixtureArray, Fixtures } from "./fixtures.js";
import type { Item, ZarritaValues } from "./zarrita-reader.js";

/** The true items of a fixture array in C order, as JavaScript has them; undefined for types it has none for. */
export async function readTrueItems(fixtures: Fixtures, array: FixtureArray): Promise<Item[] | undefined> {
  const file = await readFile(join(fixtures.directory, array.expected));
  if (array.expected.endsWith(".json")) return JSON.parse(file.toString("utf8")).items;
  const descr = /'descr': '([<>|])([a-zA-Z])(\d+)/.exec(file.toString("latin1", 10, 128));
  const read =
    descr === null ? undefined : itemReader(descr[2] as string, Number(descr[3]), descr[1] !== ">");
  if (read === undefined || descr === null) return undefined;
  const size = Number(descr[3]) * (descr[2] === "U" ? 4 : 1);
  // NPY version 1: ten bytes, the last two of which are the length of the header that follows.
  const start = 10 + file.readUInt16LE(8);
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const count = array.shape.reduce((product, length) => product * length, 1);
  return Array.from({ length: count }, (_, index) => read(view, start + index * size));
}

/** What is wrong with what zarrita read, in a line; undefined: nothing. */
export function zarritaDifference(
  { shape, items, problem }: ZarritaValues,
  array: FixtureArray,
  expected: readonly Item[],
): string | undefined {
  if (problem !== undefined) return problem;
  if (shape.join() !== array.shape.join()) return `shape: expected ${array.shape}, received ${shape}`;
  if (items.length !== expected.length) return `expected ${expected.length} items, received ${items.length}`;
  const wrong = expected.findIndex(
    (item, index) => !Object.is(item, items[index]) && !sameObject(item, items[index]),
  );
  return wrong < 0 ? undefined : `item ${wrong}: expected ${expected[wrong]}, received ${items[wrong]}`;
}

function sameObject(a: unknown, b: unknown): boolean {
  return typeof a === "object" && a !== null && JSON.stringify(a) === JSON.stringify(b);
}

function itemReader(
  kind: string,
  size: number,
  little: boolean,
): ((view: DataView, offset: number) => Item) | undefined {
  switch (`${kind}${kind === "S" || kind === "U" ? "" : size}`) {
    case "b1":
      return (view, offset) => view.getUint8(offset) !== 0;
    case "i1":
      return (view, offset) => view.getInt8(offset);
    case "u1":
      return (view, offset) => view.getUint8(offset);
    case "i2":
      return (view, offset) => view.getInt16(offset, little);
    case "u2":
      return (view, offset) => view.getUint16(offset, little);
    case "i4":
      return (view, offset) => view.getInt32(offset, little);
    case "u4":
      return (view, offset) => view.getUint32(offset, little);
    case "i8":
    case "M8":
    case "m8":
      return (view, offset) => view.getBigInt64(offset, little);
    case "u8":
      return (view, offset) => view.getBigUint64(offset, little);
    case "f2":
      return (view, offset) => halfToNumber(view.getUint16(offset, little));
    case "f4":
      return (view, offset) => view.getFloat32(offset, little);
    case "f8":
      return (view, offset) => view.getFloat64(offset, little);
    case "S":
      return (view, offset) => text(size, (index) => view.getUint8(offset + index));
    case "U":
      return (view, offset) => text(size, (index) => view.getUint32(offset + 4 * index, little));
    default:
      return undefined;
  }
}

function text(length: number, codePointAt: (index: number) => number): string {
  const codePoints = Array.from({ length }, (_, index) => codePointAt(index));
  while (codePoints.at(-1) === 0) codePoints.pop();
  return String.fromCodePoint(...codePoints);
}

function halfToNumber(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  return exponent === 0 ? sign * 2 ** -24 * fraction : sign * 2 ** (exponent - 15) * (1 + fraction / 1024);
}
