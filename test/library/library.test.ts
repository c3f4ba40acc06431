import { writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import * as zpublish from "../../src/index.js";

t.test("the package exports this, and nothing else", async (t) => {
  t.same(Object.keys(zpublish).sort(), [
    "ZpublishError",
    "createDataTree",
    "createServer",
    "openDataTree",
    "stringifyJson",
  ]);
});

t.test("a tree of typed arrays is built, looked at and served", async (t) => {
  const tree = await zpublish.createDataTree({
    attrs: { title: "from memory" },
    variables: { t2m: { data: Float32Array.from([0, 1, 2, 3, 4, 5]), shape: [2, 3], dims: ["y", "x"] } },
    groups: { high: { variables: { flag: { data: new Uint8Array(4), shape: [4] } } } },
  });
  t.same([...tree.groups.keys()], ["/", "/high"]);
  t.same(tree.root.variables.get("t2m")?.shape, [2, 3]);
  t.same(tree.groups.get("/high")?.variables.get("flag")?.dims, ["dim_4"]);

  const server = await zpublish.createServer({
    datasets: { memory: { source: tree, variables: { t2m: { compressor: null } } } },
    workers: 1,
  });
  t.teardown(() => server.close());
  const { url } = await server.listen({ port: 0 });
  const chunk = await fetch(`${url}/datasets/memory/zarr/t2m/0.0`);
  t.same([...new Float32Array(await chunk.arrayBuffer())], [0, 1, 2, 3, 4, 5]);
});

t.test("a store is opened, and served by its location as well", async (t) => {
  const directory = t.testdir({
    ".zgroup": '{"zarr_format": 2}',
    a: {
      ".zarray": JSON.stringify({
        zarr_format: 2,
        shape: [2],
        chunks: [2],
        dtype: "|u1",
        fill_value: 0,
        order: "C",
        filters: null,
        compressor: null,
      }),
    },
  });
  writeFileSync(join(directory, "a", "0"), Uint8Array.of(1, 2));
  const tree = await zpublish.openDataTree(directory);
  t.same([...tree.root.variables.keys()], ["a"]);
  const server = await zpublish.createServer({
    datasets: { one: tree, two: directory },
    workers: 1,
    refresh: 0,
  });
  t.teardown(() => server.close());
  const { url } = await server.listen({ port: 0 });
  for (const id of ["one", "two"]) {
    const chunk = await fetch(`${url}/datasets/${id}/zarr/a/0`);
    t.same([...new Uint8Array(await chunk.arrayBuffer())], [1, 2], id);
  }
});

t.test("what cannot be opened or served is said", async (t) => {
  await t.rejects(zpublish.openDataTree(t.testdir({})), { code: "invalid-metadata" });
  await t.rejects(zpublish.createServer({ datasets: { "a/b": "x" } }), { code: "invalid-config" });
  await t.rejects(zpublish.createDataTree({ variables: { a: { data: new Uint8Array(3), shape: [4] } } }), {
    code: "invalid-metadata",
  });
  await t.rejects(zpublish.createServer({ datasets: {}, plugins: ["no-such-package"] }), {
    code: "invalid-config",
    message: /no-such-package/,
  });
});
