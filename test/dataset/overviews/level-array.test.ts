import t from "tap";
import { createSnapshot } from "../../../src/dataset/create-snapshot.js";
import type { ServedArray } from "../../../src/dataset/dataset.js";
import { createLevelArray, type LevelContext } from "../../../src/dataset/overviews/level-array.js";
import { createTaskRunner } from "../../../src/pool/run-chunk-task.js";
import { createMemorySource } from "../../../src/source/memory/memory-source.js";

const config = { id: "d", location: "here", immutable: false, encoding: {}, variables: {} };
const context: LevelContext = {
  store: "d",
  snapshot: () => {
    throw new Error("expected no reader");
  },
  openReader: () => {
    throw new Error("expected no reader");
  },
};

t.test("a level of floats has the means of those that are there", async (t) => {
  const data = Float32Array.from([
    1,
    2,
    3,
    4,
    5,
    6,
    Number.NaN,
    8,
    9,
    Number.NaN,
    Number.NaN,
    12,
    13,
    14,
    15,
  ]);
  const source = createMemorySource({
    groups: [
      {
        path: "/",
        arrays: [
          { name: "a", data, shape: [3, 5], dims: ["y", "x"], compressor: null, attrs: { units: "K" } },
        ],
      },
    ],
  });
  const snapshot = createSnapshot(config, await source.readTree(), "no-cache");
  const level = createLevelArray(
    snapshot.arrays.get("a") as ServedArray,
    { name: "a", path: "1/a", factors: [2, 2], method: "mean" },
    context,
  );
  t.same(level.document, {
    chunks: [2, 3],
    compressor: null,
    dimension_separator: ".",
    dtype: "<f4",
    fill_value: "NaN",
    filters: null,
    order: "C",
    shape: [2, 3],
    zarr_format: 2,
  });
  t.same(level.variable.attrs, { units: "K" });
  const run = createTaskRunner();
  const outcome = await run({ plan: level.plan, chunkCoords: [0, 0] });
  if (outcome.status !== "encoded") throw new Error(JSON.stringify(outcome));
  t.same([...new Float32Array(outcome.bytes.slice().buffer)], [3, 6, 5, 12, 13.5, 15]);
});
