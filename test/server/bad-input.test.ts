import { cpSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import t, { type Test } from "tap";
import { startServer } from "../support/servers/start-server.js";

const ARRAY = {
  zarr_format: 2,
  shape: [4],
  chunks: [2],
  dtype: "<i4",
  fill_value: 0,
  order: "C",
  filters: null,
  compressor: { id: "gzip", level: 1 },
};

function arrayFiles(changes: object = {}) {
  return { ".zarray": JSON.stringify({ ...ARRAY, ...changes }), "0": gzipSync(Int32Array.of(1, 2)) };
}

/** Writes a store with the given arrays and a valid one. */
function writeStore(test: Test, arrays: Record<string, object>): string {
  return test.testdir({ ".zgroup": '{"zarr_format":2}', good: arrayFiles(), ...arrays });
}

function datasetAt(id: string, location: string, more: object = {}) {
  return { id, location, immutable: false, encoding: {}, variables: {}, ...more };
}

const TRANSCODED = { encoding: { compressor: null } };

t.test("an array that cannot be understood is refused by name, and the rest is served", async (t) => {
  const location = writeStore(t, {
    broken: { ".zarray": "{" },
    wrong: arrayFiles({ chunks: [-1] }),
    unknown: arrayFiles({ dtype: "<q9" }),
  });
  const { get, json, lines } = await startServer(t, { datasets: [datasetAt("d", location)] });
  t.same(await json("/datasets/d/keys"), ["good"]);
  t.equal((await get("/datasets/d/zarr/good/0")).status, 200);
  t.equal((await get("/datasets/d/zarr/broken/.zarray")).status, 404);
  const refused = (lines as unknown as { path: string; reason: string; msg: string }[]).filter(
    ({ msg }) => msg === "refused",
  );
  t.same(refused.map(({ path }) => path).sort(), ["broken", "unknown", "wrong"]);
  t.ok(refused.every(({ reason }) => reason.length > 10));
});

t.test(
  "an unknown compressor is passed through, and refused only if it would have to be decoded",
  async (t) => {
    const location = writeStore(t, { odd: arrayFiles({ compressor: { id: "mystery", level: 9 } }) });
    const datasets = [datasetAt("stored", location), datasetAt("plain", location, TRANSCODED)];
    const { get, json, lines } = await startServer(t, { datasets });
    t.match(await json("/datasets/stored/zarr/odd/.zarray"), { compressor: { id: "mystery", level: 9 } });
    t.equal((await get("/datasets/stored/zarr/odd/0")).status, 200);
    t.equal((await get("/datasets/plain/zarr/odd/0")).status, 404);
    t.equal((await get("/datasets/plain/zarr/good/0")).status, 200);
    t.match(
      lines.filter(({ msg }) => msg === "refused"),
      [{ path: "odd", reason: /mystery/ }],
    );
  },
);

t.test(
  "chunks that are damaged, or decode to another length, are failures that the log explains",
  async (t) => {
    const location = writeStore(t, {
      short: { ...arrayFiles(), "0": gzipSync(Int32Array.of(1)) },
      long: { ...arrayFiles(), "0": gzipSync(new Int32Array(1000)) },
      cut: arrayFiles(),
      noise: { ...arrayFiles(), "0": "no gzip" },
      empty: { ...arrayFiles(), "0": "" },
    });
    truncateSync(join(location, "cut", "0"), 20);
    const { get, lines } = await startServer(t, { datasets: [datasetAt("d", location, TRANSCODED)] });
    for (const name of ["short", "long", "cut", "noise", "empty"]) {
      const answer = await get(`/datasets/d/zarr/${name}/0`);
      t.equal(answer.status, 500, name);
      const body = (await answer.json()) as { detail: string; id: string };
      t.equal(answer.headers.get("access-control-allow-origin"), "*");
      t.notMatch(JSON.stringify(body), location, "no path of the machine");
      const line = lines.find(({ id }) => id === body.id) as unknown as { err: { message: string } };
      t.match(JSON.stringify(line), new RegExp(`array '${name}': stored chunk 0`));
    }
    const good = await get("/datasets/d/zarr/good/0");
    t.same([...new Int32Array(await good.arrayBuffer())], [1, 2]);
  },
);

t.test("a store that disappears is a failure, never an absence", async (t) => {
  const location = writeStore(t, {});
  const { get, server, json } = await startServer(t, { datasets: [datasetAt("d", location)] });
  t.equal((await get("/datasets/d/zarr/good/1")).status, 404, "absent");
  rmSync(location, { recursive: true });
  t.equal((await get("/datasets/d/zarr/good/1")).status, 500, "unknown");
  await server.refresh();
  t.same(await json("/datasets/d/keys"), ["good"], "its metadata are still served");
});

t.test("links within a store are followed", async (t) => {
  const location = writeStore(t, {});
  cpSync(join(location, "good"), join(location, "copy"), { recursive: true });
  symlinkSync(join(location, "good", "0"), join(location, "copy", "1"));
  const { get } = await startServer(t, { datasets: [datasetAt("d", location)] });
  t.equal((await get("/datasets/d/zarr/copy/1")).status, 200);
});

t.test("errors name a location that is no store or does not exist", async (t) => {
  const open = (location: string) => startServer(t, { datasets: [datasetAt("d", location)] });
  await t.rejects(open(t.testdir({ "readme.txt": "hello" })), {
    code: "invalid-metadata",
    message: /dataset 'd': .*is no Zarr store/,
  });
  await t.rejects(open("/no/such/place"), { message: /dataset 'd': .*\/no\/such\/place/ });
  const corrupt = t.testdir({ ".zgroup": "{" });
  writeFileSync(join(corrupt, ".zgroup"), "[]");
  await t.rejects(open(corrupt), { code: "invalid-metadata", message: /\.zgroup/ });
});
