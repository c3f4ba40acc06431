import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { type FaultMount, faultMountMissing, mountFaults } from "../support/fault-mount.js";
import { PROGRAM, type Run, runScript } from "../support/servers/run-program.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../support/write-store.js";

const skip = faultMountMissing();
const CHUNKS = 8;

/** Returns the bytes of a chunk, which differ between stores. */
function chunkOf(store: number, chunk: number): Uint8Array {
  return Buffer.alloc(4_000, 16 * store + chunk);
}

function storeFiles(store: number) {
  const chunks = Array.from({ length: CHUNKS }, (_, n) => [`v/${n}`, chunkOf(store, n)] as const);
  return {
    ".zgroup": zgroup,
    "v/.zarray": { ...zarray, shape: [4_000 * CHUNKS], chunks: [4_000] },
    ...Object.fromEntries(chunks),
  };
}

interface Served {
  readonly mount: FaultMount;
  readonly run: Run;
  readonly local: string;
  get(path: string): Promise<{ status: number; bytes: Buffer }>;
}

/**
 * Starts the program with stores `a` (and `recoded`, the same recompressed) and `c` on a file system that fails, and `b` on a
 * local one.
 */
async function serve(t: Test, threads = 16, args: readonly string[] = []): Promise<Served> {
  const mount = await mountFaults(t);
  const local = await makeDirectory(t);
  await writeFiles(mount.behind, prefixed("a", storeFiles(1)));
  await writeFiles(mount.behind, prefixed("c", storeFiles(3)));
  await writeFiles(local, prefixed("b", storeFiles(2)));
  const at = (name: string) => ({ location: join(mount.directory, name), variables: {}, encoding: {} });
  await writeFiles(local, {
    "config.json": {
      datasets: {
        a: at("a"),
        recoded: { ...at("a"), encoding: { compressor: { id: "zstd", level: 1 } } },
        c: at("c"),
        b: join(local, "b"),
        b2: { location: join(local, "b"), encoding: { chunks: [2_000] } },
      },
    },
  });
  const run = runScript(
    PROGRAM,
    [
      "serve",
      ...["--config", join(local, "config.json"), "--port", "0", "--cache-dir", join(local, "cache")],
      ...["--source-timeout", "1", "--refresh", "1", "--workers", "1", ...args],
    ],
    { env: { UV_THREADPOOL_SIZE: String(threads) } },
  );
  t.teardown(async () => {
    run.child.kill("SIGKILL");
    await run.ended;
  });
  await run.says("zpublish ready on ");
  const [, url = ""] = /ready on (\S+)/.exec(run.stdout()) ?? [];
  const get = async (path: string) => {
    const response = await fetch(`${url}/datasets/${path}`);
    return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()) };
  };
  return { mount, run, local, get };
}

function prefixed<T>(prefix: string, files: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(files).map(([name, content]) => [`${prefix}/${name}`, content]));
}

/** Checks every chunk of a store that is served as it is stored. */
async function checkWhole(t: Test, { get }: Served, id: string, store: number): Promise<void> {
  const answers = await Promise.all(Array.from({ length: CHUNKS }, (_, n) => get(`${id}/zarr/v/${n}`)));
  for (const [n, { status, bytes }] of answers.entries()) {
    if (status !== 200 || !bytes.equals(chunkOf(store, n))) {
      t.fail(`${id} chunk ${n}: ${status} ${bytes.subarray(0, 100).toString("latin1")}`);
    }
  }
}

/** Waits until a path answers 200 again. */
async function recovered({ get }: Served, path: string): Promise<void> {
  while ((await get(path)).status !== 200) await sleep(50);
}

for (const operation of ["getattr", "open", "read", "*"]) {
  t.test(
    `while ${operation} of a source hangs, it answers 500 and all others as ever`,
    { skip },
    async (t) => {
      const served = await serve(t);
      const { mount, get, run } = served;
      await checkWhole(t, served, "a", 1);
      await mount.fail(`hang ${operation} /a/v/*`);
      let isDone = false;
      let rounds = 0;
      const hammering = (async () => {
        while (!isDone || rounds < 10) {
          await checkWhole(t, served, "b", 2);
          const made = await get("b2/zarr/v/3");
          if (!made.bytes.equals(chunkOf(2, 1).subarray(2_000))) t.fail(`b2: ${made.status}`);
          rounds++;
        }
      })();
      const keys = Array.from({ length: CHUNKS }, (_, n) => `a/zarr/v/${n}`);
      // Each twice, and once more after the server has noticed that the store does not answer.
      for (const _ of [1, 2]) {
        const answers = await Promise.all([...keys, ...keys].map(get));
        for (const { status, bytes } of answers) {
          // A chunk that the cache serves without checking the source is right.
          if (status !== 200 || !keys.some((_, n) => bytes.equals(chunkOf(1, n)))) {
            t.equal(status, 500, bytes.toString());
            t.notMatch(bytes.toString(), mount.directory);
          }
        }
        t.ok(operation === "read" || answers.some(({ status }) => status === 500));
      }
      await checkWhole(t, served, "c", 3);
      isDone = true;
      await hammering;
      await mount.fail();
      await recovered(served, "a/zarr/v/0");
      await checkWhole(t, served, "a", 1);
      await recovered(served, "recoded/zarr/v/0");
      run.child.kill("SIGTERM");
      t.equal(await run.ended, 0);
    },
  );
}

t.test("with several processes the program exits with 0, even if calls hang", { skip }, async (t) => {
  const { mount, get, run } = await serve(t, 4, ["--processes", "2"]);
  await mount.fail("hang * /a/v/*");
  t.equal((await get("a/zarr/v/0")).status, 500);
  run.child.kill("SIGTERM");
  t.equal(await run.exited, 0);
  // Calls to the mount keep its processes from ending, and so their standard error open.
  await mount.end();
});
