import { setTimeout as delay } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import t from "tap";
import { defaultValues, optionConfig } from "../../src/config/options.js";
import type { Plugin } from "../../src/plugins/plugin.js";
import { until } from "../support/servers/process-table.js";
import { ALL_PLUGINS, startServer } from "../support/servers/start-server.js";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

t.test("nothing stays in memory of a dataset that was closed for others", async (t) => {
  const memory = new Map<string, WeakRef<SharedArrayBuffer>>();
  const plugin: Plugin = {
    name: "p",
    version: "1",
    path: "test",
    datasets: ({ createDataTree }) => ({
      list: () => ["a", "b", "c", "last"],
      async open(id) {
        // Shared memory is not copied, so it lives as long as the dataset.
        const buffer = new SharedArrayBuffer(64 * 64 * 4);
        memory.set(id, new WeakRef(buffer));
        const attrs = { title: id };
        const values = { dims: ["y", "x"], shape: [64, 64], data: new Float32Array(buffer) };
        return { tree: await createDataTree({ attrs, variables: { values } }), overviews: { levels: 1 } };
      },
    }),
  };
  const { limits } = optionConfig(defaultValues({}));
  const { get } = await startServer(t, {
    plugins: [...ALL_PLUGINS, plugin],
    limits: { ...limits, maxOpenDatasets: 1 },
    refreshSeconds: 3_600,
  });
  const paths = [
    "",
    "tree",
    "keys",
    "info",
    "dict",
    "groups",
    "explore",
    "overviews/",
    "zarr/",
    "zarr/.zmetadata",
  ];
  const chunks = ["zarr/values/0.0", "zarr3/zarr.json", "zarr3/values/c/0/0", "thumbnail/values.png"];
  for (const id of ["a", "b", "c", "last"]) {
    for (const path of [...paths, ...chunks, "overviews/zarr/1/values/0.0"]) {
      const response = await get(`/datasets/p~${id}/${path}`);
      t.equal(response.status < 400, true, `${id} ${path} ${response.status}`);
      await response.arrayBuffer();
    }
    await (await get("/")).arrayBuffer();
  }
  await until(async () => {
    collectGarbage();
    await delay(50);
    return ["a", "b", "c"].every((id) => memory.get(id)?.deref() === undefined);
  });
  t.ok(memory.get("last")?.deref(), "the last one is open");
});
