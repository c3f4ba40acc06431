import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import type { Run } from "../cli/run-program.js";
import { EXPECTED_ROWS, prepareRows, ROWS, serveRows } from "./serve-rows.js";

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

interface Served {
  readonly run: Run;
  /** Requests all rows, some at a time. A wrong answer fails the test. @returns Rows that were in the cache. */
  askAll(): Promise<number>;
  /** Lines about the cache in the log of the program. */
  said(): string[];
  /** Answer of /readyz. */
  readiness(): Promise<unknown>;
  /** Path of the file with the chunks. */
  dataFile(): string;
}

async function serve(t: Test, cacheDir?: string, args: readonly string[] = []): Promise<Served> {
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
    run,
    async askAll() {
      let hits = 0;
      for (let first = 0; first < ROWS; first += 16) {
        const some = await Promise.all(Array.from({ length: 16 }, (_, n) => ask(first + n)));
        hits += some.filter(Boolean).length;
      }
      return hits;
    },
    said: () =>
      run
        .stderr()
        .split("\n")
        .filter((line) => line.includes("chunk cache"))
        .map((line) => (JSON.parse(line) as { msg: string }).msg),
    readiness: async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).json(),
    dataFile() {
      const store = readdirSync(cache).find((name) => /chunks-[0-9a-f]+$/.test(name)) as string;
      return join(cache, store, "data.mdb");
    },
  };
}

/** Requests all rows until all come from the cache. */
async function filled({ askAll }: Served): Promise<void> {
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
