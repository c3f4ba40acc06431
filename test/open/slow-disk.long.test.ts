import { execFileSync, spawnSync } from "node:child_process";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import { sourceReadSeconds } from "../../src/stores/file-calls.js";
import { type FaultMount, faultMountMissing, mountFaults } from "../support/fault-mount.js";
import { startServer } from "../support/servers/start-server.js";
import { makeDirectory, makeOld, writeFiles, zarray, zgroup } from "../support/write-store.js";

const CHUNKS = 6;
const chunkOf = (key: number) => Buffer.alloc(4_000, key + 1);

/** Reason why an ext4 on a file of a failing file system cannot be mounted; false if it can. */
function slowDiskMissing(): string | false {
  const why = faultMountMissing();
  if (why !== false) return why;
  if (process.getuid?.() !== 0) return "skipped, because only root can mount a loop device";
  return spawnSync("mkfs.ext4", ["-V"]).error === undefined
    ? false
    : "skipped, because mkfs.ext4 is not there";
}

/** Creates a store on an ext4 of its own. Rules of the mount for `/disk` make its disk slow. */
async function mountSlowDisk(t: Test, mount: FaultMount): Promise<string> {
  const content = await makeDirectory(t);
  const directory = await makeDirectory(t);
  const chunks = Array.from({ length: CHUNKS }, (_, key) => [`v/${key}`, chunkOf(key)] as const);
  const array = { ...zarray, shape: [4_000 * CHUNKS], chunks: [4_000] };
  await writeFiles(content, { ".zgroup": zgroup, "v/.zarray": array, ...Object.fromEntries(chunks) });
  const disk = join(mount.behind, "disk");
  execFileSync("mkfs.ext4", ["-q", "-O", "^has_journal", "-d", content, disk, "4M"], { stdio: "ignore" });
  await makeOld(disk);
  execFileSync("mount", ["-o", "ro,loop", join(mount.directory, "disk"), directory]);
  t.teardown(() => spawnSync("umount", [directory]));
  return directory;
}

/** Counts the reads of this process by their way. `/metrics` may repeat an older text. */
function readsByWay(): { direct: number; threads: number } {
  const count = (way: "direct" | "threads") =>
    sourceReadSeconds[way].counts.reduce((sum, each) => sum + each, 0);
  return { direct: count("direct"), threads: count("threads") };
}

t.test(
  "a disk that becomes slow is left to other threads by the server",
  { skip: slowDiskMissing() },
  async (t) => {
    const mount = await mountFaults(t);
    const location = await mountSlowDisk(t, mount);
    // From now on in memory, like all inodes.
    for (const key of [0, 1]) t.ok(chunkOf(key).equals(await readFile(join(location, `v/${key}`))));
    for (let key = 2; key < CHUNKS; key++) await stat(join(location, `v/${key}`));
    const server = await startServer(t, {
      datasets: [{ id: "d", location, immutable: true, encoding: {}, variables: {} }],
    });
    const get = async (key: number) => {
      const answer = await server.get(`/datasets/d/zarr/v/${key}`);
      t.same([answer.status, Buffer.from(await answer.arrayBuffer())], [200, chunkOf(key)]);
    };
    await get(0);
    const first = readsByWay();
    await get(1);
    const quick = readsByWay();
    t.same(quick, { ...first, direct: first.direct + 1 });
    await mount.fail("slow:0.2 read /disk");
    await get(2);
    t.same(readsByWay(), { ...quick, direct: quick.direct + 1 }, "the slow one");
    for (let key = 3; key < CHUNKS; key++) await get(key);
    t.same(readsByWay(), { direct: quick.direct + 1, threads: quick.threads + CHUNKS - 3 });
    await mount.fail();
  },
);
