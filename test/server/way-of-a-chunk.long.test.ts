import { mkdir, writeFile } from "node:fs/promises";
import { Session } from "node:inspector/promises";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import t, { type Test } from "tap";
import { IDLE_POOL_STATS } from "../../src/pool/encode-pool.js";
import { callModule, createTaskRunner } from "../../src/pool/run-chunk-task.js";
import { writeWithH5wasm } from "../formats/hdf5/h5wasm-files.js";
import { startServer } from "../support/servers/start-server.js";
import { makeOld } from "../support/write-store.js";

// The files that one request passes, as a reader would walk them: CONTRIBUTING.md names those of a warm chunk.

/** Files of src at most. A cold chunk's are those of the server's thread and of the worker, without the pool between them. */
const LIMITS = { chunk: 20, document: 16, cold: 60 };

const SRC = fileURLToPath(new URL("../../src/", import.meta.url));

/** Starts to count the own files of which `run` executes a function, workers included. */
async function watchFiles(t: Test) {
  const session = new Session();
  session.connect();
  t.teardown(() => session.disconnect());
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  const take = async () => (await session.post("Profiler.takePreciseCoverage")).result;
  return async (run: () => Promise<unknown>): Promise<string[]> => {
    await take();
    await run();
    return (await take())
      .filter(({ functions }) => functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0))
      .map(({ url }) => (url.startsWith("file:") ? fileURLToPath(url) : ""))
      .filter((path) => path.startsWith(SRC))
      .map((path) => path.slice(SRC.length).replaceAll(sep, "/").replace(/js$/, "ts"))
      .sort();
  };
}

/** Serves an HDF5 file in larger chunks, made in this thread instead of a worker. */
async function setup(t: Test) {
  const { bytes } = await writeWithH5wasm({
    libver: "earliest",
    shape: [64, 64],
    maxShape: [64, 64],
    chunkShape: [16, 16],
    isDeflated: true,
  });
  const directory = t.testdir();
  const file = join(directory, "data.h5");
  await writeFile(file, bytes);
  await makeOld(directory);
  await mkdir(join(directory, "cache"));
  const run = createTaskRunner({ mayBlock: true, withChecksums: true });
  const { get } = await startServer(
    t,
    {
      datasets: [
        {
          id: "d",
          location: file,
          immutable: false,
          encoding: { chunks: [32, 32] },
          variables: {},
        },
      ],
      cache: { directory: join(directory, "cache"), maxBytes: 2 ** 26 },
    },
    {
      createPool: () => ({
        stats: { ...IDLE_POOL_STATS, threads: 1 },
        makeChunk: (task) => run(task),
        callModule,
        recycle() {},
        close: async () => {},
      }),
    },
  );
  const read = async (path: string) => {
    const response = await get(`/datasets/d/zarr/${path}`);
    await response.arrayBuffer();
    return response.headers.get("x-cache");
  };
  return { read, passed: await watchFiles(t) };
}

t.test("a request passes few files", async (t) => {
  const { read, passed } = await setup(t);
  /** Files of each of several equal requests: a write of the cache or a timer may come between. */
  const always = async (path: string, xCache: string | null) => {
    await read(path);
    let common: string[] | undefined;
    for (let i = 0; i < 50; i++) {
      const files = await passed(async () => t.equal(await read(path), xCache));
      common = common?.filter((file) => files.includes(file)) ?? files;
    }
    return common ?? [];
  };
  await read("data/0.0");
  const cold = await passed(async () => t.equal(await read("data/1.1"), "MISS"));
  const walks = {
    chunk: await always("data/0.0", "HIT"),
    document: await always("data/.zarray", null),
    cold,
  };
  for (const [name, files] of Object.entries(walks)) {
    t.comment(`${name}: ${files.length} files: ${files.join(" ")}`);
    t.ok(files.length <= LIMITS[name as keyof typeof LIMITS], `${name}: ${files.length} files`);
  }
});
