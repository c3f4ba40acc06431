import { existsSync } from "node:fs";
import { readdir, readFile, rename, rm, stat, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fetchAnswer } from "../../../bench/subjects/check-answers.js";
import type { Fault } from "../../support/origins/fault.js";
import type { FaultyOrigin } from "../../support/origins/faulty-origin.js";
import {
  ABSENT,
  AWAY_DATASET,
  CHAOS_ARRAYS,
  CHAOS_KEYS,
  type ChaosArray,
  type ChaosKey,
  FLAKY_DATASET,
  fileCount,
  filesOf,
  POISON_DATASET,
  REMOTE_DATASET,
  VISITOR_DATASET,
} from "./arrays.js";
import { DEATHS } from "./fault-preload.js";
import { DAMAGED, type Judge, type Trouble } from "./judge.js";
import {
  CHUNK_TIMEOUT_SECONDS,
  type ChaosServer,
  REFRESH_SECONDS,
  SOURCE_TIMEOUT_SECONDS,
} from "./server.js";
import type { ChaosStore, WriteMode } from "./store.js";
import { now } from "./timeline.js";

/** What events happen to. */
export interface Stage {
  readonly server: ChaosServer;
  readonly store: ChaosStore;
  /** Has the stores as objects; the server reads one dataset from it. */
  readonly origin: FaultyOrigin;
  readonly judge: Judge;
  readonly random: () => number;
  /** The next version of each file. */
  readonly versions: Map<string, number>;
  /** Files that an event is using: no other event may. */
  readonly busyFiles: Set<string>;
  /** Adds a line to the report. */
  readonly note: (text: string) => void;
  config: ChaosConfig;
}

/** The part of the configuration that changes. */
interface ChaosConfig {
  readonly hasVisitor: boolean;
  readonly visitorCoding: "zstd" | "gzip";
}

/** One thing that happens. */
export interface ChaosEvent {
  readonly name: string;
  /** How often, beside others. */
  readonly weight: number;
  /** Whether it starts the program again: leaked memory is then free. */
  readonly isRestart?: boolean;
  /** Resolves when it is over; to false if there was nothing that it could have happened to. */
  // biome-ignore lint/suspicious/noConfusingVoidType: what an async function without a result returns.
  readonly happens: (stage: Stage) => Promise<void | false>;
}

/** Until new metadata is served at the latest: a period, and a refresh that takes its time on a busy machine. */
const REFRESH_GRACE_MS = REFRESH_SECONDS * 1_000 + 4_000;
/** Until another state of a remote file is served: an answer is valid for a period, and may take until the time limit. */
const REMOTE_GRACE_MS = (REFRESH_SECONDS + SOURCE_TIMEOUT_SECONDS) * 1_000 + 1_000;
/** Until requests that joined one which hangs have failed, and metadata that could not be read is there again. */
const ORIGIN_GRACE_MS = (REFRESH_SECONDS + 2 * SOURCE_TIMEOUT_SECONDS) * 1_000 + 2_000;
/** A writer in place that pauses for longer looks like one that has finished: times of files are in steps of up to so much. */
const NOTICED_PAUSE_MS = 10;
/** An excuse that is taken back. */
const NEVER = Number.NEGATIVE_INFINITY;
/** How long a chunk is kept away from workers after one has died of it. */
const KEPT_AWAY_MS = 62_000;
/** How long a worker is waited for that takes an order to die. */
const DEATH_WAIT_MS = 3_000;
/** A reload has been done by then. */
const RELOAD_GRACE_MS = 6_000;
/** How long the end of a process may be felt. */
const KILL_GRACE_MS = 1_500;
/** What becomes of requests that are with a process when it is killed. */
const KILL_TROUBLES: readonly Trouble[] = ["no answer", "broken off"];
/** Chunks of the cache that are damaged. */
const DAMAGED_CHUNKS = 40;

/** Returns one of a list. */
function pick<T>(random: () => number, list: readonly T[]): T {
  return list[Math.floor(random() * list.length)]!;
}

/** The configuration file. */
export function configDocument(stage: Pick<Stage, "store" | "origin" | "config">): unknown {
  const { store, origin, config } = stage;
  const datasets: Record<string, { location: string; variables: Record<string, unknown> }> = {};
  for (const array of CHAOS_ARRAYS) {
    const { dataset, path, encoding, rowsPerChunk } = array;
    const isVisitor = dataset === VISITOR_DATASET;
    if (isVisitor && !config.hasVisitor) continue;
    const isRemote = dataset === REMOTE_DATASET;
    const location = isRemote ? `${origin.url}/${dataset}.zarr` : store.location(dataset);
    datasets[dataset] ??= { location, variables: {} };
    // Arrays behind a web server are found by their names alone.
    if (encoding === undefined && rowsPerChunk === 1 && !isRemote) continue;
    datasets[dataset].variables[path] = {
      ...(isVisitor ? { compressor: { id: config.visitorCoding, level: 1 } } : encoding),
      ...(rowsPerChunk > 1 && { chunks: [rowsPerChunk, -1] }),
    };
  }
  return { datasets };
}

/** Excuses the answers for poisonous chunks, for the whole run. */
export function excusePoison(judge: Judge): void {
  const isPoison = ({ kind, dataset }: ChaosKey) => kind === "chunk" && dataset === POISON_DATASET;
  judge.excuse("poisonous chunk", ["500", "503"], isPoison);
}

function fileId(array: ChaosArray, file: number): string {
  return `${array.number}/${file}`;
}

/** Does something to a file that no other event is using. */
async function withFile(
  { random, busyFiles }: Stage,
  use: (array: ChaosArray, file: number) => Promise<void>,
): Promise<void> {
  const arrays = CHAOS_ARRAYS.filter(({ isRewritten, dataset }) => isRewritten && dataset !== AWAY_DATASET);
  let array: ChaosArray;
  let file: number;
  do {
    array = pick(random, arrays);
    file = Math.floor(random() * fileCount(array));
  } while (array.absentFiles.includes(file) || busyFiles.has(fileId(array, file)));
  busyFiles.add(fileId(array, file));
  try {
    await use(array, file);
  } finally {
    busyFiles.delete(fileId(array, file));
  }
}

function graceOf({ dataset }: ChaosArray): number {
  return dataset === REMOTE_DATASET ? REMOTE_GRACE_MS : 0;
}

/** A chunk that changes while it is read may be given up: 503, or 500 if it looked corrupt each time. */
async function write(stage: Stage, array: ChaosArray, file: number, mode: WriteMode): Promise<void> {
  const { judge, store, versions } = stage;
  const version = (versions.get(fileId(array, file)) ?? 0) + 1;
  versions.set(fileId(array, file), version);
  const settleChange = judge.file(array, file).begin(version);
  const isPart = (key: ChaosKey) =>
    key.array === array && key.kind === "chunk" && filesOf(key).includes(file);
  const settle = judge.excuse(`write (${mode})`, mode === "replace" ? ["503"] : ["500", "503"], isPart);
  const settlePause =
    mode === "in place" ? judge.excuse("a writer in place paused", ["torn"], isPart) : undefined;
  const pausedMs = await store.write(array, file, version, mode);
  settleChange(graceOf(array));
  settle(250 + graceOf(array));
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

/** A file is in another state for a while. */
function fileEvent(
  name: string,
  state: number,
  change: (stage: Stage, array: ChaosArray, file: number) => Promise<void>,
): ChaosEvent {
  return {
    name,
    weight: 6,
    happens: (stage) =>
      withFile(stage, async (array, file) => {
        const settle = stage.judge.file(array, file).begin(state);
        await change(stage, array, file);
        settle(graceOf(array));
        await sleep(200 + stage.random() * 600);
        await write(stage, array, file, "replace");
      }),
  };
}

const FILE_EVENTS: readonly ChaosEvent[] = [
  fileEvent("chunk truncated for a while", DAMAGED, async ({ store, random }, array, file) => {
    const { size } = await stat(store.fileOf(array, file));
    await store.truncate(array, file, Math.floor(random() * size));
  }),
  fileEvent("chunk removed for a while", ABSENT, ({ store }, array, file) => store.remove(array, file)),
  {
    name: "array of another length",
    weight: 5,
    async happens({ judge, store, random }) {
      const growing = CHAOS_ARRAYS.filter(({ fewestRows }) => fewestRows !== undefined);
      const array = pick(random, growing);
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
      const settle = judge.excuse("dataset gone", ["500"], ({ dataset }) => dataset === AWAY_DATASET);
      const location = store.location(AWAY_DATASET);
      await rename(location, `${location}.gone`);
      await sleep(500 + random() * 2_500);
      await rename(`${location}.gone`, location);
      // Metadata that could not be read is tried again within a period.
      settle(REFRESH_GRACE_MS);
      await sleep(1_000);
    },
  },
];

/**
 * Faults of an origin, but never an answer that could be true. One without validators could be: then versions of one length cannot
 * be told apart.
 */
const ORIGIN_FAULTS: readonly (Fault | undefined)[] = [
  undefined,
  { status: 503, retryAfter: "0" },
  { status: 500 },
  { status: 403 },
  { hang: "before-headers" },
  { hang: "after-headers" },
  { disconnect: true },
  { redirect: "http://127.0.0.1:1/elsewhere" },
  { html: true },
  { lengthError: 3 },
  { cutAfter: 100 },
  { trickle: { bytes: 1_000, ms: 5 } },
];

function sourceEvent(fault: "error" | "slow"): ChaosEvent {
  return {
    name: `source fails (${fault})`,
    weight: 4,
    async happens({ judge, server, random }) {
      const file = join(server.faults, `source-${fault}`);
      const isFlaky = ({ kind, dataset }: ChaosKey) => kind === "chunk" && dataset === FLAKY_DATASET;
      // A worker that waits too long for a file is ended, as for any other reason.
      const lastsMs = fault === "slow" ? KEPT_AWAY_MS : 0;
      const settle = judge.excuse(`source fails (${fault})`, ["500", "503"], isFlaky, lastsMs);
      await writeFile(file, "");
      await sleep(500 + random() * 2_000);
      await unlink(file);
      settle(fault === "slow" ? 15_000 : 500);
    },
  };
}

/** Workers that die and sources that fail: `fault-preload` and the origin do it. */
const FAULT_EVENTS: readonly ChaosEvent[] = [
  {
    name: "worker killed",
    weight: 8,
    async happens({ judge, server, random, note }) {
      const death = pick(random, DEATHS);
      const file = join(server.faults, `kill-${death}`);
      const isMade = (key: ChaosKey) => key.kind === "chunk" && key.array?.encoding !== undefined;
      const settle = judge.excuse(`worker killed (${death})`, ["500"], isMade, KEPT_AWAY_MS);
      await writeFile(file, "");
      const deadline = now() + DEATH_WAIT_MS;
      while (existsSync(file) && now() < deadline) await sleep(20);
      // Gone if a worker has taken it; otherwise no chunk was made meanwhile.
      const isTaken = await unlink(file).then(
        () => false,
        () => true,
      );
      if (!isTaken) note(`no worker took the order to die (${death})`);
      settle(CHUNK_TIMEOUT_SECONDS * 1_000 + 1_500);
      return isTaken ? undefined : false;
    },
  },
  sourceEvent("error"),
  sourceEvent("slow"),
  {
    name: "origin fails",
    weight: 6,
    async happens({ judge, origin, random }) {
      const isRemote = ({ kind, dataset }: ChaosKey) => kind === "chunk" && dataset === REMOTE_DATASET;
      const settle = judge.excuse("origin fails", ["500", "503"], isRemote);
      // Each request in its own way, or all of them in one.
      const fault = pick(random, ORIGIN_FAULTS);
      const isMixed = random() < 0.5;
      origin.setFault(() => (isMixed ? pick(random, ORIGIN_FAULTS) : fault));
      await sleep(500 + random() * 2_000);
      origin.setFault(() => undefined);
      origin.resetCounts();
      settle(ORIGIN_GRACE_MS);
    },
  },
];

const BAD_CONFIGS = ["{", '{"datasets": {"x": 5}}', '{"port": "many"}', '{"datasets": {"a": "/no/such"}}'];

/** What happens to the program, its configuration and its cache. */
const PROGRAM_EVENTS: readonly ChaosEvent[] = [
  {
    name: "cache removed",
    weight: 1,
    async happens({ server }) {
      // The program may make its directory again meanwhile.
      await rm(server.cacheFolder, { recursive: true, force: true, maxRetries: 5 });
    },
  },
  {
    name: "reload",
    weight: 6,
    async happens(stage) {
      const { judge, server, random } = stage;
      if (random() < 0.3) {
        await server.writeConfig(pick(random, BAD_CONFIGS));
        server.reload();
        await sleep(1_500);
        await server.writeConfig(configDocument(stage));
        return;
      }
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
    name: "program ended and started again",
    weight: 3,
    isRestart: true,
    async happens(stage) {
      const { judge, server, note, random } = stage;
      const signal = random() < 0.4 ? "SIGKILL" : "SIGTERM";
      // A program that is asked to end finishes the requests it has begun.
      const troubles: readonly Trouble[] = signal === "SIGTERM" ? ["no answer", "503"] : KILL_TROUBLES;
      const settle = judge.excuse(`program ended by ${signal}`, troubles);
      const bodies = await cachedBodies(stage);
      const status = await server.end(signal);
      const expected = signal === "SIGTERM" ? 0 : "SIGKILL";
      if (status !== expected)
        note(`FAILED: after ${signal}, expected to end with ${expected}, ended with ${status}`);
      // After an orderly end, or the next start would begin with a new cache.
      if (signal === "SIGTERM" && random() < 0.5) await damageCache(stage, bodies);
      await server.start();
      settle(500);
    },
  },
];

/** Returns bodies that are probably in the cache. */
async function cachedBodies({ server, random }: Stage): Promise<Buffer[]> {
  const isMade = ({ kind, array }: ChaosKey) => kind === "chunk" && array?.encoding !== undefined;
  const keys = CHAOS_KEYS.filter((key) => isMade(key) && key.dataset !== POISON_DATASET);
  const urls = Array.from({ length: DAMAGED_CHUNKS }, () => pick(random, keys).url);
  const answers = await Promise.allSettled(
    urls.map((url) => fetchAnswer(`http://127.0.0.1:${server.port}`, url)),
  );
  return answers.flatMap((answer) =>
    answer.status === "fulfilled" && answer.value.status === 200 ? [answer.value.body] : [],
  );
}

/** Flips a bit of stored chunks. LMDB's own pages stay as they are: a damaged one may end the program. */
async function damageCache({ server, random, note }: Stage, bodies: readonly Buffer[]): Promise<void> {
  const names = await readdir(server.cacheFolder, { recursive: true }).catch(() => [] as string[]);
  for (const path of names.filter((name) => name.endsWith("data.mdb"))) {
    const file = join(server.cacheFolder, path);
    const bytes = await readFile(file);
    const found = bodies.flatMap((body) => {
      const at = bytes.indexOf(body);
      return at < 0 ? [] : [at + Math.floor(random() * body.length)];
    });
    for (const at of found) bytes[at]! ^= 1 << Math.floor(random() * 8);
    await writeFile(file, bytes);
    note(found.length > 0 ? "chunks of the cache were damaged" : "no chunk of the cache was found to damage");
  }
}

/** What happens one after the other, beside files that are written all the time ({@link REWRITES}). */
export const EVENTS: readonly ChaosEvent[] = [...FILE_EVENTS, ...FAULT_EVENTS, ...PROGRAM_EVENTS];
