import t from "tap";
import { runNow } from "../../../../src/event-loop/cooperative-task.js";
import type { Hdf5Dataset, Hdf5Group } from "../../../../src/formats/hdf5/hdf5-model.js";
import { axisSteps, netcdfFileSteps, pathOf } from "../../../../src/formats/hdf5/netcdf.js";
import { attribute, dataset, FLOAT64, fileOf, group, INT32, scale, scales } from "./model.js";

const GROWS: Partial<Hdf5Dataset> = {
  maxShape: [null],
  layout: {
    ...{ kind: "chunked", chunkShape: [2], itemSize: 4, address: null, baseAddress: 0 },
    ...{ edgesAreUnfiltered: false, index: { kind: "b-tree-1" } },
  },
};

/** Dimensions of all variables by path, as `x=3 t=5`, and the warnings. */
function nameAll(root: Hdf5Group): { dims: Record<string, string>; warnings: readonly string[] } {
  const file = runNow(netcdfFileSteps(fileOf(root)));
  const warnings = runNow(axisSteps(file));
  const dims: Record<string, string> = {};
  for (const { variables } of file.groups) {
    for (const variable of variables) {
      dims[pathOf(variable)] = variable.dims.map((one) => `${one?.name}=${one?.length}`).join(" ");
    }
  }
  return { dims, warnings };
}

t.test("a scale is its own dimension, and that of axes that refer to it, in children too", async (t) => {
  const child = group("/child", { below: dataset(9, [3], scales([1])) });
  const root = group(
    "/",
    { x: dataset(1, [3], scale()), y: dataset(2, [2], scale()), data: dataset(3, [2, 3], scales([2], [1])) },
    [child],
  );
  t.same(nameAll(root), {
    dims: { x: "x=3", y: "y=2", data: "y=2 x=3", "child/below": "x=3" },
    warnings: [],
  });
});

t.test("of two scales on an axis, the last one counts", async (t) => {
  const root = group("/", {
    a: dataset(1, [3], scale()),
    b: dataset(2, [3], scale()),
    data: dataset(3, [3], scales([1, 2])),
  });
  const { dims, warnings } = nameAll(root);
  t.equal(dims.data, "b=3");
  t.match(warnings, [/^'data': axis 0 has 2 scales; the last one is taken$/]);
});

t.test(
  "netCDF's numbers of dimensions count before references, and hidden scales are no variables",
  async (t) => {
    const coordinates = { _Netcdf4Coordinates: attribute(INT32, [5, 7]) };
    const root = group("/", {
      t: dataset(1, [4], scale(5, true)),
      x: dataset(2, [3], scale(7)),
      _nc4_non_coord_t: dataset(3, [3], scales([2])),
      lat: dataset(4, [4, 3], { ...scale(9), ...coordinates }),
      data: dataset(6, [4, 3], coordinates),
    });
    t.same(nameAll(root).dims, { x: "x=3", t: "x=3", lat: "t=4 x=3", data: "t=4 x=3" });
  },
);

t.test("an unlimited dimension has the length of its longest variable", async (t) => {
  const root = group("/", {
    t: dataset(1, [2], scale(), GROWS),
    long: dataset(2, [5], scales([1]), GROWS),
    short: dataset(3, [1], scales([1]), GROWS),
  });
  t.same(nameAll(root).dims, { t: "t=5", long: "t=5", short: "t=5" });
});

t.test("dimensions are made up as netCDF does: children first, and shared by equal lengths", async (t) => {
  const root = group(
    "/",
    {
      a: dataset(1, [3, 3]),
      b: dataset(2, [3, 5], { units: attribute(INT32, [1]) }),
      grows: dataset(3, [3], {}, GROWS),
    },
    [group("/c", { d: dataset(4, [3]) })],
  );
  t.same(nameAll(root).dims, {
    a: "phony_dim_1=3 phony_dim_2=3",
    b: "phony_dim_1=3 phony_dim_3=5",
    grows: "phony_dim_4=3",
    "c/d": "phony_dim_0=3",
  });
});

t.test("types that netCDF leaves out do not change the numbers of others", async (t) => {
  const compound = { kind: "compound", size: 8, fields: [{ name: "a", offset: 0, type: FLOAT64 }] } as const;
  const root = group("/", { a: dataset(1, [7], {}, { type: compound }), b: dataset(2, [3]) });
  t.same(nameAll(root).dims, { a: "phony_dim_1=7", b: "phony_dim_0=3" });
});

t.test("a scale of another length does not count", async (t) => {
  const root = group("/", { x: dataset(1, [3], scale()), wrong: dataset(2, [4], scales([1])) });
  const { dims, warnings } = nameAll(root);
  t.same(dims.wrong, "phony_dim_1=4");
  t.match(warnings, [/^'wrong': the scale of axis 0 does not fit it$/]);
});

t.test("two dimensions of one name and two lengths in a group are told apart", async (t) => {
  const root = group("/", {}, [
    group("/a", { x: dataset(1, [5], scale()) }),
    group("/b", { x: dataset(2, [3], scale()), y: dataset(3, [5], scales([1])) }),
  ]);
  const { dims, warnings } = nameAll(root);
  t.same(dims, { "a/x": "x=5", "b/x": "x=3", "b/y": "phony_dim_2=5" });
  t.match(warnings, [/^'b\/y': another dimension of the group has the name of axis 0$/]);
});
