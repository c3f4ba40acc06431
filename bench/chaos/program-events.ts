import { readSync, writeSync } from "node:fs";
import { open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { FLAG_OVERFLOW, PAGE_HEADER_BYTES, readPageSize, uint64 } from "../../src/cache/lmdb-file.js";
import { MAGIC } from "../../src/cache/stored-value.js";
import { VISITOR_DATASET } from "./chaos-arrays.js";
import { type ChaosEvent, configDocument, pick, type Stage } from "./stage.js";

/** A reload that was asked for is done by then. */
const RELOAD_GRACE_MS = 6_000;
/** How long the end of a process may be felt. */
const KILL_GRACE_MS = 1_500;
/** What becomes of requests that are with a process when it is killed. */
const KILL_TROUBLES = ["no answer", "broken off"] as const;
/** Of each file that is damaged. */
const FLIPPED_BITS = 40;
/** For a file that does not tell. */
const SMALLEST_PAGE_BYTES = 4_096;

/** What happens to the program, its configuration and its cache. */
export const PROGRAM_EVENTS: readonly ChaosEvent[] = [
  {
    name: "cache removed",
    weight: 1,
    async happens({ server }) {
      // The program may make its directory again meanwhile.
      await rm(server.cacheFolder, { recursive: true, force: true, maxRetries: 5 });
    },
  },
  {
    name: "chunks in the cache damaged under the program",
    weight: 1,
    happens: async (stage) => ((await damageChunks(stage)) ? undefined : false),
  },
  {
    name: "reload with another configuration",
    weight: 4,
    async happens(stage) {
      const { judge, server, random } = stage;
      const hasVisitor = random() < 0.7;
      const visitorCoding = random() < 0.5 ? "zstd" : "gzip";
      const settlePresence = judge.configured.get(VISITOR_DATASET)!.begin(hasVisitor);
      const settleCoding = judge.coding.begin(visitorCoding);
      stage.config = { hasVisitor, visitorCoding };
      await server.writeConfig(configDocument(stage));
      server.reload();
      settlePresence(RELOAD_GRACE_MS);
      settleCoding(RELOAD_GRACE_MS);
      await sleep(1_500);
    },
  },
  {
    name: "reload with a configuration that is no good",
    weight: 2,
    async happens(stage) {
      const { server, random } = stage;
      const bad = ["{", '{"datasets": {"x": 5}}', '{"port": "many"}', '{"datasets": {"a": "/no/such"}}'];
      await server.writeConfig(pick(random, bad));
      server.reload();
      await sleep(1_500);
      await server.writeConfig(configDocument(stage));
    },
  },
  {
    name: "server process killed",
    weight: 3,
    async happens({ judge, server, random }) {
      const pids = server.serverProcesses();
      if (pids.length === 0) return false;
      const settle = judge.excuse("server process killed", KILL_TROUBLES);
      process.kill(pick(random, pids), "SIGKILL");
      settle(KILL_GRACE_MS);
      await sleep(2_000);
      return;
    },
  },
  {
    name: "program killed and started again",
    weight: 1,
    isRestart: true,
    happens: (stage) => restart(stage, "SIGKILL"),
  },
  {
    name: "cache damaged while nobody runs",
    weight: 1,
    isRestart: true,
    happens: (stage) =>
      restart(stage, stage.random() < 0.5 ? "SIGKILL" : "SIGTERM", () => damageCache(stage)),
  },
  {
    name: "program ended and started again",
    weight: 1,
    isRestart: true,
    happens: (stage) => restart(stage, "SIGTERM"),
  },
];

/**
 * Damage anywhere under a running server, which has mapped the file: it may end by that, where it is the trees that are hit. Not part
 * of a run unless it is asked for.
 */
export const LIVE_DAMAGE: ChaosEvent = {
  name: "bytes of the cache flipped under the program",
  weight: 2,
  happens: damageCache,
};

/** Turns bits of the cache's files over, anywhere. */
async function damageCache({ server, random }: Stage): Promise<void> {
  await damageFiles(server.cacheFolder, random, () => true);
}

/**
 * Turns bits of chunks over that are longer than a page, behind their first page: a program that has mapped the file finds its way
 * in it as before.
 * @returns Whether there was one.
 */
async function damageChunks({ server, random }: Stage): Promise<boolean> {
  return (await damageFiles(server.cacheFolder, random, isWithinChunk)) > 0;
}

/**
 * Whether a page is not the first of a long value, but another one, and that value is a chunk. Pages that lmdb finds its way by, and the
 * first of a value, begin with their number and have few flags; a value has its length in pages and its bytes next (`mdb.c`, MDB_page).
 */
function isWithinChunk(file: number, index: number, pageSize: number): boolean {
  const head = Buffer.alloc(PAGE_HEADER_BYTES + 4);
  for (let first = index; first > 1; first--) {
    readSync(file, head, 0, head.length, first * pageSize);
    const flags = head.readUInt16LE(18);
    if (uint64(head, 0) !== first || flags >= 0x100) continue;
    const isChunk = flags === FLAG_OVERFLOW && head.readUInt32LE(PAGE_HEADER_BYTES) === MAGIC;
    return isChunk && first < index && index < first + head.readUInt32LE(20);
  }
  return false;
}

/** @returns How many bits were turned over. */
async function damageFiles(
  folder: string,
  random: () => number,
  mayDamage: (file: number, index: number, pageSize: number) => boolean,
): Promise<number> {
  let flipped = 0;
  for (const path of await cacheFiles(folder)) {
    // The program may put it away meanwhile.
    const handle = await open(path, "r+").catch(() => undefined);
    if (handle === undefined) continue;
    try {
      const { size } = await handle.stat();
      const pageSize = await readPageSize(handle).catch(() => SMALLEST_PAGE_BYTES);
      const page = Buffer.alloc(pageSize);
      for (let i = 0; i < FLIPPED_BITS; i++) {
        const index = Math.floor((random() * size) / pageSize);
        // All at once, or the page may have become another one.
        const byteLength = readSync(handle.fd, page, 0, pageSize, index * pageSize);
        if (byteLength === 0 || !mayDamage(handle.fd, index, pageSize)) continue;
        const at = Math.floor(random() * byteLength);
        page[at]! ^= 1 << Math.floor(random() * 8);
        writeSync(handle.fd, page, at, 1, index * pageSize + at);
        flipped++;
      }
    } finally {
      await handle.close();
    }
  }
  return flipped;
}

/** Ends the program, and starts it again where it was. @param meanwhile What is done while nothing runs. */
async function restart(
  stage: Stage,
  signal: "SIGTERM" | "SIGKILL",
  meanwhile: () => Promise<void> = async () => {},
): Promise<void> {
  const { judge, server, note } = stage;
  // What has begun is finished by a program that is asked to end.
  const troubles = signal === "SIGTERM" ? (["no answer", "503"] as const) : KILL_TROUBLES;
  const settle = judge.excuse(`program ended by ${signal}`, troubles);
  const status = await server.end(signal);
  const expected = signal === "SIGTERM" ? 0 : "SIGKILL";
  if (status !== expected)
    note(`FAILED: after ${signal}, expected to end with ${expected}, ended with ${status}`);
  await meanwhile();
  await server.start();
  settle(500);
}

async function cacheFiles(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder, { recursive: true }).catch(() => [] as string[]);
  return names.filter((name) => name.endsWith("data.mdb")).map((name) => join(folder, name));
}
