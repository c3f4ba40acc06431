import t from "tap";
import { NO_MARKUP } from "../../src/pages/page.js";
import { createPageBudget } from "../../src/pages/page-place.js";
import { formatPreview, renderVariableRow } from "../../src/pages/variable-row.js";
import { type FakeVariable, fakeSnapshot } from "../support/datasets/fake-snapshot.js";

function rowOf(variable: FakeVariable): string {
  const array = fakeSnapshot("d", { variables: { v: variable } }).arrays.get("v");
  if (array === undefined) throw new Error("expected the variable");
  const budget = { ...createPageBudget(), detailedVariables: 0 };
  return renderVariableRow(
    { variable: array.variable, array, preview: undefined, picture: NO_MARKUP, code: () => NO_MARKUP },
    budget,
  ).html;
}

t.test("a row without values shows shape and chunks", async (t) => {
  const dims = ["time", "x"];
  t.match(rowOf({ dims, shape: [2920, 5], chunks: [100, 5] }), "2,920 × 5 in chunks of 100 × 5");
  t.match(rowOf({ dims, shape: [4, 5], chunks: [10, 5] }), "4 × 5 in one chunk");
  t.match(rowOf({ dims: [], shape: [] }), ">scalar<");
});

t.test("first and last values have an ellipsis between", async (t) => {
  t.strictSame(formatPreview({ first: ["1.0", "2.0"], last: ["9.0"] }), ["1.0", "2.0", "…", "9.0"]);
  t.strictSame(formatPreview({ first: ["'a'", "'b'"], last: [] }), ["'a'", "'b'"]);
});

t.test("times are shown as days if all are midnight", async (t) => {
  const first = ["2000-01-01T00:00:00.000000000", "2000-01-02T00:00:00.000000000", "NaT"];
  t.strictSame(formatPreview({ first, last: [] }), ["2000-01-01", "2000-01-02", "NaT"]);
});

t.test("fractions of seconds are shown unless they are zero", async (t) => {
  const first = ["2000-01-01T06:00:00.000", "2000-01-01T06:00:00.500"];
  t.strictSame(formatPreview({ first, last: [] }), ["2000-01-01T06:00:00", "2000-01-01T06:00:00.500"]);
});

t.test("as many values are shown as fit into a row, and always the first and the last", async (t) => {
  const first = ["2013-01-01T00:00:00", "2013-01-01T06:00:00", "2013-01-01T12:00:00"];
  const last = ["2014-12-31T12:00:00", "2014-12-31T18:00:00"];
  t.strictSame(formatPreview({ first, last }), ["2013-01-01T00:00:00", "…", "2014-12-31T18:00:00"]);
  t.strictSame(formatPreview({ first: ["x".repeat(900), "y"], last: [] }).length, 2);
});
