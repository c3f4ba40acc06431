import { mkdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import type { VirtualRef } from "../support/icechunk/icechunk-program.js";
import {
  type Icechunk,
  icechunkMissing,
  openIcechunk,
  type Repository,
} from "../support/icechunk/open-icechunk.js";
import { setConfiguration } from "../support/icechunk/repository-file.js";
import { array, chunk, dataset, group } from "../support/icechunk/sample-repository.js";
import { startFaultyOrigin } from "../support/origins/faulty-origin.js";
import { type RunningServer, startServer } from "../support/servers/start-server.js";
import { makeDirectory, makeOld } from "../support/write-store.js";

t.setTimeout(600_000);

const skip = icechunkMissing();

/** Values of a chunk, and their bytes. */
const COUNT = 16;
const BYTES = 4 * COUNT;

/** A file of so many chunks, whose values count up from a number. */
function numbers(first: number, chunks = 8): Buffer {
  return Buffer.from(Int32Array.from({ length: chunks * COUNT }, (_, at) => first + at).buffer);
}

/** Allowed places of a test: a directory, a sibling that is not allowed, and a web server. */
async function createPlaces(t: Test) {
  const root = await makeDirectory(t);
  await mkdir(join(root, "data"));
  await mkdir(join(root, "secret"));
  await writeFile(join(root, "data", "a.bin"), numbers(1000));
  await writeFile(join(root, "secret", "a.bin"), numbers(9000));
  await makeOld(join(root, "data", "a.bin"));
  const origin = await startFaultyOrigin(t, {
    objects: { "data/b.bin": numbers(2000), "other/b.bin": numbers(3000) },
  });
  return {
    root,
    origin,
    file: (name: string) => `file://${join(root, name)}`,
    url: (name: string) => `${origin.url}/${name}`,
    prefixes: [`file://${root}/`, `${origin.url}/`],
    allow: [`${join(root, "data")}/`, `${origin.url}/data/`],
  };
}

type Places = Awaited<ReturnType<typeof createPlaces>>;

/** A repository that may refer to all places, with one array of virtual chunks and a chunk of its own. */
async function createVirtual(
  icechunk: Icechunk,
  places: Places,
  specVersion: 1 | 2,
  refs: readonly Omit<VirtualRef, "index">[],
): Promise<Repository> {
  const [files, web] = places.prefixes as [string, string];
  const repository = await icechunk.create({
    specVersion,
    authorize: places.prefixes,
    config: {
      inlineChunkThresholdBytes: 0,
      virtualChunkContainers: {
        [files]: {
          urlPrefix: files,
          store: { type: "LocalFileSystem", field0: files.slice("file://".length) },
        },
        [web]: {
          urlPrefix: web,
          store: { type: "Http", field0: { opts: { allow_http: "true" }, headers: {} } },
        },
      },
      manifest: { virtual_chunk_location_compression: { min_num_chunks: 100 } },
    },
  });
  await repository.commit("virtual", [
    group(""),
    array("own", [COUNT], [COUNT]),
    chunk("own/c/0", COUNT, 7),
    array("v", [COUNT * (refs.length + 1)], [COUNT]),
    { virtual: "v", refs: refs.map((ref, index) => ({ index: [index], ...ref })) },
  ]);
  return repository;
}

async function serve(t: Test, repository: Repository, allow: readonly string[]): Promise<RunningServer> {
  return startServer(t, {
    datasets: [dataset("x", `icechunk:${repository.path}`, { references: { allow } })],
    refreshSeconds: 3_600,
  });
}

async function answerOf({ get }: RunningServer, index: number): Promise<number | number[]> {
  const answer = await get(`/datasets/x/zarr3/v/c/${index}`);
  const bytes = await answer.arrayBuffer();
  return answer.status === 200 ? [...new Int32Array(bytes)] : answer.status;
}

const range = (first: number) => Array.from({ length: COUNT }, (_, at) => first + at);

for (const specVersion of [1, 2] as const) {
  t.test(
    `format ${specVersion}: virtual chunks are read where they may be, and refused elsewhere`,
    { skip },
    async (t) => {
      const icechunk = await openIcechunk(t);
      const places = await createPlaces(t);
      const { file, url, origin } = places;
      const modified = Math.ceil((await stat(join(places.root, "data", "a.bin"))).mtimeMs / 1000) * 1000;
      const response = await fetch(url("data/b.bin"));
      const etagChecksum = response.headers.get("etag") as string;
      const webModified = Date.parse(response.headers.get("last-modified") as string);
      await response.arrayBuffer();
      const at = (location: string, number: number, more: object = {}) => ({
        ...{ location, offset: number * BYTES, length: BYTES },
        ...more,
      });
      const refs = [
        at(file("data/a.bin"), 0),
        at(file("data/a.bin"), 3, { lastModified: modified }),
        at(url("data/b.bin"), 1),
        at(url("data/b.bin"), 2, { etagChecksum }),
        at(url("data/b.bin"), 3, { lastModified: webModified }),
        // From here on, refused or failing.
        at(file("data/a.bin"), 0, { lastModified: modified - 1000_000 }),
        at(url("data/b.bin"), 0, { etagChecksum: '"another"' }),
        at(url("data/b.bin"), 0, { lastModified: webModified - 1000_000 }),
        at(file("data/none.bin"), 0),
        at(url("data/none.bin"), 0),
        at(file("data/a.bin"), 100),
        at(url("data/b.bin"), 100),
        at(file("secret/a.bin"), 0),
        at(url("other/b.bin"), 0),
      ];
      const repository = await createVirtual(icechunk, places, specVersion, refs);
      const server = await serve(t, repository, places.allow);
      const rights = [1000, 1000 + 3 * COUNT, 2000 + COUNT, 2000 + 2 * COUNT, 2000 + 3 * COUNT];
      for (const [index, first] of rights.entries()) {
        t.same(await answerOf(server, index), range(first), `chunk ${index}`);
        // Icechunk asks web servers with `If-Match` without quotes, which none understands.
        if (refs[index]?.location.startsWith("http") && "etagChecksum" in refs[index]!) continue;
        const [value] = Object.values(await repository.read({ branch: "main" }, [`v/c/${index}`]));
        t.same(
          [...new Int32Array(Uint8Array.from(value!).buffer)],
          range(first),
          `chunk ${index} by Icechunk`,
        );
      }
      for (let index = rights.length; index < refs.length; index++) {
        t.equal(await answerOf(server, index), 500, `chunk ${index} ${JSON.stringify(refs[index])}`);
        // Icechunk itself may read all places, and fails at what has changed or is not there.
        if (index < refs.length - 2)
          await t.rejects(
            repository.read({ branch: "main" }, [`v/c/${index}`]),
            `chunk ${index} by Icechunk`,
          );
      }
      t.equal(await answerOf(server, refs.length), 404, "a chunk without reference");
      t.equal(origin.count({ key: "other/b.bin" }), 0, "a place that is not allowed is not asked for");

      await writeFile(join(places.root, "data", "a.bin"), numbers(5000));
      origin.put("data/b.bin", numbers(6000), {
        etag: '"new"',
        lastModified: new Date(Date.now() + 5_000).toUTCString(),
      });
      for (const index of [1, 3, 4])
        t.equal(await answerOf(server, index), 500, `chunk ${index} has changed`);
      const log = JSON.stringify(server.lines);
      t.match(log, /a\.bin/, "the log names the place that has changed");

      const closed = await serve(t, repository, []);
      for (const index of refs.keys())
        t.equal(await answerOf(closed, index), 500, `chunk ${index}, not allowed`);
      t.equal((await closed.get("/datasets/x/zarr3/own/c/0")).status, 200, "chunks of the repository's own");
    },
  );
}

t.test("locations that are compressed with a dictionary", { skip }, async (t) => {
  const icechunk = await openIcechunk(t);
  const places = await createPlaces(t);
  const { file, url, root } = places;
  const refs = Array.from({ length: 1500 }, (_, index) => ({
    location:
      index % 3 === 0
        ? url("data/b.bin")
        : file(`data/series/${index % 40}/é file ${index}.bin`.replaceAll(" ", "%20")),
    offset: (index % 8) * BYTES,
    length: BYTES,
  }));
  for (const [index] of refs.entries()) {
    if (index % 3 === 0) continue;
    await mkdir(join(root, "data", "series", String(index % 40)), { recursive: true });
    await writeFile(
      join(root, "data", "series", String(index % 40), `é file ${index}.bin`),
      numbers(index * 1000),
    );
  }
  const repository = await createVirtual(icechunk, places, 2, refs);
  const server = await serve(t, repository, places.allow);
  const wrong: number[] = [];
  for (const index of refs.keys()) {
    const first = (index % 3 === 0 ? 2000 : index * 1000) + (index % 8) * COUNT;
    const answer = await answerOf(server, index);
    if (JSON.stringify(answer) !== JSON.stringify(range(first))) wrong.push(index);
  }
  t.same(wrong.slice(0, 10), [], `${wrong.length} are wrong`);
});

t.test("locations below named containers", { skip }, async (t) => {
  const icechunk = await openIcechunk(t);
  const places = await createPlaces(t);
  const repository = await createVirtual(icechunk, places, 2, [
    { location: places.file("data/a.bin"), offset: 0, length: BYTES },
  ]);
  await repository.inflate();
  const container = (name: string, folder: string) => ({
    name,
    url_prefix: places.file(folder),
    store: { local_file_system: join(places.root, folder) },
  });
  await setConfiguration(repository, {
    virtual_chunk_containers: { here: container("here", "data/"), hidden: container("hidden", "secret/") },
  });
  await repository.deflate();
  const ref = (index: number, location: string) => ({
    index: [index],
    location,
    offset: BYTES,
    length: BYTES,
  });
  await repository.commit("named", [
    array("v", [COUNT * 4], [COUNT]),
    { virtual: "v", refs: [ref(1, "vcc://here/a.bin"), ref(2, "vcc://hidden/a.bin")] },
  ]);
  const server = await serve(t, repository, places.allow);
  t.same(await answerOf(server, 0), range(1000));
  t.same(await answerOf(server, 1), range(1000 + COUNT));
  t.equal(await answerOf(server, 2), 500, "a container that is not allowed");
  t.equal(await answerOf(server, 3), 404);
  const open = await serve(t, repository, [`${places.root}/`]);
  // Not compared with Icechunk's own library, which drops the names of containers, and then finds these files only now and then.
  t.same(await answerOf(open, 1), range(1000 + COUNT));
  t.same(await answerOf(open, 2), range(9000 + COUNT));
});
