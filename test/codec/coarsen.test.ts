import fc from "fast-check";
import t from "tap";
import { type Packing, packingOf } from "../../src/cf/packing.js";
import { coarsen } from "../../src/codec/compute/coarsen.js";
import { toNumber } from "../../src/json/json-value.js";
import { type DataType, parseDataType } from "../../src/model/data-type.js";
import { encodeFillItem, fillItemToJson } from "../../src/model/fill-value.js";
import type { CoarsenMethod, CoarsenStep, EncodingPlan } from "../../src/zarr/plan/encoding-plan.js";
import { effort } from "../support/effort.js";

/** A stored number; undefined is missing. */
type Cell = number | bigint | undefined;

const TYPES = [
  ...["|b1", "|i1", "|u1", "<i2", ">i2", "<u2", ">u4", "<i4", "<i8", ">i8", "<u8"],
  ...["<f2", "<f4", ">f4", "<f8", ">f8"],
];
const NONE = packingOf({});

/** A typed array in C order, cut into boxes. */
interface Sample {
  readonly type: DataType;
  readonly shape: readonly number[];
  readonly factors: readonly number[];
  /** Per axis of the coarser array. */
  readonly chunk: readonly number[];
  readonly cells: readonly Cell[];
  readonly packing: Packing;
  readonly missing: number | bigint | "NaN" | undefined;
}

function itemOf(value: Cell | "NaN", { type, missing }: Pick<Sample, "type" | "missing">): Uint8Array {
  const stored = value ?? missing;
  if (stored === undefined) throw new Error("expected a value");
  return encodeFillItem(type.kind === "b" ? Boolean(stored) : stored, type);
}

function numberOf(item: Uint8Array, type: DataType): number | bigint {
  const value = fillItemToJson(item, type);
  if (typeof value === "boolean") return value ? 1 : 0;
  if (value === "NaN") return Number.NaN;
  return typeof value === "bigint" ? value : (toNumber(value) as number);
}

const count = (shape: readonly number[]) => shape.reduce((a, b) => a * b, 1);

/** Lists all positions of a shape in C order. */
function* positions(shape: readonly number[]): Generator<number[]> {
  const total = count(shape);
  for (let i = 0; i < total; i++) {
    const at: number[] = [];
    let rest = i;
    for (const length of shape.toReversed()) {
      at.unshift(rest % length);
      rest = Math.floor(rest / length);
    }
    yield at;
  }
}

const indexOf = (at: readonly number[], shape: readonly number[]) =>
  at.reduce((index, each, axis) => index * (shape[axis] as number) + each, 0);

/** The rule itself, cell by cell. */
function expectedCell(
  cells: readonly Cell[],
  method: CoarsenMethod,
  isReversed: boolean,
  rounds: boolean,
): Cell {
  if (method === "nearest") return cells[0];
  const there = cells.filter((cell): cell is number | bigint => cell !== undefined);
  if (there.length === 0) return undefined;
  const sorted = there.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  if (isReversed) sorted.reverse();
  if (method === "max") return sorted.at(-1);
  if (method === "mode") {
    const counts = new Map<number | bigint, number>();
    for (const each of sorted) counts.set(each, (counts.get(each) ?? 0) + 1);
    const most = Math.max(...counts.values());
    return [...counts].find(([, times]) => times === most)?.[0];
  }
  if (!rounds) return there.reduce<number>((sum, each) => sum + Number(each), 0) / there.length;
  const sum = there.reduce<bigint>((total, each) => total + BigInt(each), 0n);
  const divisor = BigInt(there.length);
  let below = sum / divisor;
  if (sum < 0n && below * divisor !== sum) below -= 1n;
  const twice = 2n * (sum - below * divisor);
  return twice > divisor || (twice === divisor && below % 2n !== 0n) ? below + 1n : below;
}

/** Coarsens all boxes of a sample, and returns the cells of the coarser array. */
function coarsened(sample: Sample, method: CoarsenMethod, to: DataType, isKept: boolean) {
  const { type, shape, factors, chunk, cells, packing } = sample;
  const box = chunk.map((length, axis) => length * (factors[axis] as number));
  const outShape = shape.map((length, axis) => Math.ceil(length / (factors[axis] as number)));
  const grid = outShape.map((length, axis) => Math.ceil(length / (chunk[axis] as number)));
  const fill = encodeFillItem(to.kind === "b" ? true : 5, to);
  const step: CoarsenStep = {
    ...{ kind: "coarsen", revision: "1", method, factors, packing, from: type, to },
    missingItem: isKept ? missingItem(sample) : encodeFillItem("NaN", to),
    fillItem: fill,
  };
  const values: (number | bigint)[] = [];
  const padding: (number | bigint)[] = [];
  for (const coords of positions(grid)) {
    const items = new Uint8Array(count(box) * type.itemSize);
    for (const at of positions(box)) {
      const inArray = at.map((each, axis) => each + (coords[axis] as number) * (box[axis] as number));
      const isInside = inArray.every((each, axis) => each < (shape[axis] as number));
      // Whatever lies outside must not count.
      const item = isInside ? itemOf(cells[indexOf(inArray, shape)], sample) : itemOf(1, sample);
      items.set(item, indexOf(at, box) * type.itemSize);
    }
    const plan = { shape, served: { chunkShape: box } } as unknown as EncodingPlan;
    const out = coarsen(items, plan, step, coords);
    for (const at of positions(chunk)) {
      const inArray = at.map((each, axis) => each + (coords[axis] as number) * (chunk[axis] as number));
      const begin = indexOf(at, chunk) * to.itemSize;
      const value = numberOf(out.subarray(begin, begin + to.itemSize), to);
      const isInside = inArray.every((each, axis) => each < (outShape[axis] as number));
      if (isInside) values[indexOf(inArray, outShape)] = value;
      else padding.push(value);
    }
  }
  const expected = [...positions(outShape)].map((at) => {
    const block: Cell[] = [];
    for (const within of positions(factors)) {
      const cell = at.map((each, axis) => each * (factors[axis] as number) + (within[axis] as number));
      if (cell.every((each, axis) => each < (shape[axis] as number))) block.push(cells[indexOf(cell, shape)]);
    }
    return expectedCell(block, method, packing.scale < 0, to.kind !== "f");
  });
  return { values, padding, expected, fill: numberOf(fill, to) };
}

function missingItem(sample: Sample): Uint8Array | null {
  return sample.missing === undefined ? null : itemOf(undefined, sample);
}

const sampleArbitrary: fc.Arbitrary<Sample> = fc
  .record({
    dtype: fc.constantFrom(...TYPES),
    shape: fc.array(fc.oneof(fc.integer({ min: 1, max: 7 }), fc.constantFrom(33, 70)), { maxLength: 4 }),
    seed: fc.nat(),
    range: fc.constantFrom(2, 5, 120),
    missingPercent: fc.constantFrom(0, 30, 100),
    scale: fc.constantFrom(1, 0.5, -2),
    huge: fc.boolean(),
  })
  .filter(({ shape }) => count(shape) < 3_000)
  .chain(({ shape, dtype, ...rest }) =>
    fc.record({
      factors: fc.tuple(...shape.map(() => fc.constantFrom(1, 2))),
      chunk: fc.tuple(...shape.map((length) => fc.integer({ min: 1, max: length }))),
      given: fc.constant({ shape, dtype, ...rest }),
    }),
  )
  .map(({ factors, chunk, given }) => {
    const { shape, dtype, seed, range, missingPercent, scale, huge } = given;
    const type = parseDataType(dtype);
    let state = seed % 2_147_483_647;
    const next = () => {
      state = (state * 48_271 + 11) % 2_147_483_647;
      return state;
    };
    const isWide = type.itemSize === 8 && type.kind !== "f";
    // Beyond 53 bits doubles round.
    const base = isWide && huge ? 2n ** 62n : 0n;
    const missing = type.kind === "f" ? (seed % 2 === 0 ? "NaN" : 99) : type.kind === "b" ? undefined : 99;
    const cell = (): Cell => {
      if (missing !== undefined && next() % 100 < missingPercent) return undefined;
      const value = type.kind === "b" ? next() % 2 : (next() % range) - (type.kind === "u" ? 0 : 3);
      const other = value === missing ? 98 : value;
      return isWide ? base + BigInt(other) : other;
    };
    const packing = {
      ...NONE,
      missing: typeof missing === "number" ? [missing] : [],
      scale: type.kind === "f" || type.kind === "b" ? 1 : scale,
    };
    const cells = Array.from({ length: count(shape) }, cell);
    return {
      type,
      shape,
      factors,
      chunk: shape.map((_, axis) => chunk[axis] as number),
      cells,
      packing,
      missing,
    };
  });

const METHODS: readonly CoarsenMethod[] = ["mean", "max", "nearest", "mode"];

t.test("blocks of any type, shape and edge become what the rule says", async (t) => {
  let compared = 0;
  fc.assert(
    fc.property(sampleArbitrary, fc.constantFrom(...METHODS), fc.boolean(), (sample, method, keepsType) => {
      const isKept = method !== "mean" || keepsType;
      const to = isKept ? sample.type : parseDataType("<f8");
      const { values, padding, expected, fill } = coarsened(sample, method, to, isKept);
      const { scale } = sample.packing;
      for (const [index, cell] of expected.entries()) {
        const missing = isKept ? sample.missing : Number.NaN;
        const unpacked =
          to.kind === "f" && method === "mean" && cell !== undefined ? Number(cell) * scale : cell;
        const wanted = unpacked ?? (missing === "NaN" ? Number.NaN : missing);
        const isSame = isClose(values[index] as number | bigint, wanted as number | bigint, to);
        if (!isSame) throw new Error(`item ${index}: expected ${wanted}, received ${values[index]}`);
        compared++;
      }
      if (padding.some((value) => value !== fill)) throw new Error(`padding of ${padding}`);
    }),
    { numRuns: effort(1_500) },
  );
  t.ok(compared > 1_000, `${compared} cells`);
});

/** Compares numbers; floats up to the precision of their type. */
function isClose(a: number | bigint, b: number | bigint, { kind, itemSize }: DataType): boolean {
  if (kind !== "f") return BigInt(a) === BigInt(b);
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) && Number.isNaN(b);
  const error = { 2: 1e-3, 4: 1e-7, 8: 1e-15 }[itemSize] as number;
  return Math.abs(Number(a) - Number(b)) <= error * Math.max(1, Math.abs(Number(b)));
}

t.test("the nearest item may be of any type", async (t) => {
  const type = parseDataType("|S3");
  const step: CoarsenStep = {
    ...{ kind: "coarsen", revision: "1", method: "nearest", factors: [2, 2] },
    ...{ packing: NONE, from: type, to: type },
    ...{ missingItem: null, fillItem: Buffer.from("---") },
  };
  const plan = { shape: [3, 3], served: { chunkShape: [4, 4] } } as unknown as EncodingPlan;
  const items = Buffer.from("aaaxxxbbb###xxxxxxxxx###cccxxxddd############");
  t.equal(Buffer.from(coarsen(items, plan, step, [0, 0])).toString(), "aaabbbcccddd");
  const wide = { shape: [1, 3], served: { chunkShape: [4, 4] } } as unknown as EncodingPlan;
  t.equal(Buffer.from(coarsen(items, wide, step, [0, 0])).toString(), "aaabbb------");
});

/** Coarsens one box of pairs. @param box Cells of a box. */
function coarserBounds(pairs: readonly number[], box: number, dtype = "<f8", at = 0): number[] {
  const type = parseDataType(dtype);
  const isLittle = type.byteOrder !== ">";
  const items = new Uint8Array(box * 2 * 8);
  const view = new DataView(items.buffer);
  pairs.slice(at * box * 2, (at + 1) * box * 2).forEach((value, index) => {
    view.setFloat64(index * 8, value, isLittle);
  });
  const step: CoarsenStep = {
    ...{ kind: "coarsen", revision: "1", method: "bounds", factors: [2, 1] },
    ...{ from: type, to: type, packing: NONE, missingItem: null, fillItem: null },
  };
  const plan = { shape: [pairs.length / 2, 2], served: { chunkShape: [box, 2] } } as unknown as EncodingPlan;
  const out = coarsen(items, plan, step, [at, 0]);
  const read = new DataView(out.buffer, out.byteOffset, out.byteLength);
  return Array.from({ length: out.length / 8 }, (_, index) => read.getFloat64(index * 8, isLittle));
}

t.test("bounds are the least and the greatest of a block, in the order of its first cell", async (t) => {
  t.same(coarserBounds([0, 1, 1, 2, 2, 3, 3, 4], 4), [0, 2, 2, 4], "ascending");
  t.same(coarserBounds([4, 3, 3, 2, 2, 1, 1, 0], 4), [4, 2, 2, 0], "descending");
  t.same(
    coarserBounds([3, 4, 2, 3, 1, 2, 0, 1], 4),
    [2, 4, 0, 2],
    "pairs that ascend along an axis that descends",
  );
  t.same(coarserBounds([0, 1, 1, 2, 2, 3, 3, 4], 4, ">f8"), [0, 2, 2, 4], "the other byte order");
});

t.test("an odd last cell keeps its own", async (t) => {
  const pairs = [0, 1, 1, 2, 2, 3, 3, 4, 4, 5];
  t.same(coarserBounds(pairs, 4), [0, 2, 2, 4]);
  t.same(coarserBounds(pairs, 4, "<f8", 1), [4, 5, 0, 0], "fill items outside of the array");
  t.same(coarserBounds([7, 8], 2), [7, 8]);
});
