import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { createRandom } from "../../bench/random.js";
import { effort } from "../support/effort.js";
import { childrenOf } from "../support/servers/process-table.js";
import { PROGRAM, type Run, runScript } from "../support/servers/run-program.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../support/write-store.js";

const ROWS = 192;
const ROW_BYTES = 48 * 1024;
const ROWS_PER_STORED_CHUNK = 16;

/** Makes a row of the array, independently of the program. */
function rowOf(row: number): Buffer {
  const bytes = Buffer.alloc(ROW_BYTES);
  for (let i = 0; i < ROW_BYTES; i += 4)
    bytes.writeUInt32LE(Math.imul(row * ROW_BYTES + i + 1, 2654435761) >>> 0, i);
  return bytes;
}

/** Rows of the array. Each is one served chunk, `ROW.0`. */
const EXPECTED_ROWS = Array.from({ length: ROWS }, (_, row) => rowOf(row));

/** Writes a store that is rechunked, and a configuration for it. */
async function prepareRows(t: Test, cacheSize: number, cacheDir = "cache"): Promise<string> {
  const directory = await makeDirectory(t);
  const chunks = Array.from({ length: ROWS / ROWS_PER_STORED_CHUNK }, (_, n): [string, Buffer] => [
    `store/v/${n}.0`,
    Buffer.concat(EXPECTED_ROWS.slice(n * ROWS_PER_STORED_CHUNK, (n + 1) * ROWS_PER_STORED_CHUNK)),
  ]);
  await writeFiles(directory, {
    "store/.zgroup": zgroup,
    "store/v/.zarray": { ...zarray, shape: [ROWS, ROW_BYTES], chunks: [ROWS_PER_STORED_CHUNK, ROW_BYTES] },
    ...Object.fromEntries(chunks),
    "config.json": {
      cacheSize,
      cacheDir,
      datasets: { d: { location: "store", encoding: { chunks: [1, ROW_BYTES] } } },
    },
  });
  return directory;
}

/** Runs the program on the rows. */
async function serveRows(
  directory: string,
  args: readonly string[] = [],
): Promise<{ readonly run: Run; readonly port: number }> {
  const run = runScript(PROGRAM, [
    "serve",
    ...["--config", join(directory, "config.json"), "--port", "0", "--workers", "1"],
    ...["--log-level", "warn", ...args],
  ]);
  await run.says("zpublish ready on ");
  const [, port] = /ready on http:\/\/[^:]+:(\d+)/.exec(run.stdout()) ?? [];
  return { run, port: Number(port) };
}

const CACHE_BYTES = 16 * 1024 ** 2;

function mount(directory: string, options: string): void {
  execFileSync("mount", ["-t", "tmpfs", "-o", options, "none", directory], { stdio: "pipe" });
}

function unmount(directory: string): void {
  execFileSync("umount", ["-l", directory]);
}

/** Tells for tap's `skip` why no file system can be mounted; false if one can. */
function mountMissing(): string | false {
  const directory = mkdtempSync(join(tmpdir(), "zpublish-disk-"));
  try {
    mount(directory, "size=4k");
    unmount(directory);
    return false;
  } catch (error) {
    const problem = `no file system can be mounted here: ${(error as Error).message.trim().replaceAll("\n", ": ")}`;
    if (process.env.ZPUBLISH_REQUIRE_CLIENTS === "1")
      throw new Error(`ZPUBLISH_REQUIRE_CLIENTS=1, but ${problem}`);
    return `skipped, because ${problem}`;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const skip = mountMissing();

/** Mounts a file system until the end of the test. */
function mountDisk(t: Test, options: string): string {
  const directory = mkdtempSync(join(tmpdir(), "zpublish-disk-"));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  mount(directory, options);
  t.teardown(() => unmount(directory));
  return directory;
}

async function serve(t: Test, cacheDir?: string, args: readonly string[] = []) {
  const directory = await prepareRows(t, CACHE_BYTES, cacheDir);
  const { run, port } = await serveRows(directory, args);
  t.teardown(async () => {
    run.child.kill("SIGKILL");
    await run.ended;
  });
  const cache = cacheDir ?? join(directory, "cache");

  async function ask(row: number): Promise<boolean> {
    const answer = await fetch(`http://127.0.0.1:${port}/datasets/d/zarr/v/${row}.0`);
    const bytes = Buffer.from(await answer.arrayBuffer());
    if (answer.status !== 200 || !bytes.equals(EXPECTED_ROWS[row] as Buffer)) {
      t.fail(`row ${row}: ${answer.status}, ${bytes.length} bytes`);
    }
    return answer.headers.get("x-cache") === "HIT";
  }

  return {
    /** Requests all rows, some at a time. A wrong answer fails the test. @returns Rows that were in the cache. */
    async askAll() {
      let hits = 0;
      for (let first = 0; first < ROWS; first += 16) {
        const some = await Promise.all(Array.from({ length: 16 }, (_, n) => ask(first + n)));
        hits += some.filter(Boolean).length;
      }
      return hits;
    },
    /** Lines about the cache in the log of the program. */
    said: () =>
      run
        .stderr()
        .split("\n")
        .filter((line) => line.includes("chunk cache"))
        .map((line) => (JSON.parse(line) as { msg: string }).msg),
    readiness: async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).json(),
    /** Path of the file with the chunks. */
    dataFile() {
      const store = readdirSync(cache).find((name) => /chunks-[0-9a-f]+$/.test(name)) as string;
      return join(cache, store, "data.mdb");
    },
  };
}

/** Requests all rows until all come from the cache. */
async function filled({ askAll }: { readonly askAll: () => Promise<number> }): Promise<void> {
  while ((await askAll()) < ROWS) await sleep(20);
}

t.test("a cache whose directory is removed under load starts over, and logs it once", async (t) => {
  const served = await serve(t);
  await filled(served);
  rmSync(join(served.dataFile(), "../.."), { recursive: true });
  while (served.said().length === 0) await served.askAll();
  await filled(served);
  t.same(served.said(), ["chunk cache: its directory was removed or replaced; it starts over"]);
  t.ok(readFileSync(served.dataFile()).length > 0);
});

t.test("on a full disk all is served, and it is logged when that begins and ends", { skip }, async (t) => {
  const disk = mountDisk(t, "size=20m");
  writeFileSync(join(disk, "other"), Buffer.alloc(16 * 1024 ** 2));
  const served = await serve(t, disk);
  for (let i = 0; i < 4; i++) await served.askAll();
  t.match(served.said(), [/writing failed: no space left/]);
  t.equal(served.said().length, 1);
  t.match(await served.readiness(), { ready: true, checks: { cache: "not writing" } });
  rmSync(join(disk, "other"));
  while (served.said().length === 1) await sleep(500).then(() => served.askAll());
  t.same(served.said().slice(1), ["chunk cache: writing works again"]);
  t.match(await served.readiness(), { ready: true, checks: { cache: "ok" } });
});

t.test("on a read-only disk all is served, and it is logged once", { skip }, async (t) => {
  const served = await serve(t, mountDisk(t, "ro"));
  for (let i = 0; i < 2; i++) t.equal(await served.askAll(), 0);
  t.match(served.said(), [/cannot be used, every chunk will be made again: EROFS/]);
  t.equal(served.said().length, 1);
});

const KILLS_OF_SEVERAL = 1 + effort(5);

/** A third of all chunks fits: the others displace them. */
const THIRD_BYTES = (ROWS * ROW_BYTES) / 3;
const CONNECTIONS = 8;

interface Tally {
  hits: number;
  misses: number;
  /** Descriptions of wrong answers. */
  readonly wrong: string[];
}

/** Requests one row after the other until the server is gone, or `until` is true. Some rows are requested more often. */
async function hammer(port: number, random: () => number, tally: Tally, until: () => boolean): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    while (!until()) {
      const row = Math.floor(random() ** 2 * ROWS);
      const asking = request({ agent, host: "127.0.0.1", port, path: `/datasets/d/zarr/v/${row}.0` });
      asking.end();
      const [answer] = await once(asking, "response");
      const parts: Buffer[] = [];
      for await (const part of answer) parts.push(part);
      const bytes = Buffer.concat(parts);
      if (answer.statusCode !== 200 || !bytes.equals(EXPECTED_ROWS[row] as Buffer)) {
        tally.wrong.push(`row ${row}: ${answer.statusCode}, ${bytes.length} bytes`);
      } else if (answer.headers["x-cache"] === "HIT") tally.hits++;
      else tally.misses++;
    }
  } catch (error) {
    // Killed during an answer: there was none.
    if (!["ECONNRESET", "ECONNREFUSED", "EPIPE"].includes((error as NodeJS.ErrnoException).code ?? ""))
      throw error;
  } finally {
    agent.destroy();
  }
}

/** Waits until so many more rows were answered, since starting takes longest. Not called if the kill is to hit the start. */
async function answered(tally: Tally, more: number): Promise<void> {
  const enough = tally.hits + tally.misses + more;
  for (let waitedMs = 0; tally.hits + tally.misses < enough && waitedMs < 20_000; waitedMs += 10)
    await sleep(10);
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

t.test("killed one by one or all at once, several processes never answer a wrong byte", async (t) => {
  const directory = await prepareRows(t, THIRD_BYTES);
  const random = createRandom(42);
  const tally: Tally = { hits: 0, misses: 0, wrong: [] };
  for (let cycle = 0; cycle < KILLS_OF_SEVERAL; cycle++) {
    const { run, port } = await serveRows(directory, ["--processes", "2"]);
    const pid = run.child.pid as number;
    let isOver = false;
    // A client whose process is killed asks the other one.
    const asking = Array.from({ length: CONNECTIONS }, async () => {
      while (!isOver) await hammer(port, random, tally, () => isOver);
    });
    if (cycle % 4 > 0) await answered(tally, CONNECTIONS);
    await sleep(20 + random() * 200);
    kill(childrenOf(pid)[Math.floor(random() * 2)] as number);
    await sleep(50 + random() * 200);
    const all = childrenOf(pid);
    if (cycle % 2 === 0) run.child.kill("SIGKILL");
    for (const child of all) kill(child);
    isOver = true;
    await Promise.all(asking);
    run.child.kill("SIGKILL");
    // Processes that were being started as replacements end when their parent is gone.
    await run.ended;
  }
  t.same(tally.wrong, []);
  t.ok(
    tally.hits > KILLS_OF_SEVERAL && tally.misses > KILLS_OF_SEVERAL,
    `${tally.hits} hits, ${tally.misses} misses`,
  );
});
