import fc from "fast-check";
import t from "tap";
import { packingOf } from "../../src/cf/packing.js";
import { createItemsReader } from "../../src/codec/compute/picture.js";
import { type ChunkBox, fillBuffer, gather, gatherFill } from "../../src/codec/copy-strided.js";
import type { JsonObject } from "../../src/json/json-value.js";
import { parseDataType } from "../../src/model/data-type.js";
import { effort } from "../support/effort.js";

/** Where an item lies in a chunk, the slow way. */
function itemIndex(box: ChunkBox, position: readonly number[]): number {
  let index = 0;
  for (const axis of box.axisOrder) {
    index = index * box.chunkShape[axis]! + (position[axis]! - box.origin[axis]!);
  }
  return index;
}

function* positionsOf(shape: readonly number[]): Generator<number[]> {
  const [first, ...rest] = shape;
  if (first === undefined) {
    yield [];
    return;
  }
  for (let index = 0; index < first; index++) {
    for (const position of positionsOf(rest)) yield [index, ...position];
  }
}

function isInside(box: ChunkBox, position: readonly number[]): boolean {
  return position.every(
    (index, axis) => index >= box.origin[axis]! && index < box.origin[axis]! + box.chunkShape[axis]!,
  );
}

/** Item by item: what `gather` has to be the same as. */
function gatherSlowly(
  source: ChunkBox,
  target: ChunkBox,
  end: readonly number[],
  itemSize: number,
  begin: readonly number[],
): void {
  for (const position of positionsOf(end)) {
    if (!isInside(source, position) || !isInside(target, position)) continue;
    if (position.some((index, axis) => index < begin[axis]!)) continue;
    const from = itemIndex(source, position) * itemSize;
    target.bytes.set(source.bytes.subarray(from, from + itemSize), itemIndex(target, position) * itemSize);
  }
}

const axisLength = fc.integer({ min: 1, max: 9 });

/** Two chunks, wherever in an array, in any axis orders; one byte of offset spoils the alignment at times. */
const pairs = fc.integer({ min: 0, max: 4 }).chain((dimensions) => {
  const lengths = fc.array(axisLength, { minLength: dimensions, maxLength: dimensions });
  const order = fc.shuffledSubarray(
    Array.from({ length: dimensions }, (_, axis) => axis),
    { minLength: dimensions, maxLength: dimensions },
  );
  const box = fc.record({
    chunkShape: lengths,
    grid: lengths,
    axisOrder: order,
    offset: fc.constantFrom(0, 0, 1, 2),
  });
  return fc.record({
    shape: lengths,
    begin: fc.array(fc.constantFrom(0, 0, 0, 1, 3), { minLength: dimensions, maxLength: dimensions }),
    source: box,
    target: box,
    itemSize: fc.constantFrom(1, 2, 3, 4, 8, 12, 16),
  });
});

function boxOf(
  drawn: { chunkShape: number[]; grid: number[]; axisOrder: number[]; offset: number },
  shape: readonly number[],
  itemSize: number,
): ChunkBox {
  const origin = drawn.chunkShape.map(
    (length, axis) => ((drawn.grid[axis]! - 1) % Math.ceil(shape[axis]! / length)) * length,
  );
  const byteLength = drawn.chunkShape.reduce((product, length) => product * length, itemSize);
  const bytes = new Uint8Array(byteLength + drawn.offset).subarray(drawn.offset);
  return { bytes, origin, chunkShape: drawn.chunkShape, axisOrder: drawn.axisOrder };
}

t.test("gathering equals copying item by item, for all shapes, chunks, orders and item sizes", async (t) => {
  fc.assert(
    fc.property(pairs, ({ shape, begin, source: drawnSource, target: drawnTarget, itemSize }) => {
      const source = boxOf(drawnSource, shape, itemSize);
      source.bytes.forEach((_, index) => {
        source.bytes[index] = 1 + (index % 255);
      });
      const target = boxOf(drawnTarget, shape, itemSize);
      const expected = { ...target, bytes: new Uint8Array(target.bytes.length) };
      gather(source, target, shape, itemSize, begin);
      gatherSlowly(source, expected, shape, itemSize, begin);
      return Buffer.compare(target.bytes, expected.bytes) === 0;
    }),
    { numRuns: effort(15_000) },
  );
  t.pass();
});

t.test("an absent region is filled, and nothing else", async (t) => {
  fc.assert(
    fc.property(pairs, ({ shape, begin, source: drawnSource, target: drawnTarget, itemSize }) => {
      const region = boxOf(drawnSource, shape, itemSize);
      const target = boxOf(drawnTarget, shape, itemSize);
      const expected = { ...target, bytes: new Uint8Array(target.bytes.length) };
      const item = new Uint8Array(itemSize).map((_, index) => index + 7);
      fillBuffer(region.bytes, item);
      gatherFill(region, target, shape, item, begin);
      gatherSlowly(region, expected, shape, itemSize, begin);
      return Buffer.compare(target.bytes, expected.bytes) === 0;
    }),
    { numRuns: effort(5_000) },
  );
  t.pass();
});

t.test("large transpositions cross tiles", async (t) => {
  const shape = [70, 3, 90];
  for (const itemSize of [1, 2, 4, 8, 16, 5]) {
    const bytes = new Uint8Array(70 * 3 * 90 * itemSize).map((_, index) => index % 251);
    const origin = [0, 0, 0];
    const source = { bytes, origin, chunkShape: shape, axisOrder: [2, 1, 0] };
    const target = { ...source, bytes: new Uint8Array(bytes.length), axisOrder: [0, 1, 2] };
    const expected = { ...target, bytes: new Uint8Array(bytes.length) };
    gather(source, target, shape, itemSize);
    gatherSlowly(source, expected, shape, itemSize, origin);
    t.equal(Buffer.compare(target.bytes, expected.bytes), 0, `items of ${itemSize} bytes`);
  }
});

t.test("a buffer is filled with an item of any size", async (t) => {
  for (const itemSize of [1, 2, 3, 8, 20]) {
    for (const count of [0, 1, 2, 3, 7, 64, 1000]) {
      const item = new Uint8Array(itemSize).map((_, index) => index + 1);
      const buffer = new Uint8Array(count * itemSize);
      fillBuffer(buffer, item);
      t.ok(
        buffer.every((byte, index) => byte === item[index % itemSize]),
        `${count} items of ${itemSize} bytes`,
      );
      fillBuffer(buffer, null);
      t.ok(buffer.every((byte) => byte === 0));
    }
  }
});

/** Setters of a `DataView`. */
type Setter = Extract<keyof DataView, `set${string}`>;

/** Writes numbers behind one byte, so that none is aligned, and reads them in order and backwards. */
function readAll(dtype: string, set: Setter, stored: readonly (number | bigint)[], attrs: JsonObject = {}) {
  const type = parseDataType(dtype);
  const packing = packingOf(attrs);
  const buffer = new ArrayBuffer(1 + stored.length * type.itemSize);
  const view = new DataView(buffer);
  for (const [index, value] of stored.entries())
    view[set](1 + index * type.itemSize, value as never, type.byteOrder !== ">");
  const bytes = new Uint8Array(buffer, 1);
  const values = new Float64Array(stored.length);
  createItemsReader(bytes, type, packing)(0, Uint32Array.from(stored.keys()), values);
  // Copies are aligned. All items but the first, from the last one backwards.
  const places = Uint32Array.from({ length: stored.length - 1 }, (_, index) => stored.length - 2 - index);
  const others = new Float64Array(places.length);
  createItemsReader(bytes.slice(), type, packing)(1, places, others);
  t.strictSame(others, values.slice(1).reverse(), `others of ${dtype}`);
  return [...values];
}

const FLOATS = [0.1, Number.NaN, Number.NEGATIVE_INFINITY];
const NUMBERS: readonly (readonly [string, Setter, (number | bigint)[], number[]?])[] = [
  ["i1", "setInt8", [-1, 0]],
  ["b1", "setUint8", [0, 1]],
  ["i2", "setInt16", [-32768, -1, 0, 32767]],
  ["u4", "setUint32", [0, 1, 2 ** 31, 2 ** 32 - 1]],
  ["i8", "setBigInt64", [-(2n ** 63n), -1n, 2n ** 53n, 2n ** 63n - 1n]],
  ["u8", "setBigUint64", [2n ** 64n - 1n, 2n ** 64n - 2n]],
  ["f4", "setFloat32", FLOATS, FLOATS.map(Math.fround)],
  ["f8", "setFloat64", FLOATS],
  ["f2", "setUint16", [0x3c00, 0xc000, 0x7e00], [1, -2, Number.NaN]],
];

t.test("reads every type of numbers in both byte orders", async (t) => {
  for (const [type, set, stored, values = stored.map(Number)] of NUMBERS)
    for (const order of type.endsWith("1") ? ["|"] : ["<", ">"])
      t.strictSame(readAll(order + type, set, stored), values, order + type);
});

const LIMITS = { valid_range: [-1000, 100], scale_factor: 0.5, add_offset: 10 };
const UNSIGNED = { _Unsigned: "true", _FillValue: -1, valid_max: -2, scale_factor: 2 };
const PACKED: readonly (readonly [string, string, Setter, readonly number[], JsonObject, number[]])[] = [
  [
    "missing and invalid numbers are looked for before unpacking",
    ...(["<i2", "setInt16", [-999, -998, -997, 101, -1001, -1000, 100, 0]] as const),
    { _FillValue: -999, missing_value: [-998, -997], ...LIMITS },
    [Number.NaN, Number.NaN, Number.NaN, Number.NaN, Number.NaN, -490, 60, 10],
  ],
  [
    "attributes are compared in the stored type",
    ...(["<f4", "setFloat32", [1e20, 0.1, 0.2]] as const),
    { _FillValue: 1e20, valid_max: 0.1 },
    [Number.NaN, Math.fround(0.1), Number.NaN],
  ],
  ["0.1 in half precision", "<f2", "setUint16", [0x2e66], { _FillValue: 0.1 }, [Number.NaN]],
  ["unsigned", "|i1", "setInt8", [-1, -2, -128, 127], UNSIGNED, [Number.NaN, 508, 256, 254]],
  ["signed", "|u1", "setUint8", [254, 255], { _Unsigned: "false", _FillValue: 255 }, [-2, Number.NaN]],
];

t.test("unpacks numbers as attributes say", async (t) => {
  for (const [name, dtype, set, stored, attrs, values] of PACKED)
    t.strictSame(readAll(dtype, set, stored, attrs), values, name);
});

t.test("refuses items that are no numbers", async (t) => {
  for (const dtype of ["|S5", "<U2", "<c8", "<M8[s]", "|V3"])
    t.throws(
      () => createItemsReader(new Uint8Array(16), parseDataType(dtype), packingOf({})),
      { code: "codec-failed" },
      dtype,
    );
});
