import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { checkDecoded, checkSame, warmCache } from "../check-answers.js";
import { type FieldStore, storedBytes } from "../data/bench-data.js";
import { checkLoad } from "../load/check-load.js";
import { runNodeLoad } from "../load/node-load.js";
import { type ProbeResult, startProbe } from "../load/run-probe.js";
import { type SlowReadersResult, startSlowReaders } from "../load/run-slow-readers.js";
import { readResidentMemory } from "../resident-memory.js";
import { type RunningZpublish, startZpublish } from "../start-zpublish.js";
import { storePath } from "../subjects/subject.js";
import type { Experiment, ExperimentContext, ExperimentResult } from "./experiment.js";
import { openMibStore } from "./open-mib-store.js";

const SIZES = {
  full: { steps: 64, clients: 200, seconds: 15 },
  small: { steps: 4, clients: 200, seconds: 8 },
  tiny: { steps: 1, clients: 10, seconds: 1 },
} as const;
const BYTES_PER_SECOND = 50_000;
const MAX_GROWTH = 64 * 2 ** 20;
const LOOK_MS = 250;
const PROBE_PAUSE_MS = 5;
const WARM_UP_CONNECTIONS = 8;
const IDLE_SECONDS = 1;

interface Serving {
  readonly dataset: Readonly<Record<string, unknown>>;
  readonly args: readonly string[];
  readonly answers: "stored" | "transcoded";
}

const ZSTD = { encoding: { compressor: { id: "zstd", level: 1 } } };

/** By what the table says. Without a cache every answer is read or made anew, and held by the server until it is taken. */
const SERVINGS: Readonly<Record<string, Serving>> = {
  "from the cache": { dataset: {}, args: [], answers: "stored" },
  "passed through, without a cache": { dataset: {}, args: ["--no-cache"], answers: "stored" },
  "transcoded, without a cache": { dataset: ZSTD, args: ["--no-cache"], answers: "transcoded" },
};

interface SlowRecord {
  readonly serving: string;
  readonly clients: number;
  /** Beyond the cache's map: when the server was ready, before the clients came, and at most while they were there. */
  readonly readyBytes: number;
  readonly beforeBytes: number;
  readonly peakBytes: number;
  /** Of all TCP sockets of the machine, at most; undefined where the system does not say. */
  readonly kernelBytes: number | undefined;
  readonly readers: SlowReadersResult;
  readonly idle: ProbeResult;
  readonly meanwhile: ProbeResult;
}

/** What many slow clients cost. */
export const slowClients: Experiment = {
  title: "200 clients that read chunks of about 590 KB at 50 KB/s: memory, and latency of others",
  async run(context) {
    const store = await openMibStore(context, SIZES[context.size].steps);
    const records: SlowRecord[] = [];
    for (const [i, name] of Object.keys(SERVINGS).entries()) {
      context.onProgress(i / Object.keys(SERVINGS).length, name);
      records.push(await measure(name, store, context));
    }
    return { records, ...report(records) };
  },
};

async function measure(name: string, store: FieldStore, context: ExperimentContext): Promise<SlowRecord> {
  const { clients, seconds } = SIZES[context.size];
  const { dataset, args, answers } = SERVINGS[name]!;
  const scratch = context.freshFolder("server");
  const keys = store.chunkKeys.slice(0, 2 * clients);
  const paths = keys.map((key) => storePath(store, key));
  const server = await startZpublish({
    datasets: { [store.id]: { location: store.directory, ...dataset } },
    scratch,
    args,
  });
  try {
    const readyBytes = otherBytes(server);
    await checkAndWarm(server, store, keys, paths, { answers, isCached: args.length === 0, scratch });
    const probe = {
      baseUrl: server.baseUrl,
      paths: [`/datasets/${store.id}/info`],
      pauseMs: PROBE_PAUSE_MS,
      scratch,
    };
    const idle = await (await startProbe({ ...probe, seconds: IDLE_SECONDS })).result;
    const running = await startProbe(probe);
    const kernelBefore = kernelSocketBytes();
    const beforeBytes = otherBytes(server);
    const readers = await startSlowReaders({
      baseUrl: server.baseUrl,
      paths,
      clients,
      bytesPerSecond: BYTES_PER_SECOND,
      scratch,
    });
    let peakBytes = 0;
    let kernelBytes = 0;
    for (const end = performance.now() + seconds * 1_000; performance.now() < end; await sleep(LOOK_MS)) {
      peakBytes = Math.max(peakBytes, otherBytes(server));
      kernelBytes = Math.max(kernelBytes, (kernelSocketBytes() ?? 0) - (kernelBefore ?? 0));
    }
    const meanwhile = await running.stop();
    const read = await readers.stop();
    checkLoad({ ...read, requests: read.answers }, `slow-clients: ${name}`, server);
    return {
      serving: name,
      clients,
      readyBytes,
      beforeBytes,
      peakBytes,
      kernelBytes: kernelBefore === undefined ? undefined : kernelBytes,
      readers: read,
      idle,
      meanwhile,
    };
  } finally {
    await server.stop();
  }
}

/** Every chunk is checked, and asked for by quick clients, so that what is measured is what slow ones add. */
async function checkAndWarm(
  server: RunningZpublish,
  store: FieldStore,
  keys: readonly string[],
  paths: readonly string[],
  { answers, isCached, scratch }: { answers: Serving["answers"]; isCached: boolean; scratch: string },
): Promise<void> {
  const { baseUrl } = server;
  if (answers === "stored") {
    for (const [i, path] of paths.entries()) await checkSame(baseUrl, path, storedBytes(store, keys[i]!));
  } else {
    await checkDecoded(baseUrl, store, keys.slice(0, 20));
  }
  if (isCached) await warmCache(baseUrl, paths);
  const load = await runNodeLoad({
    baseUrl,
    paths,
    headers: {},
    connections: WARM_UP_CONNECTIONS,
    length: "once",
    status: 200,
    scratch,
  });
  checkLoad(load, "slow-clients: quick clients", server);
}

function otherBytes({ pid }: RunningZpublish): number {
  const resident = readResidentMemory(pid);
  if (resident === undefined)
    throw new Error("slow-clients: expected /proc/PID/smaps, which this system does not have");
  return resident.otherBytes;
}

const PAGE_BYTES = 4096;

function kernelSocketBytes(): number | undefined {
  try {
    const pages = /^TCP: .* mem (\d+)$/m.exec(readFileSync("/proc/net/sockstat", "utf8"))?.[1];
    return pages === undefined ? undefined : Number(pages) * PAGE_BYTES;
  } catch {
    return undefined;
  }
}

function report(records: readonly SlowRecord[]): Omit<ExperimentResult, "records"> {
  const mib = (bytes: number | undefined) => (bytes === undefined ? undefined : bytes / 2 ** 20);
  return {
    tables: [
      {
        columns: [
          "chunks",
          "clients",
          "KB/s each",
          "memory when ready, MiB",
          "before the clients, MiB",
          "highest, MiB",
          "growth, MiB",
          "in the kernel's sockets, MiB",
          "`/info` idle: p99 ms",
          "meanwhile: p50 ms",
          "p99 ms",
          "highest ms",
        ],
        rows: records.map(
          ({
            serving,
            clients,
            readyBytes,
            beforeBytes,
            peakBytes,
            kernelBytes,
            readers,
            idle,
            meanwhile,
          }) => [
            serving,
            clients,
            readers.bytes / readers.seconds / clients / 1e3,
            mib(readyBytes),
            mib(beforeBytes),
            mib(peakBytes),
            mib(peakBytes - beforeBytes),
            mib(kernelBytes),
            idle.all.p99,
            meanwhile.all.p50,
            meanwhile.all.p99,
            meanwhile.all.max,
          ],
        ),
      },
    ],
    goals: records.map(({ serving, clients, beforeBytes, peakBytes }) => ({
      what: `memory for ${clients} clients that read at 50 KB/s, chunks ${serving}`,
      expected: `under ${mib(MAX_GROWTH)} MiB`,
      measured: `${mib(peakBytes - beforeBytes)!.toFixed(1)} MiB`,
      isMet: peakBytes - beforeBytes < MAX_GROWTH,
    })),
    notes: [
      "Memory is the server's resident memory beyond the cache's map. It was warm: every chunk had been asked for by quick clients before, and what that has left (garbage not collected yet, memory the allocator keeps) is there for the slow ones to use: see what it was when the server was ready.",
      "Over loopback the kernel takes most of such an answer into the socket's buffers at once (at both ends; all sockets of the machine are counted), so this says what the server adds to that, not what a slow line costs as a whole.",
    ],
  };
}
