import { pino } from "pino";
import t from "tap";
import { createDatasetHandle } from "../../src/dataset/dataset-handle.js";
import type { StoredTree } from "../../src/zarr/stored-tree.js";
import { fakeSource, storedArray, storedTree } from "../support/datasets/fake-source.js";

function joinedTree(steps: number): StoredTree {
  const parts = Array.from({ length: steps }, (_, start) => ({ name: `${start >> 1}.nc`, start, length: 1 }));
  const arrays = [storedArray("v", { shape: [steps, 2] })];
  return storedTree([{ path: "/", attrs: {}, arrays }], {
    join: { kind: "concat", dimension: "time", parts },
    fingerprint: String(steps),
  });
}

t.test("the log has a line about the files of a joined dataset, and another when it has grown", async (t) => {
  const lines: unknown[] = [];
  const log = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) });
  const source = fakeSource(joinedTree(4));
  const config = { id: "sst", location: "/data/*.nc", immutable: false, encoding: {}, variables: {} };
  const dataset = createDatasetHandle(config, source, { cacheControl: "no-cache", log });
  await dataset.open();
  t.match(lines, [{ level: 30, msg: "files joined", dataset: "sst", dimension: "time", files: 2, steps: 4 }]);
  t.match(dataset.snapshot()?.join, { kind: "concat", dimension: "time" });
  source.tree = joinedTree(6);
  await dataset.refresh();
  t.match(lines.slice(1), [{ msg: "dataset refreshed", dataset: "sst", files: 3, steps: 6 }]);
  await dataset.close();
});
