import fc from "fast-check";
import t from "tap";
import { type ChunkBox, fillBuffer, gather, gatherFill } from "../../src/codec/copy-strided.js";
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

t.test("bits of NaN survive", async (t) => {
  const source = new Uint8Array(Float64Array.of(1, 2, 3, 4).buffer);
  source.set([1, 2, 3, 4, 5, 6, 0xf4, 0x7f], 8);
  const target = new Uint8Array(32);
  const box = { origin: [0, 0], chunkShape: [2, 2] };
  gather(
    { ...box, bytes: source, axisOrder: [1, 0] },
    { ...box, bytes: target, axisOrder: [0, 1] },
    [2, 2],
    8,
  );
  t.same([...target.subarray(16, 24)], [1, 2, 3, 4, 5, 6, 0xf4, 0x7f]);
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
