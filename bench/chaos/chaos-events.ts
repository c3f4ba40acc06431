import { existsSync } from "node:fs";
import { open, readdir, rename, rm, stat, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  AWAY_DATASET,
  CHAOS_ARRAYS,
  type ChaosArray,
  type ChaosKey,
  FLAKY_DATASET,
  fileCount,
  POISON_DATASET,
  VISITOR_DATASET,
} from "./chaos-arrays.js";
import { CHUNK_TIMEOUT_SECONDS, type ChaosServer, REFRESH_SECONDS } from "./chaos-server.js";
import type { ChaosStore, WriteMode } from "./chaos-store.js";
import { DEATHS } from "./fault-preload.js";
import { DAMAGED, type Judge } from "./judge.js";
import { ABSENT } from "./row-values.js";
import { now } from "./timeline.js";

/** Until new metadata is served at the latest: a period, and a look that takes its time on a busy machine. */
const REFRESH_GRACE_MS = REFRESH_SECONDS * 1_000 + 4_000;
/** A reload that was asked for is done by then. */
const RELOAD_GRACE_MS = 6_000;
/** How long the end of a process may be felt. */
const KILL_GRACE_MS = 1_500;
/** What becomes of requests that are with a process when it is killed. */
const KILL_TROUBLES = ["no answer", "broken off"] as const;
/** Of each file that is damaged. */
const FLIPPED_BITS = 40;
/** How long a chunk is kept away from workers that one has died of. */
const KEPT_AWAY_MS = 62_000;
/** A writer in place that pauses for longer cannot be told from one that has finished: times of files are in steps of up to so much. */
const NOTICED_PAUSE_MS = 10;
/** An excuse that is taken back. */
const NEVER = Number.NEGATIVE_INFINITY;
/** How long a worker is waited for that takes an order to die. */
const DEATH_WAIT_MS = 3_000;

/** What events happen to. */
export interface Stage {
  readonly server: ChaosServer;
  readonly store: ChaosStore;
  readonly judge: Judge;
  readonly random: () => number;
  /** The next version of each file. */
  readonly versions: Map<string, number>;
  /** Files that something happens to: nothing else may. */
  readonly busyFiles: Set<string>;
  /** Notes what is to be in the report. */
  readonly note: (text: string) => void;
  /** What the configuration says. */
  config: ChaosConfig;
}

/** What of the configuration changes. */
export interface ChaosConfig {
  readonly hasVisitor: boolean;
  readonly visitorCoding: "zstd" | "gzip";
}

/** One thing that happens; resolves when it is over. */
export interface ChaosEvent {
  readonly name: string;
  /** How often, beside others. */
  readonly weight: number;
  /** Whether it starts the program anew: what leaks is then let go. */
  readonly isRestart?: boolean;
  readonly happens: (stage: Stage) => Promise<void>;
}

/** The configuration file. */
export function configDocument(stage: Pick<Stage, "store" | "config">): unknown {
  const { store, config } = stage;
  const datasets: Record<string, { location: string; variables: Record<string, unknown> }> = {};
  for (const array of CHAOS_ARRAYS) {
    const { dataset, path, encoding, rowsPerChunk } = array;
    if (dataset === VISITOR_DATASET && !config.hasVisitor) continue;
    datasets[dataset] ??= { location: store.location(dataset), variables: {} };
    if (encoding === undefined && rowsPerChunk === 1) continue;
    const asked =
      dataset === VISITOR_DATASET ? { compressor: { id: config.visitorCoding, level: 1 } } : encoding;
    datasets[dataset].variables[path] = {
      ...asked,
      ...(rowsPerChunk > 1 ? { chunks: [rowsPerChunk, -1] } : {}),
    };
  }
  return { datasets };
}

function pick<T>(random: () => number, list: readonly T[]): T {
  return list[Math.floor(random() * list.length)]!;
}

/** Does something to a file to which nothing else happens meanwhile. */
async function withFile(
  { random, busyFiles }: Stage,
  use: (array: ChaosArray, file: number) => Promise<void>,
): Promise<void> {
  const { array, file } = pickFile(random, busyFiles);
  const id = fileId(array, file);
  busyFiles.add(id);
  try {
    await use(array, file);
  } finally {
    busyFiles.delete(id);
  }
}

function pickFile(random: () => number, busy: ReadonlySet<string>): { array: ChaosArray; file: number } {
  for (;;) {
    const array = pick(
      random,
      CHAOS_ARRAYS.filter(({ isRewritten, dataset }) => isRewritten && dataset !== AWAY_DATASET),
    );
    const file = Math.floor(random() * fileCount(array));
    if (!array.absentFiles.includes(file) && !busy.has(fileId(array, file))) return { array, file };
  }
}

function fileId(array: ChaosArray, file: number): string {
  return `${array.number}/${file}`;
}

function nextVersion({ versions }: Stage, array: ChaosArray, file: number): number {
  const id = fileId(array, file);
  const version = (versions.get(id) ?? 0) + 1;
  versions.set(id, version);
  return version;
}

function isOf(array: ChaosArray): (key: ChaosKey) => boolean {
  return (key) => key.array === array && key.kind === "chunk";
}

/** A chunk that changes while it is read may be given up: 503, or 500 where it looked corrupt each time. */
async function write(stage: Stage, array: ChaosArray, file: number, mode: WriteMode): Promise<void> {
  const { judge, store } = stage;
  const version = nextVersion(stage, array, file);
  const settleChange = judge.file(array, file).begin(version);
  const settle = judge.excuse(`write (${mode})`, mode === "replace" ? ["503"] : ["500", "503"], isOf(array));
  const settlePause =
    mode === "in place" ? judge.excuse("a writer in place paused", ["torn"], isOf(array)) : undefined;
  const pausedMs = await store.write(array, file, version, mode);
  settleChange();
  settle(250);
  settlePause?.(pausedMs > NOTICED_PAUSE_MS ? 250 : NEVER);
}

/** Files that are written again, all the time. */
export const REWRITES: readonly ChaosEvent[] = (["replace", "in place", "truncating"] as const).map(
  (mode, i) => ({
    name: `chunk rewritten (${mode})`,
    weight: [6, 3, 1][i]!,
    happens: (stage) => withFile(stage, (array, file) => write(stage, array, file, mode)),
  }),
);

/** What happens besides, one after the other. */
export const EVENTS: readonly ChaosEvent[] = [
  {
    name: "chunk truncated for a while",
    weight: 6,
    happens: (stage) =>
      withFile(stage, async (array, file) => {
        const { judge, store, random } = stage;
        const { size } = await stat(store.fileOf(array, file));
        const settle = judge.file(array, file).begin(DAMAGED);
        await store.truncate(array, file, Math.floor(random() * size));
        settle();
        await sleep(200 + random() * 600);
        await write(stage, array, file, "replace");
      }),
  },
  {
    name: "chunk removed for a while",
    weight: 6,
    happens: (stage) =>
      withFile(stage, async (array, file) => {
        const { judge, store, random } = stage;
        const settle = judge.file(array, file).begin(ABSENT);
        await store.remove(array, file);
        settle();
        await sleep(200 + random() * 600);
        await write(stage, array, file, "replace");
      }),
  },
  {
    name: "array of another length",
    weight: 5,
    async happens({ judge, store, random }) {
      const array = pick(
        random,
        CHAOS_ARRAYS.filter(({ fewestRows }) => fewestRows !== undefined),
      );
      const fewest = array.fewestRows!;
      const rows = fewest + Math.floor(random() * (array.rows - fewest + 1));
      const settle = judge.rows.get(array)!.begin(rows);
      await store.writeMetadata(array, rows);
      settle(REFRESH_GRACE_MS);
      await sleep(REFRESH_GRACE_MS / 2);
    },
  },
  {
    name: "dataset gone for a while",
    weight: 3,
    async happens({ judge, store, random }) {
      const isAway = (key: ChaosKey) => key.dataset === AWAY_DATASET;
      const settle = judge.excuse("dataset gone", ["500"], isAway);
      const location = store.location(AWAY_DATASET);
      await rename(location, `${location}.gone`);
      await sleep(500 + random() * 2_500);
      await rename(`${location}.gone`, location);
      // Metadata that could not be read is tried again within a period; a thing found refused is looked at anew.
      settle(REFRESH_GRACE_MS);
      await sleep(1_000);
    },
  },
  ...DEATHS.map(
    (death): ChaosEvent => ({
      name: `worker killed (${death})`,
      weight: 2,
      async happens({ judge, server, note }) {
        const file = join(server.faults, `kill-${death}`);
        const isMade = (key: ChaosKey) => key.kind === "chunk" && key.array?.encoding !== undefined;
        const settle = judge.excuse(`worker killed (${death})`, ["500"], isMade, KEPT_AWAY_MS);
        await writeFile(file, "");
        const deadline = now() + DEATH_WAIT_MS;
        while (existsSync(file) && now() < deadline) await sleep(20);
        if (existsSync(file)) {
          // Nothing was made meanwhile.
          await unlink(file).catch(() => undefined);
          note(`no worker took the order to die (${death})`);
        }
        settle(CHUNK_TIMEOUT_SECONDS * 1_000 + 1_500);
      },
    }),
  ),
  ...(["error", "slow"] as const).map(
    (fault): ChaosEvent => ({
      name: `source fails (${fault})`,
      weight: 2,
      async happens({ judge, server, random }) {
        const file = join(server.faults, `source-${fault}`);
        const isFlaky = (key: ChaosKey) => key.dataset === FLAKY_DATASET;
        // A worker that waits too long for a file is ended, as for any other reason.
        const lastsMs = fault === "slow" ? KEPT_AWAY_MS : 0;
        const settle = judge.excuse(`source fails (${fault})`, ["500", "503"], isFlaky, lastsMs);
        await writeFile(file, "");
        await sleep(500 + random() * 2_000);
        await unlink(file);
        settle(fault === "slow" ? 15_000 : 500);
      },
    }),
  ),
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
      if (pids.length === 0) return;
      const settle = judge.excuse("server process killed", KILL_TROUBLES);
      process.kill(pick(random, pids), "SIGKILL");
      settle(KILL_GRACE_MS);
      await sleep(2_000);
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
 * Damage under a running server, which has mapped the file: it may end by that (SIGBUS), and shows what has changed of
 * values that it has verified before. Not part of a run unless it is asked for.
 */
export const LIVE_DAMAGE: ChaosEvent = {
  name: "bytes of the cache flipped under the program",
  weight: 2,
  happens: damageCache,
};

/** Turns bits of the cache's files over. */
async function damageCache({ server, random }: Stage): Promise<void> {
  for (const file of await cacheFiles(server.cacheFolder)) {
    const { size } = await stat(file);
    const handle = await open(file, "r+");
    try {
      for (let i = 0; i < FLIPPED_BITS; i++) {
        const at = Math.floor(random() * size);
        const byte = Buffer.alloc(1);
        await handle.read(byte, 0, 1, at);
        byte[0]! ^= 1 << Math.floor(random() * 8);
        await handle.write(byte, 0, 1, at);
      }
    } finally {
      await handle.close();
    }
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

/** What a poisonous chunk is answered with, always; or nobody had tried it when its time was over. */
export function excusePoison(judge: Judge): void {
  judge.excuse(
    "poisonous chunk",
    ["500", "503"],
    ({ kind, dataset }) => kind === "chunk" && dataset === POISON_DATASET,
  );
}

async function cacheFiles(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder, { recursive: true }).catch(() => [] as string[]);
  return names.filter((name) => name.endsWith("data.mdb")).map((name) => join(folder, name));
}
