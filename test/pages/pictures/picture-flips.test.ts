import t from "tap";
import type { ServedArray } from "../../../src/dataset/dataset.js";
import { pictureFlips, readDirection } from "../../../src/pages/pictures.js";
import { type FakeVariable, fakeSnapshot, fakeType } from "../../support/datasets/fake-snapshot.js";

const FIELD: FakeVariable = { dims: ["y", "x"], shape: [4, 5] };
const PLANE = { plane: { y: 0, x: 1 } };

/** Asks for the flips of `v`, of coordinates in the directions given. */
async function flipsOf(variables: Record<string, FakeVariable>, directions: Record<string, -1 | 0 | 1>) {
  const snapshot = fakeSnapshot("d", { variables });
  const asked: string[] = [];
  const flips = await pictureFlips(
    snapshot,
    snapshot.arrays.get("v") as ServedArray,
    PLANE,
    async ({ variable }) => {
      asked.push(variable.name);
      return directions[variable.name] ?? 0;
    },
  );
  return [flips.isFlippedY, flips.isFlippedX, asked.sort().join(" ")];
}

t.test("flips rows whose coordinate ascends, and columns whose coordinate descends", async (t) => {
  const variables = { v: FIELD, y: { dims: ["y"], shape: [4] }, x: { dims: ["x"], shape: [5] } };
  t.strictSame(await flipsOf(variables, { y: 1, x: 1 }), [true, false, "x y"]);
  t.strictSame(await flipsOf(variables, { y: -1, x: -1 }), [false, true, "x y"]);
  t.strictSame(await flipsOf(variables, { y: 0, x: 0 }), [false, false, "x y"]);
});

t.test("leaves axes without a coordinate, or of another role, as they are stored", async (t) => {
  t.strictSame(await flipsOf({ v: FIELD }, {}), [false, false, ""]);
  const depth = { dims: ["y"], shape: [4], attrs: { axis: "Z" } };
  t.strictSame(await flipsOf({ v: FIELD, y: depth }, { y: 1 }), [false, false, ""]);
});

t.test("takes the direction of a curvilinear grid from its latitudes", async (t) => {
  const latitudes = { dims: ["y", "x"], shape: [4, 5], attrs: { standard_name: "latitude" } };
  t.strictSame(await flipsOf({ v: FIELD, nav_lat: { ...latitudes, coordinate: true } }, { nav_lat: 1 }), [
    true,
    false,
    "nav_lat",
  ]);
  const others = { dims: ["a", "x"], shape: [4, 5], attrs: { standard_name: "latitude" } };
  t.strictSame(await flipsOf({ v: FIELD, nav_lat: others }, { nav_lat: 1 }), [false, false, ""]);
});

t.test("fails with a coordinate that cannot be read", async (t) => {
  const snapshot = fakeSnapshot("d", { variables: { v: FIELD, y: { dims: ["y"], shape: [4] } } });
  const coordinate = snapshot.arrays.get("y") as ServedArray;
  const read = readDirection(coordinate, { values: async () => undefined });
  await t.rejects(read, { code: "source-unreadable", message: /coordinate 'y'/ });
});

t.test("reads the direction from the first and last values", async (t) => {
  const directionOf = async (values: readonly string[], attrs = {}) => {
    const variable = { dims: ["y"], shape: [values.length], type: fakeType("f", 4), attrs };
    const snapshot = fakeSnapshot("d", { variables: { y: variable } });
    const [first, last] = [values.slice(0, 3), values.slice(3)];
    const previews = { values: async () => ({ first, last }) };
    return readDirection(snapshot.arrays.get("y") as ServedArray, previews);
  };
  t.equal(await directionOf(["-90.0", "-89.5", "-89.0", "90.0"]), 1);
  t.equal(await directionOf(["2", "1"]), -1);
  t.equal(await directionOf(["7"]), 0);
  t.equal(await directionOf([]), 0);
  t.equal(await directionOf(["nan", "1.0", "3.0", "nan"]), 1);
  t.equal(await directionOf(["1", "2"], { scale_factor: -0.5 }), -1, "packed");
  t.equal(await directionOf(["-999", "2", "1", "-999"], { _FillValue: -999 }), -1);
  t.equal(await directionOf(["'a'", "'b'"]), 0, "texts");
});
