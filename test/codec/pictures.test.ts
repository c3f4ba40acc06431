import { inflateSync } from "node:zlib";
import t from "tap";
import { packingOf } from "../../src/cf/packing.js";
import { drawLine, drawPicture, encodePng } from "../../src/codec/compute/picture.js";
import { categoryColours, colourTable } from "../../src/colour/colour-scales.js";
import { parseDataType } from "../../src/model/data-type.js";
import { createComputePlan } from "../../src/zarr/plan/create-encoding-plan.js";
import type { LineStep, PictureStep } from "../../src/zarr/plan/encoding-plan.js";
import { decodePng, rowsOf } from "../support/codec/decode-png.js";
import { storedArray } from "../support/datasets/stored-array.js";

type Changes = Partial<PictureStep> & {
  readonly shape?: readonly number[];
  readonly box?: readonly number[];
  readonly at?: readonly number[];
  readonly dtype?: string;
};

/** Draws items of a box, by default all of a plane of floats whose range is 0 to 255 in greys. */
function draw(
  items: ArrayBufferView,
  { shape = [2, 3], box = shape, at, dtype = "<f4", ...step }: Changes = {},
) {
  const compute: PictureStep = {
    kind: "picture",
    from: parseDataType(dtype),
    packing: packingOf({}),
    ...{
      y: 0,
      x: 1,
      isFlippedY: false,
      isFlippedX: false,
      width: shape[1] as number,
      height: shape[0] as number,
    },
    ...{ range: [0, 255], scale: "greys", isReversed: false, revision: "test" },
    ...step,
  };
  const plan = createComputePlan(storedArray({ shape, dtype }), {
    path: "v",
    box,
    compute,
    encode: [],
    absentIsAbsent: false,
  });
  const bytes = new Uint8Array(items.buffer, items.byteOffset, items.byteLength);
  return decodePng(drawPicture(bytes, plan, compute, at ?? shape.map(() => 0)));
}

const SIX = Float32Array.of(0, 1, 2, 3, 4, 5);

t.test("draws values row by row, from the lowest colour at the begin of the range", async (t) => {
  const png = draw(SIX);
  t.strictSame(rowsOf(png), [
    [1, 2, 3],
    [4, 5, 6],
  ]);
  const table = colourTable("greys");
  t.strictSame(png.colourOf(1), [...table.subarray(3, 6), 255]);
  t.strictSame(png.colourOf(255), [...table.subarray(765), 255]);
  t.strictSame(draw(SIX, { isReversed: true }).colourOf(255), [...table.subarray(0, 3), 255]);
});

t.test("flips rows and columns", async (t) => {
  t.strictSame(rowsOf(draw(SIX, { isFlippedY: true })), [
    [4, 5, 6],
    [1, 2, 3],
  ]);
  t.strictSame(rowsOf(draw(SIX, { isFlippedX: true })), [
    [3, 2, 1],
    [6, 5, 4],
  ]);
});

t.test("draws any axes of a box, in any order", async (t) => {
  const transposed = { shape: [3, 1, 2], y: 2, x: 0, width: 3, height: 2 };
  t.strictSame(rowsOf(draw(Float32Array.of(0, 3, 1, 4, 2, 5), transposed)), [
    [1, 2, 3],
    [4, 5, 6],
  ]);
});

t.test("draws only what is inside the array of a box that passes its edge", async (t) => {
  const edge = { shape: [3, 5], box: [2, 3], at: [1, 1], width: 2, height: 1 };
  t.strictSame(rowsOf(draw(Float32Array.of(7, 8, 99, 99, 99, 99), edge)), [[8, 9]]);
});

t.test("repeats cells if there are more pixels, evenly", async (t) => {
  t.strictSame(rowsOf(draw(SIX, { width: 7, height: 4 })), [
    [1, 1, 2, 2, 2, 3, 3],
    [1, 1, 2, 2, 2, 3, 3],
    [4, 4, 5, 5, 5, 6, 6],
    [4, 4, 5, 5, 5, 6, 6],
  ]);
});

t.test("takes the mean of at most three by three cells, missing ones left out", async (t) => {
  const nine = Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8, Number.NaN);
  t.strictSame(
    rowsOf(draw(nine, { shape: [3, 3], width: 1, height: 1 })),
    [[1 + 36 / 8]].map((row) => row.map(Math.floor)),
  );
  // Of ten cells the second, sixth and ninth.
  const ten = Float32Array.from({ length: 10 }, (_, index) => 2 ** index / 4);
  t.strictSame(rowsOf(draw(ten, { shape: [1, 10], width: 1, height: 1 })), [
    [1 + Math.floor((2 + 32 + 256) / 12)],
  ]);
});

t.test("values beyond the range have the colours of its ends, infinite ones too", async (t) => {
  const values = Float32Array.of(
    -1,
    255,
    1000,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    Number.NaN,
  );
  t.strictSame(rowsOf(draw(values)), [
    [1, 255, 255],
    [255, 1, 0],
  ]);
});

t.test("chooses the range by the values of the picture", async (t) => {
  const values = Float32Array.from({ length: 101 }, (_, index) => index);
  const free = { shape: [1, 101], range: undefined };
  const [row = []] = rowsOf(draw(values, free));
  // 2 and 98 by percentiles, which are round.
  t.equal(row[50], 1 + Math.floor(0.5 * 255));
  t.strictSame([row[0], row[2], row[98], row[100]], [1, 1, 255, 255]);
  const symmetric = draw(
    values.map((value) => value - 50),
    { ...free, scale: undefined },
  );
  t.strictSame(symmetric.colourOf(128), [...colourTable("rdbu").subarray(384, 387), 255], "diverging");
  t.strictSame(draw(values, { ...free, scale: undefined }).colourOf(128), [
    ...colourTable("viridis").subarray(384, 387),
    255,
  ]);
});

t.test("a picture without values is transparent", async (t) => {
  const png = draw(new Float32Array(6).fill(Number.NaN), { range: undefined });
  t.strictSame(rowsOf(png), [
    [0, 0, 0],
    [0, 0, 0],
  ]);
  t.equal(png.colourOf(0)[3], 0);
  t.strictSame(
    rowsOf(draw(new Float32Array(6).fill(Number.POSITIVE_INFINITY), { range: undefined }))[0],
    [255, 255, 255],
  );
});

t.test("false and true always have the same colours", async (t) => {
  const bool = { dtype: "|b1", range: undefined };
  t.strictSame(rowsOf(draw(Uint8Array.of(1, 1, 1, 1, 1, 1), bool))[0], [255, 255, 255]);
  t.strictSame(rowsOf(draw(Uint8Array.of(0, 1, 0, 0, 0, 0), bool))[0], [1, 255, 1]);
});

t.test("categories are never averaged, and have the colours of their places in the list", async (t) => {
  const categories = { dtype: "|u1", categories: [1, 2, 9], range: undefined, scale: undefined };
  const png = draw(Uint8Array.of(9, 2, 1, 1, 7, 3), categories);
  t.strictSame(
    rowsOf(png),
    [
      [3, 2, 1],
      [1, 5, 4],
    ],
    "others follow in order",
  );
  const colours = categoryColours(5);
  t.strictSame(png.colourOf(5), [...colours.subarray(12, 15), 255]);
  const packing = packingOf({ _FillValue: 0 });
  const coarse = draw(Uint8Array.of(1, 9, 9, 0, 0, 0), {
    ...categories,
    shape: [1, 6],
    width: 2,
    height: 1,
    packing,
  });
  t.strictSame(rowsOf(coarse), [[3, 0]], "the middle of three");
});

const PALETTE = Uint8Array.of(200, 200, 200, 255, 0, 0, 0, 128, 255);

t.test("bands are drawn in colour, palettes in their own colours", async (t) => {
  const pixelsOf = (
    items: Uint8Array | Uint16Array,
    shape: number[],
    dtype: string,
    more: Partial<PictureStep>,
  ) => {
    const compute: PictureStep = {
      kind: "picture",
      from: parseDataType(dtype),
      packing: packingOf({}, more.bands === undefined ? null : 7),
      ...{ y: shape.length - 2, x: shape.length - 1, isFlippedY: false, isFlippedX: false },
      ...{ width: 2, height: 1, isReversed: false, revision: "test" },
      ...more,
    };
    const request = { path: "v", box: shape, compute, encode: [], absentIsAbsent: false };
    const plan = createComputePlan(storedArray({ shape, dtype }), request);
    const bytes = new Uint8Array(items.buffer);
    const png = Buffer.from(
      drawPicture(
        bytes,
        plan,
        compute,
        shape.map(() => 0),
      ),
    );
    t.equal(png[25], 6, "true colour");
    const begin = png.indexOf("IDAT") + 4;
    return [...inflateSync(png.subarray(begin, begin + png.readUInt32BE(begin - 8)))].slice(1);
  };
  const bands = (count: 3 | 4) => ({ bands: { axis: 0, count } });
  const rgb = Uint8Array.of(255, 7, 128, 7, 0, 7);
  t.same(pixelsOf(rgb, [3, 1, 2], "|u1", bands(3)), [255, 128, 0, 255, 0, 0, 0, 0], "missing is clear");
  const rgba = Uint8Array.of(255, 1, 128, 2, 0, 3, 100, 255);
  t.same(pixelsOf(rgba, [4, 1, 2], "|u1", bands(4)), [255, 128, 0, 100, 1, 2, 3, 255]);
  const long = Uint16Array.of(0, 4000, 2000, 4000, 1000, 4000);
  const range = [0, 4000] as const;
  t.same(pixelsOf(long, [3, 1, 2], "<u2", { ...bands(3), range }), [0, 128, 64, 255, 255, 255, 255, 255]);
  const palette = { categories: [0, 1], categoryColours: Uint8Array.of(1, 2, 3, 250, 251, 252) };
  t.same(pixelsOf(Uint8Array.of(1, 9), [1, 2], "|u1", palette), [250, 251, 252, 255, 102, 102, 102, 255]);
});

t.test("what is encoded decodes to the same pixels and colours", async (t) => {
  const pixels = Uint8Array.of(0, 1, 2, 2, 1, 0);
  const png = decodePng(encodePng({ width: 3, height: 2, pixels, palette: PALETTE }));
  t.strictSame(rowsOf(png), [
    [0, 1, 2],
    [2, 1, 0],
  ]);
  t.strictSame(png.colourOf(0), [200, 200, 200, 0], "colour 0 is transparent");
  t.strictSame(png.colourOf(1), [255, 0, 0, 255]);
  t.strictSame(png.colourOf(2), [0, 128, 255, 255]);
});

type LineChanges = Partial<LineStep> & {
  readonly box?: number;
  readonly at?: number;
  readonly total?: number;
};

/** Draws values as rows of text: `#` for the line, `.` for the ground. */
function drawLines(
  values: readonly number[],
  { box = values.length, at = 0, total = values.length, ...step }: LineChanges = {},
) {
  const compute: LineStep = {
    ...{
      kind: "line",
      from: parseDataType("<f8"),
      packing: packingOf({}),
      width: 8,
      height: 6,
      revision: "test",
    },
    ...step,
  };
  const array = storedArray({ shape: [total], dtype: "<f8", chunkShape: [4] });
  const plan = createComputePlan(array, {
    path: "v",
    box: [box],
    compute,
    encode: [],
    absentIsAbsent: false,
  });
  const items = new Uint8Array(Float64Array.from(values).buffer);
  return rowsOf(decodePng(drawLine(items, plan, compute, [at]))).map((row) =>
    row.map((index) => (index === 0 ? "." : "#")).join(""),
  );
}

const NONE = Number.NaN;

t.test("rises from the bottom left to the top right, without gaps", async (t) => {
  t.strictSame(drawLines([0, 1], { range: [0, 1] }), [
    ".....###",
    "....####",
    "....#...",
    "...##...",
    "####....",
    "###.....",
  ]);
});

t.test("equal values are a line in the middle", async (t) => {
  for (const value of [0, 7, -1e300]) {
    const rows = drawLines([value, value, value]);
    t.strictSame(rows.filter((row) => row === "########").length, 2, `${value}`);
    t.strictSame(rows.filter((row) => row === "........").length, 4);
  }
});

t.test("missing values interrupt it, and a value between them is a point", async (t) => {
  const rows = drawLines([5, 5, NONE, NONE, NONE, 5, NONE, NONE], { range: [0, 10] });
  t.strictSame(
    rows.filter((row) => row.includes("#")),
    ["##...#..", "##...#.."],
  );
  t.ok(drawLines([NONE, NONE]).every((row) => row === "........"));
});

t.test("shows the least and the greatest of many values in a pixel", async (t) => {
  const values = Array.from({ length: 400 }, (_, index) => (index % 50 === 7 ? 10 : 0));
  t.ok(drawLines(values, { range: [0, 10] }).every((row) => row === "########"));
});

t.test("draws only what is inside the array of a box that passes its edge", async (t) => {
  const rows = drawLines([1, 1, 9, 9], { box: 4, at: 1, total: 6, range: [0, 10] });
  t.strictSame(new Set(rows).size, 2);
});
