import t from "tap";
import { mapFill, textItem } from "../../../../src/formats/hdf5/to-zarr.js";
import { parseDataType } from "../../../../src/model/data-type.js";

const INT16 = parseDataType("<i2");
const FLOAT32 = parseDataType(">f4");
const SEVEN = new Uint8Array([7, 0]);

t.test("the fill value of absent chunks is not served as a mark of missing values", async (t) => {
  t.same(mapFill(INT16, SEVEN, undefined, true), {
    fill: { served: null, item: SEVEN, absentIsServed: false },
    isAttribute: false,
  });
  t.equal(mapFill(INT16, SEVEN, undefined, false).fill.absentIsServed, true, "if no chunk is absent");
});

t.test("_FillValue is served, and says what absent chunks mean if it is the same", async (t) => {
  t.same(mapFill(INT16, SEVEN, 7, true), {
    fill: { served: 7, item: SEVEN, absentIsServed: true },
    isAttribute: true,
  });
  t.same(mapFill(INT16, null, 0, true).fill, { served: 0, item: null, absentIsServed: true });
});

t.test(
  "_FillValue is served even if absent chunks hold something else, which the server then sends",
  async (t) => {
    t.same(mapFill(INT16, SEVEN, 8, true).fill, { served: 8, item: SEVEN, absentIsServed: false });
    t.same(mapFill(INT16, SEVEN, 8, false).fill, {
      ...{ served: 8, item: new Uint8Array([8, 0]), absentIsServed: true },
    });
  },
);

t.test("any NaN is the same as another, and is served", async (t) => {
  const other = new Uint8Array([0xff, 0xc0, 0, 1]);
  t.same(mapFill(FLOAT32, other, Number.NaN, true).fill, {
    ...{ served: "NaN", item: other, absentIsServed: true },
  });
});

t.test("a _FillValue that the type cannot hold stays an attribute", async (t) => {
  for (const [type, value] of [
    [INT16, 0.5],
    [INT16, 70_000],
    [INT16, [1, 2]],
    [INT16, "7"],
    [FLOAT32, 0.1],
    [FLOAT32, "NaN"],
    [parseDataType("<U1"), "ab"],
    [parseDataType("<U1"), 0],
    [parseDataType("|S1"), "ab"],
    [parseDataType([["a", "<i4"]]), [1]],
  ] as const) {
    const { fill, isAttribute } = mapFill(type, null, value, true);
    t.same([fill.served, isAttribute], [null, false], `${type.numpyStr} ${value}`);
  }
});

t.test("a NaN marks nothing among integers, and is no attribute", async (t) => {
  t.same(mapFill(INT16, null, Number.NaN, true), {
    ...{ fill: { served: null, item: null, absentIsServed: false }, isAttribute: true },
  });
});

t.test("bytes and texts are marks, too", async (t) => {
  t.equal(mapFill(parseDataType("|S1"), null, "z", true).fill.served, "eg==");
  t.equal(mapFill(parseDataType("<U2"), null, "zü", true).fill.served, "zü");
  const { fill } = mapFill(parseDataType("|O"), textItem(""), "none", false);
  t.same(fill, { served: "none", item: textItem("none"), absentIsServed: true });
});
