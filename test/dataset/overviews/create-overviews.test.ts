import t from "tap";
import type { DatasetConfig } from "../../../src/config/config.js";
import type { DatasetSnapshot } from "../../../src/dataset/dataset.js";
import { openDataset } from "../../../src/dataset/open-dataset.js";
import { ownerOf } from "../../../src/dataset/overviews/overviews.js";
import { createSnapshot } from "../../../src/dataset/snapshot.js";
import { fakeSource, storedArray, storedTree } from "../../support/datasets/fake-source.js";

const CONFIG: DatasetConfig = {
  id: "d",
  location: "here",
  immutable: false,
  encoding: {},
  variables: {},
  overviews: { levels: 2, method: "nearest" },
};
const PLANE = { shape: [8, 8], dimNames: ["y", "x"] };
const TREE = storedTree(
  [
    {
      path: "/",
      attrs: {},
      arrays: [
        storedArray("plane", PLANE),
        // Passed through, but never decoded.
        storedArray("secret", { ...PLANE, codecs: [{ id: "mystery" }] }),
        storedArray("time", { shape: [3], dimNames: ["time"] }),
      ],
    },
    { path: "/g", attrs: {}, arrays: [storedArray("g/plane", PLANE)] },
  ],
  { refused: [{ path: "odd", reason: "no such type" }] },
);

function overviewsOf({ overviews }: DatasetSnapshot): DatasetSnapshot {
  if (overviews === undefined) throw new Error("expected overviews");
  return overviews;
}

t.test(
  "level arrays are made when they are asked for; what cannot be coarsened is left out by name",
  async (t) => {
    const dataset = createSnapshot(CONFIG, TREE, "");
    const overviews = overviewsOf(dataset);
    const own = () => overviews.refused.filter(({ path }) => !path.endsWith("/odd"));
    t.match(overviews.refused[1], { path: "1/odd", reason: "no such type" });
    t.same(own(), [], "none is made yet");
    t.equal(overviews.arrays.get("1/secret"), undefined);
    t.match(own(), [{ path: "1/secret", reason: /mystery/ }]);
    t.same([...overviews.tree.groups.keys()].sort(), ["/", "/0", "/0/g", "/1", "/1/g", "/2", "/2/g"]);
    t.same([...(overviews.tree.groups.get("/2")?.variables.keys() ?? [])], ["plane", "time"]);
    t.match(overviews.tree.groups.get("/2")?.variables.get("plane"), { path: "2/plane", shape: [2, 2] });
    t.equal(overviews.arrays.get("2/g/plane"), overviews.arrays.get("2/g/plane"));
    t.same(
      overviews.tree.groups.get("/2/g")?.dims,
      new Map([
        ["y", 2],
        ["x", 2],
      ]),
    );
  },
);

t.test("arrays that stay the same belong to the dataset, others to the overviews", async (t) => {
  const dataset = createSnapshot(CONFIG, TREE, "");
  const overviews = overviewsOf(dataset);
  const owner = (path: string) => {
    const array = overviews.arrays.get(path);
    return array && ownerOf(overviews, array);
  };
  for (const path of ["0/plane", "0/secret", "0/g/plane", "0/time", "2/time"])
    t.equal(owner(path), dataset, path);
  for (const path of ["1/plane", "2/g/plane"]) t.equal(owner(path), overviews, path);
  const plane = dataset.arrays.get("plane");
  t.equal(plane && ownerOf(dataset, plane), dataset);
});

t.test("a revision tells overviews from others, and from the dataset", async (t) => {
  const revision = (more: Partial<DatasetConfig>) =>
    overviewsOf(createSnapshot({ ...CONFIG, ...more }, TREE, "")).revision;
  const revisions = [
    createSnapshot(CONFIG, TREE, "").revision,
    revision({}),
    revision({ overviews: { levels: 1, method: "nearest" } }),
    revision({ overviews: { levels: 2, method: "max" } }),
    revision({ overviews: { levels: 2, method: "nearest", metadata: "geo" } }),
    revision({ encoding: { compressor: null } }),
  ];
  t.equal(new Set(revisions).size, revisions.length);
  t.equal(revision({}), revision({}));
  for (const overviews of [undefined, false] as const)
    t.equal(createSnapshot({ ...CONFIG, overviews } as DatasetConfig, TREE, "").overviews, undefined);
});

t.test("overviews follow a refresh and another Cache-Control", async (t) => {
  const source = fakeSource(TREE);
  const dataset = await openDataset(CONFIG, source, "no-store");
  const first = overviewsOf(dataset.snapshot());
  dataset.setCacheControl("public");
  const second = overviewsOf(dataset.snapshot());
  t.same([first.cacheControl, second.cacheControl, second.revision], ["no-store", "public", first.revision]);
  t.equal(second.levels?.dataset, dataset.snapshot());
  source.tree = storedTree(
    [{ path: "/", attrs: {}, arrays: [storedArray("plane", { ...PLANE, shape: [10, 8] })] }],
    {
      fingerprint: "2",
    },
  );
  await dataset.refresh();
  const third = overviewsOf(dataset.snapshot());
  t.same(third.arrays.get("1/plane")?.variable.shape, [5, 4]);
  t.equal(third.cacheControl, "public");
});
