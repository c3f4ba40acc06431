import t from "tap";
import { packingOf } from "../../src/cf/packing.js";
import { drawLine } from "../../src/codec/compute/picture.js";
import { parseDataType } from "../../src/model/data-type.js";
import { createComputePlan } from "../../src/zarr/plan/create-encoding-plan.js";
import type { LineStep } from "../../src/zarr/plan/encoding-plan.js";
import { decodePng, rowsOf } from "../support/codec/decode-png.js";
import { storedArray } from "../support/datasets/stored-array.js";

type Changes = Partial<LineStep> & { readonly box?: number; readonly at?: number; readonly total?: number };

/** Draws values as rows of text: `#` for the line, `.` for the ground. */
function draw(
  values: readonly number[],
  { box = values.length, at = 0, total = values.length, ...step }: Changes = {},
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
  t.strictSame(draw([0, 1], { range: [0, 1] }), [
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
    const rows = draw([value, value, value]);
    t.strictSame(rows.filter((row) => row === "########").length, 2, `${value}`);
    t.strictSame(rows.filter((row) => row === "........").length, 4);
  }
});

t.test("missing values interrupt it, and a value between them is a point", async (t) => {
  const rows = draw([5, 5, NONE, NONE, NONE, 5, NONE, NONE], { range: [0, 10] });
  t.strictSame(
    rows.filter((row) => row.includes("#")),
    ["##...#..", "##...#.."],
  );
  t.ok(draw([NONE, NONE]).every((row) => row === "........"));
});

t.test("shows the least and the greatest of many values in a pixel", async (t) => {
  const values = Array.from({ length: 400 }, (_, index) => (index % 50 === 7 ? 10 : 0));
  t.ok(draw(values, { range: [0, 10] }).every((row) => row === "########"));
});

t.test("values beyond the range are at its ends, infinite ones too", async (t) => {
  const rows = draw([99, 99, Number.NEGATIVE_INFINITY, -99], { range: [0, 1], width: 4 });
  t.match(rows[0], /^##/);
  t.match(rows.at(-1), /##$/);
});

t.test("draws only what is inside the array of a box that passes its edge", async (t) => {
  const rows = draw([1, 1, 9, 9], { box: 4, at: 1, total: 6, range: [0, 10] });
  t.strictSame(new Set(rows).size, 2);
});

t.test("its range is that of all values, also of few among missing ones", async (t) => {
  const values = Array.from({ length: 1000 }, (_, index) => (index === 500 ? 3 : index === 900 ? 4 : NONE));
  const columns = draw(values).filter((row) => row.includes("#"));
  t.equal(columns.length, 4, "two points of two pixels at different heights");
});
