import fc from "fast-check";
import t from "tap";
import { runNow } from "../../src/event-loop/cooperative-task.js";
import type { JsonObject } from "../../src/json/json-value.js";
import {
  dataTreeSteps,
  dimensionConflicts,
  type GroupContent,
  nameDimensions as nameDimensionsSteps,
  nodeName,
  normalNodePath,
  parentPath,
  type Variable,
} from "../../src/model/data-tree.js";
import { parseDataType } from "../../src/model/data-type.js";

const createTree = (contents: readonly GroupContent[]) => runNow(dataTreeSteps(contents));
const nameDimensions = (arrays: Parameters<typeof nameDimensionsSteps>[0]) =>
  runNow(nameDimensionsSteps(arrays));

function variable(name: string, dims: string[], shape: number[], attrs: JsonObject = {}): Variable {
  return { name, path: name, dims, shape, chunkShape: shape, dataType: parseDataType("<f4"), attrs };
}

t.test(
  "coordinates are variables named like their one dimension, and those an attribute names",
  async (t) => {
    const { root } = createTree([
      {
        path: "/",
        attrs: {},
        variables: [
          variable("lat", ["y", "x"], [2, 3]),
          variable("t", ["y", "x"], [2, 3], { coordinates: "lat  lon" }),
          variable("x", ["x"], [3]),
          variable("y", ["x"], [3]),
        ],
      },
    ]);
    t.same([...root.coordinateNames], ["lat", "x"]);
    t.same(
      [...root.dims],
      [
        ["y", 2],
        ["x", 3],
      ],
    );
  },
);

t.test("groups know their children, and their names", async (t) => {
  const paths = ["/", "/a", "/a/b", "/c"];
  const tree = createTree(paths.map((path) => ({ path, attrs: {}, variables: [] })));
  t.same([...tree.groups.keys()], paths);
  t.same(tree.root.childNames, ["a", "c"]);
  t.same(tree.groups.get("/a")?.childNames, ["b"]);
  t.equal(tree.groups.get("/a/b")?.name, "b");
  t.equal(tree.root.name, "");
});

t.test("variables that disagree about a dimension are told", async (t) => {
  const content = { path: "/", attrs: {}, variables: [variable("a", ["x"], [3]), variable("b", ["x"], [4])] };
  t.same(runNow(dimensionConflicts(content)), ["group '/': dimension 'x' has length 3 in 'a' and 4 in 'b'"]);
});

const array = (name: string, shape: number[], dimNames: (string | null)[] | null = null) => ({
  name,
  shape,
  dimNames,
});

t.test("names of the source are kept, and unnamed axes are called after their lengths", async (t) => {
  const cases = [
    [[array("t", [3, 4], ["y", "x"])], "y x"],
    [[array("a", [3, 4]), array("b", [4])], "dim_3 dim_4, dim_4"],
    [[array("a", [3, 3, 3])], "dim_3 dim_3_1 dim_3_2"],
    [[array("a", [3, 4], ["y", null])], "y dim_4"],
    // A name that a variable has, or a dimension of another length, is passed over.
    [[array("dim_4", [2, 4]), array("b", [9], ["dim_2"])], "dim_2_1 dim_4_1, dim_2"],
    [[array("a", [])], ""],
  ] as const;
  for (const [arrays, names] of cases)
    t.equal(
      nameDimensions(arrays)
        .map((dims) => dims.join(" "))
        .join(", "),
      names,
    );
});

t.test("no two unnamed variables ever disagree about a length, and no array has a name twice", async () => {
  const shape = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 4 });
  fc.assert(
    fc.property(fc.array(shape, { maxLength: 6 }), (shapes) => {
      const lengths = new Map<string, number>();
      const named = nameDimensions(shapes.map((shape, index) => array(`v${index}`, shape)));
      return named.every(
        (names, index) =>
          new Set(names).size === names.length &&
          names.every((name, axis) => {
            const length = shapes[index]?.[axis] as number;
            const known = lengths.get(name) ?? length;
            lengths.set(name, known);
            return known === length;
          }),
      );
    }),
  );
});

t.test("slashes of paths that say nothing do not count", async (t) => {
  const paths = ["a/b", "/a/b", "a/b/", "//a///b//", "a", "/", ""];
  t.same(paths.map(normalNodePath), ["a/b", "a/b", "a/b", "a/b", "a", "", ""]);
  t.same(["/a/b", "a", "/"].map(nodeName), ["b", "a", ""]);
  t.same(["/a", "/a/b"].map(parentPath), ["/", "/a"]);
});
