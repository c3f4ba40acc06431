import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { idOf } from "../../src/cache/chunk-cache.js";
import { openLmdbStore } from "../../src/cache/lmdb-store.js";
import { cacheStamp } from "../../src/cache/open-cache.js";
import { STORED_HEADER_BYTES } from "../../src/cache/stored-value.js";
import { packageVersion } from "../../src/observe/versions.js";
import { VISITOR_DATASET } from "./chaos-arrays.js";
import { CACHE_BYTES } from "./chaos-server.js";
import { type ChaosEvent, configDocument, pick, type Stage } from "./stage.js";

/** A reload that was asked for is done by then. */
const RELOAD_GRACE_MS = 6_000;
/** How long the end of a process may be felt. */
const KILL_GRACE_MS = 1_500;
/** What becomes of requests that are with a process when it is killed. */
const KILL_TROUBLES = ["no answer", "broken off"] as const;
/** In each file that is damaged. */
const FLIPPED_BITS = 40;

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
    // After an orderly end, or the next start would begin with a new one.
    happens: (stage) => restart(stage, "SIGTERM", () => damageCache(stage)),
  },
  {
    name: "program ended and started again",
    weight: 1,
    isRestart: true,
    happens: (stage) => restart(stage, "SIGTERM"),
  },
];

/** Flips a bit of some stored chunks. LMDB's own pages stay as they are: a damaged one may end the program. */
async function damageCache({ server, random }: Stage): Promise<void> {
  for (const path of await cacheFiles(server.cacheFolder)) {
    const bytes = await readFile(path);
    const options = { maxBytes: CACHE_BYTES, stamp: cacheStamp(packageVersion) };
    const store = openLmdbStore(dirname(path), options);
    const places = store.sample(FLIPPED_BITS).map(({ key }) => {
      const stored = store.read({ bytes: key, id: idOf(key) })!;
      return (
        bytes.indexOf(stored) +
        STORED_HEADER_BYTES +
        Math.floor(random() * (stored.length - STORED_HEADER_BYTES))
      );
    });
    await store.close();
    for (const at of places) bytes[at]! ^= 1 << Math.floor(random() * 8);
    await writeFile(path, bytes);
  }
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
