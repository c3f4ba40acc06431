import t from "tap";
import type { JsonObject } from "../../src/json/json-value.js";
import { createDataTree, dimensionConflicts, parentPath, type Variable } from "../../src/model/data-tree.js";

const FLOAT32 = {
  kind: "f",
  itemSize: 4,
  byteOrder: "<",
  zarr: "<f4",
  numpyName: "float32",
  numpyStr: "float32",
} as const;

function variable(name: string, dims: string[], shape: number[], attrs: JsonObject = {}): Variable {
  return { name, path: name, dims, shape, chunkShape: shape, dataType: FLOAT32, attrs };
}

t.test(
  "coordinates are variables named like their one dimension, and those an attribute names",
  async (t) => {
    const { root } = createDataTree([
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
  const tree = createDataTree(paths.map((path) => ({ path, attrs: {}, variables: [] })));
  t.same([...tree.groups.keys()], paths);
  t.same(tree.root.childNames, ["a", "c"]);
  t.same(tree.groups.get("/a")?.childNames, ["b"]);
  t.equal(tree.groups.get("/a/b")?.name, "b");
  t.equal(tree.root.name, "");
});

t.test("variables that disagree about a dimension are told", async (t) => {
  const content = { path: "/", attrs: {}, variables: [variable("a", ["x"], [3]), variable("b", ["x"], [4])] };
  t.same(dimensionConflicts(content), ["group '/': dimension 'x' has length 3 in 'a' and 4 in 'b'"]);
});

t.test("the parent of a first-level group is the root", async (t) => {
  t.equal(parentPath("/a"), "/");
  t.equal(parentPath("/a/b"), "/a");
});
