import { rm } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import type { ServerConfig } from "../../../src/server/open-app.js";
import { fileOf, type RepositorySpec, repositoryFiles } from "../../support/icechunk-repository.js";
import { startFaultyOrigin } from "../../support/origins/faulty-origin.js";
import { startServer } from "../../support/servers/start-server.js";
import { makeDirectory, v3Array, v3Group, writeFiles } from "../../support/write-store.js";
import { writeZip } from "../../support/write-zip.js";

const FOR_EVER = "public, max-age=31536000, immutable";

/** Snapshots of an array of two items a chunk: `one` and `two` differ in chunk 1, and `two` has an attribute and a chunk more. */
function repository(format: 1 | 2, tags: Readonly<Record<string, string>>): RepositorySpec {
  const manifestOf = (state: string) => ({ name: `of ${state}`, extents: [[0, 4] as const] });
  const snapshotOf = (name: string, time: number, more: object = {}) => ({
    ...{ name, time, message: `state ${name}` },
    nodes: [
      { path: "/", document: v3Group },
      { path: "/row", document: { ...v3Array, shape: [8], ...more }, manifests: [manifestOf(name)] },
    ],
  });
  const same = { index: [0], chunk: "data", offset: 2, length: 2 };
  const inline = (index: number, value: number) => ({ index: [index], inline: Uint8Array.of(value, value) });
  return {
    format,
    snapshots: [snapshotOf("one", 1e15), snapshotOf("two", 2e15, { attributes: { is: "new" } })],
    branches: { main: "two" },
    tags,
    manifests: {
      "of one": { arrays: { "/row": [same, inline(1, 1)] } },
      "of two": { arrays: { "/row": [same, inline(1, 2), inline(2, 2)] } },
    },
    chunks: { data: Uint8Array.of(9, 9, 7, 7) },
  };
}

function serve(t: Test, location: string, more: Partial<ServerConfig> = {}) {
  const dataset = { id: "x", location, immutable: false, encoding: {}, variables: {} };
  return startServer(t, { datasets: [dataset], ...more });
}

const bytesOf = async (answer: Response) => [...new Uint8Array(await answer.arrayBuffer())];

t.test(
  "a repository is served at its tags and snapshots, and chunks that did not change are the same",
  async (t) => {
    for (const format of [2, 1] as const) {
      const directory = await makeDirectory(t);
      await writeFiles(directory, repositoryFiles(repository(format, { v1: "one", v2: "two" })));
      const web = await startFaultyOrigin(t, { directory });
      for (const location of [directory, `icechunk:${directory}?branch=main`, `icechunk:${web.url}/`]) {
        const { get, json, server } = await serve(t, location);
        const of = `format ${format}, ${location.replace(/:\/.*/, "")}`;
        const chunk = (id: string, index: number, store = "zarr3/row/c/") =>
          get(`/datasets/${id}/${store}${index}`);
        const etagOf = async (id: string, index: number) => (await chunk(id, index)).headers.get("etag");
        // Of format 1, a web server lists no tags.
        const isListed = format === 2 || location.includes(directory);
        if (isListed)
          t.match(
            await json("/datasets/x/versions"),
            [
              { kind: "branch", name: "main", snapshot: fileOf("two"), id: `x@${fileOf("two")}` },
              {
                kind: "tag",
                name: "v2",
                snapshot: fileOf("two"),
                time: "2033-05-18T03:33:20.000Z",
                id: "x@v2",
              },
              {
                kind: "tag",
                name: "v1",
                snapshot: fileOf("one"),
                message: "state one",
                path: "/datasets/x@v1/",
              },
              { kind: "snapshot", name: fileOf("two") },
              { kind: "snapshot", name: fileOf("one") },
            ],
            of,
          );
        for (const [id, expected] of [
          ["x", 2],
          ["x@v2", 2],
          ["x@v1", 1],
          [`x@${fileOf("one")}`, 1],
        ] as const) {
          t.same(await bytesOf(await chunk(id, 0)), [7, 7], `${of}: ${id}`);
          t.same(await bytesOf(await chunk(id, 1)), [expected, expected], `${of}: ${id}`);
          t.same(await bytesOf(await chunk(id, 1, "zarr/row/")), [expected, expected], `${of}: ${id}`);
          t.equal((await chunk(id, 2)).status, expected === 1 ? 404 : 200, `${of}: ${id}`);
          t.equal((await chunk(id, 0)).headers.get("cache-control") === FOR_EVER, id !== "x", `${of}: ${id}`);
        }
        t.equal(await etagOf("x@v1", 0), await etagOf("x", 0), `${of}: the same chunk`);
        t.equal(await etagOf("x@v2", 1), await etagOf("x", 1), `${of}: the same chunk`);
        t.not(await etagOf("x@v1", 1), await etagOf("x", 1), `${of}: another chunk`);
        t.match(await json("/datasets/x@v1.zarr/.zmetadata"), {
          metadata: { "row/.zattrs": { is: undefined } },
        });
        t.match(await json("/datasets/x/info"), { variables: { row: { attributes: { is: "new" } } } });
        t.equal((await get("/datasets/x@v3/keys")).status, 404, of);
        t.equal((await get("/datasets/x@main/keys")).status, 404, of);

        web.resetCounts();
        for (const id of ["x@v1", "x@v2"])
          for (const index of [0, 1, 3]) {
            const etag = await etagOf(id, index);
            if (etag !== null)
              t.equal(
                (await get(`/datasets/${id}/zarr3/row/c/${index}`, { "if-none-match": etag })).status,
                304,
              );
          }
        t.equal(web.count({ method: "HEAD" }), 0, "nothing asks whether a version has changed");
        web.resetCounts();
        await server.refresh();
        t.ok(web.count({}) <= 1, `${of}: one request a refresh, for the branch`);
      }
    }
  },
);

t.test("a tag is there as soon as it is written, and stays when others come", async (t) => {
  const directory = await makeDirectory(t);
  const write = (tags: Readonly<Record<string, string>>) =>
    writeFiles(directory, repositoryFiles(repository(2, tags)));
  await write({ v1: "one" });
  // No refresh in this test.
  const { get, json } = await serve(t, directory, { refreshSeconds: 3_600 });
  t.equal((await get("/datasets/x@v1/keys")).status, 200);
  t.equal((await get("/datasets/x@late/keys")).status, 404);
  await write({ v1: "one", late: "two" });
  t.equal((await get("/datasets/x@late/keys")).status, 200);
  t.match(await json("/datasets/x/versions"), [{}, { name: "late" }, { name: "v1" }]);
  t.match(await (await get("/datasets/x/")).text(), "x@late");
  t.equal((await get("/datasets/x@v1/zarr3/row/c/1")).status, 200);
});

t.test(
  "a damaged version fails, and harms no other; repositories of a collection have versions",
  async (t) => {
    const root = await makeDirectory(t);
    await writeFiles(join(root, "repo"), repositoryFiles(repository(2, { v1: "one", v2: "two" })));
    await rm(join(root, "repo", "snapshots", fileOf("one")));
    const collection = { name: "c", root, immutable: false, encoding: {}, variables: {} };
    const { get, json } = await startServer(t, { collections: [collection] });
    t.same(await json("/datasets"), ["c~repo"]);
    t.equal((await get("/datasets/c~repo@v1/keys")).status, 500);
    t.equal((await get("/datasets/c~repo@none/keys")).status, 404);
    t.same(await json("/datasets/c~repo@v2/keys"), ["row"]);
  },
);

t.test("the file of an archive is that of the dataset, not of its versions", async (t) => {
  const directory = await makeDirectory(t);
  const files = Object.entries(repositoryFiles(repository(2, { v1: "one" })));
  await writeFiles(directory, {
    "repo.zip": writeZip(files.map(([name, content]) => ({ name, content }))),
  });
  const location = join(directory, "repo.zip");
  const { get } = await startServer(t, {
    datasets: [{ id: "x", location, immutable: false, encoding: {}, variables: {}, file: true }],
  });
  t.equal((await get("/datasets/x/file")).status, 200);
  t.equal((await get("/datasets/x@v1/keys")).status, 200);
  t.equal((await get("/datasets/x@v1/file")).status, 404);
});
