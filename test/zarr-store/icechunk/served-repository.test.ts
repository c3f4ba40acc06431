import { rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import type { ServerConfig } from "../../../src/server/open-app.js";
import {
  type ChunkRefSpec,
  fileOf,
  type RepositorySpec,
  repositoryFiles,
} from "../../support/icechunk-repository.js";
import { startFaultyOrigin } from "../../support/origins/faulty-origin.js";
import { startServer } from "../../support/servers/start-server.js";
import { makeDirectory, v3Array, v3Group, writeFiles } from "../../support/write-store.js";
import { writeZip } from "../../support/write-zip.js";

const DATA = Uint8Array.of(...Array.from({ length: 20 }, (_, index) => index));
const MODIFIED = Date.parse("2026-01-02T03:04:05Z") / 1_000;

/** A repository of one array of two items a chunk. @param length Items of the array. */
function repository(state: string, refs: readonly ChunkRefSpec[], length = 8): RepositorySpec {
  const document = { ...v3Array, shape: [length] };
  const manifests = [{ name: `manifest of ${state}`, extents: [[0, length / 2] as const] }];
  return {
    snapshots: [
      {
        name: state,
        nodes: [
          { path: "/", document: v3Group },
          { path: "/row", document, manifests },
        ],
      },
    ],
    branches: { main: state },
    tags: { first: state },
    manifests: { [`manifest of ${state}`]: { arrays: { "/row": refs } } },
    chunks: { one: DATA },
  };
}

const REFS: readonly ChunkRefSpec[] = [
  { index: [0], chunk: "one", offset: 2, length: 2 },
  { index: [1], inline: Uint8Array.of(8, 9) },
];
const FILES = repositoryFiles(repository("begun", REFS));

type Datasets = Readonly<
  Record<string, Partial<ServerConfig["datasets"][number]> & { readonly location: string }>
>;

function serve(t: Test, datasets: Datasets, more: Partial<ServerConfig> = {}) {
  return startServer(t, {
    datasets: Object.entries(datasets).map(([id, dataset]) => ({
      ...{ id, immutable: false, encoding: {}, variables: {} },
      ...dataset,
    })),
    ...more,
  });
}

const bytesOf = async (answer: Response) => [...new Uint8Array(await answer.arrayBuffer())];

t.test(
  "repositories are found in folders, archives, buckets and behind web servers, with and without prefix",
  async (t) => {
    const folder = await makeDirectory(t);
    await writeFiles(join(folder, "repo"), FILES);
    await writeFiles(join(folder, "old"), repositoryFiles({ ...repository("begun", REFS), format: 1 }));
    const entries = Object.entries(FILES).map(([name, content]) => ({ name, content }));
    await writeFiles(folder, { "packed.zip": writeZip(entries) });
    const web = await startFaultyOrigin(t, { directory: folder });
    const bucket = await startFaultyOrigin(t, { directory: folder, s3: { bucket: "data" } });
    const stores = [
      { name: "s", url: "s3://data/", endpoint: bucket.url, anonymous: true, forcePathStyle: true },
    ];
    const places = {
      local: join(folder, "repo"),
      old: join(folder, "old"),
      zip: join(folder, "packed.zip"),
      web: `${web.url}/repo`,
      oldWeb: `${web.url}/old`,
      s3: "s3://data/repo",
      oldS3: "s3://data/old",
      s3Zip: "s3://data/packed.zip",
    };
    const datasets = Object.entries(places).flatMap(([id, location]) => [
      [id, { location, stores }],
      [`${id}-tag`, { location: `icechunk:${location}?tag=first`, stores }],
    ]);
    const { get, json } = await serve(t, Object.fromEntries(datasets));
    for (const [id] of datasets) {
      t.match(await json(`/datasets/${id}/keys`), ["row"], `${id}`);
      for (const [index, expected] of [
        [2, 3],
        [8, 9],
      ].entries()) {
        const answer = await get(`/datasets/${id}/zarr3/row/c/${index}`);
        t.equal(answer.headers.get("x-cache"), "PASS");
        t.same(await bytesOf(answer), expected, `${id} chunk ${index}`);
      }
      t.equal((await get(`/datasets/${id}/zarr3/row/c/2`)).status, 404, "an absent chunk");
    }
  },
);

t.test("a commit is served, and chunks that it leaves alone keep their ETags", async (t) => {
  const folder = await makeDirectory(t);
  await writeFiles(folder, FILES);
  const { get, server } = await serve(t, { d: { location: folder } });
  const chunk = (index: number) => get(`/datasets/d/zarr3/row/c/${index}`);
  const etagOf = async (index: number) => (await chunk(index)).headers.get("etag") ?? "";
  const before = [await etagOf(0), await etagOf(1)];
  const inline = (index: number, ...bytes: number[]) => ({ index: [index], inline: Uint8Array.of(...bytes) });
  const rewritten = [...REFS.slice(0, 1), inline(1, 5, 5), inline(2, 6, 6)];
  for (const [state, refs, length] of [
    ["rewritten", rewritten, 8],
    ["grown", [...rewritten, inline(4, 7, 7)], 10],
  ] as const) {
    await writeFiles(folder, repositoryFiles(repository(state, refs, length)));
    await server.refresh();
    t.same(await bytesOf(await chunk(2)), [6, 6], state);
    t.same(await bytesOf(await chunk(1)), [5, 5]);
    t.equal(await etagOf(0), before[0]);
    t.not(await etagOf(1), before[1]);
    t.equal((await get("/datasets/d/zarr3/row/c/0", { "If-None-Match": before[0] ?? "" })).status, 304);
  }
  t.same(await bytesOf(await chunk(4)), [7, 7]);
});

t.test("virtual chunks are answered as they were recorded, or by 500", async (t) => {
  const folder = await makeDirectory(t);
  const origin = await startFaultyOrigin(t);
  const time = new Date(MODIFIED * 1_000).toUTCString();
  origin.put("data.bin", DATA, { etag: '"tag"', lastModified: time });
  const path = join(folder, "beside.bin");
  await writeFiles(folder, { "beside.bin": DATA });
  await utimes(path, MODIFIED, MODIFIED);
  const location = `${origin.url}/data.bin`;
  const at = { offset: 4, length: 2 };
  const refs: readonly ChunkRefSpec[] = [
    { index: [0], location, ...at },
    { index: [1], location, etag: "tag", ...at },
    { index: [2], location, modified: MODIFIED, ...at },
    { index: [3], location: `file://${path}`, modified: MODIFIED, ...at },
    { index: [4], location, etag: "other", ...at },
    { index: [5], location, modified: MODIFIED - 1, ...at },
    { index: [6], location: `file://${path}`, modified: MODIFIED - 1, ...at },
    { index: [7], location: "s3://elsewhere/data.bin", ...at },
    { index: [8], location: `${origin.url}/gone.bin`, ...at },
    { index: [9], location, offset: 18, length: 4 },
  ];
  await writeFiles(join(folder, "repo"), repositoryFiles(repository("virtual", refs, 22)));
  const { get, lines } = await serve(t, {
    d: { location: join(folder, "repo"), references: { allow: [`${origin.url}/`, folder] } },
    closed: { location: join(folder, "repo"), references: { allow: [] } },
  });
  for (let index = 0; index < 4; index++)
    t.same(await bytesOf(await get(`/datasets/d/zarr3/row/c/${index}`)), [4, 5], `chunk ${index}`);
  for (let index = 4; index < 10; index++)
    t.equal((await get(`/datasets/d/zarr3/row/c/${index}`)).status, 500, `chunk ${index}`);
  t.equal((await get("/datasets/d/zarr3/row/c/10")).status, 404);
  t.equal((await get("/datasets/closed/zarr3/row/c/0")).status, 500);
  t.same(
    origin.requests.map(({ headers }) => headers["if-match"]).filter((tag) => tag !== undefined),
    ['"tag"', '"other"'],
  );
  const log = lines.map((line) => JSON.stringify(line)).join("\n");
  t.match(log, /has changed: expected the ETag .*other.*, received another/);
  t.match(log, /has changed: expected no change after 2026-01-02T03:04:04/);
  t.match(log, /which is not among the places that references may lead to/);
  t.match(log, /gone.bin' is not there/);
  origin.put("data.bin", DATA.toReversed());
  t.equal((await get("/datasets/d/zarr3/row/c/1")).status, 500, "it has changed");
});

t.test("a file that is gone is a failure, not absence", async (t) => {
  const folder = await makeDirectory(t);
  await writeFiles(folder, FILES);
  const { get } = await serve(t, { d: { location: folder } });
  await rm(join(folder, "chunks", fileOf("one")));
  t.equal((await get("/datasets/d/zarr3/row/c/0")).status, 500);
  await writeFile(join(folder, "chunks", fileOf("one")), DATA.subarray(0, 3));
  t.equal((await get("/datasets/d/zarr3/row/c/0")).status, 500, "it is too short");
});
