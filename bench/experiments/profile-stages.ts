import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { checkDecoded, checkSame, warmCache } from "../check-answers.js";
import { type FieldStore, OTHER_FIELD_COMPRESSOR, storedBytes } from "../data/bench-data.js";
import { askInTurn } from "../load/ask-in-turn.js";
import { checkLoad } from "../load/check-load.js";
import { runNodeLoad } from "../load/node-load.js";
import { readThreadCpuSeconds, threadName } from "../process-cost.js";
import { nowMicros, readProfiles, type ThreadProfile, type TimeWindow } from "../profile/read-profiles.js";
import { type Micros, reportStages, type StageRecord } from "../profile/report-stages.js";
import type { Attribution } from "../profile/stages.js";
import { gridKeys } from "../rows.js";
import { parseServerTiming } from "../server-timing.js";
import { type RunningZpublish, startZpublish } from "../start-zpublish.js";
import { storePath } from "../subjects/subject.js";
import type { Experiment, ExperimentContext } from "./experiment.js";
import { MIB_SIDE, openMibStore } from "./open-mib-store.js";

const SIZES = { full: 64, small: 4, tiny: 1 } as const;
const RECHUNKED_SIDE = 256;
const CACHED = 200;
const CONNECTIONS = 8;
/** Before what is measured, so that code is compiled and workers run. */
const WARM_UP_SECONDS = 1;
/** How often the store is published, at most, so that its chunks can be asked for uncached again; used up, it ends early. */
const MAX_COPIES = 256;
/** More than a server answers uncached. */
const CHUNKS_PER_SECOND = 10_000;
const SAMPLE_MICROS = 200;
/** Threads of V8 itself, which use nothing for a request; the profiler's for one. */
const ENGINE_THREAD = /^v8:/;

/** A way in which a chunk is answered. */
interface Kind {
  readonly dataset: Readonly<Record<string, unknown>>;
  readonly origin: "HIT" | "PASS" | "MISS";
  readonly chunkSide: number;
}

const KINDS: Readonly<Record<string, Kind>> = {
  cached: { dataset: {}, origin: "HIT", chunkSide: MIB_SIDE },
  "passed through": { dataset: {}, origin: "PASS", chunkSide: MIB_SIDE },
  "to Zstandard": {
    dataset: { encoding: { compressor: { id: "zstd", level: 3 } } },
    origin: "MISS",
    chunkSide: MIB_SIDE,
  },
  "to other Blosc-LZ4": {
    dataset: { encoding: { compressor: OTHER_FIELD_COMPRESSOR } },
    origin: "MISS",
    chunkSide: MIB_SIDE,
  },
  rechunked: {
    dataset: { variables: { field: { chunks: [1, RECHUNKED_SIDE, RECHUNKED_SIDE] } } },
    origin: "MISS",
    chunkSide: RECHUNKED_SIDE,
  },
};

/** Where the time of one chunk request goes. */
export const profileStages: Experiment = {
  title:
    "what one chunk request costs by stage (cached, passed through, transcoded, rechunked), and whether `Server-Timing` agrees",
  async run(context) {
    const { size, onProgress } = context;
    const store = await openMibStore(context, SIZES[size]);
    const records: StageRecord[] = [];
    const kinds = Object.keys(KINDS);
    for (const [i, kind] of kinds.entries()) {
      for (const [j, load] of (["many at a time", "one at a time"] as const).entries()) {
        onProgress((i + j / 2) / kinds.length, `${kind}, ${load}`);
        records.push(await measure(kind, load, store, context));
      }
    }
    return { records, ...reportStages(records, { connections: CONNECTIONS, sampleMicros: SAMPLE_MICROS }) };
  },
};

async function measure(
  name: string,
  load: StageRecord["load"],
  store: FieldStore,
  { size, seconds, freshFolder }: ExperimentContext,
): Promise<StageRecord> {
  const kind = KINDS[name]!;
  const scratch = freshFolder("server");
  const profiles = join(scratch, "profiles");
  mkdirSync(profiles);
  const { ids, warmUp, measured } = planPaths(
    kind,
    store,
    size === "tiny" ? 20 : seconds * CHUNKS_PER_SECOND,
  );
  const datasets = Object.fromEntries(ids.map((id) => [id, { location: store.directory, ...kind.dataset }]));
  const nodeArgs = ["--cpu-prof", `--cpu-prof-dir=${profiles}`, `--cpu-prof-interval=${SAMPLE_MICROS}`];
  const server = await startZpublish({ datasets, scratch, nodeArgs });
  let window: TimeWindow;
  let requests: number;
  let cpu: ReturnType<typeof threadCosts>;
  let client: Pick<StageRecord, "totalMicros" | "serverTiming"> = {};
  try {
    const atStart = readThreadCpuSeconds(server.pid);
    await checkAndWarm(server, kind, { ...store, id: ids[0]! }, warmUp, scratch);
    const before = readThreadCpuSeconds(server.pid);
    const beginMicros = nowMicros();
    if (load === "one at a time") {
      const timings = createTimings(kind);
      const { requests: answered, milliseconds } = await askInTurn(
        server.baseUrl,
        measured,
        { seconds, isOnce: kind.origin !== "HIT" },
        timings.take,
      );
      requests = answered;
      client = { totalMicros: (milliseconds * 1e3) / answered, serverTiming: timings.means() };
    } else {
      const result = await runNodeLoad({
        baseUrl: server.baseUrl,
        paths: measured,
        headers: {},
        connections: CONNECTIONS,
        length: { seconds, isOnce: kind.origin !== "HIT" },
        status: 200,
        scratch,
      });
      checkLoad(result, `profile-stages: ${name}`, server);
      requests = result.requests;
    }
    window = { beginMicros, endMicros: nowMicros() };
    cpu = threadCosts(server.pid, kind, atStart, before);
  } finally {
    await server.stop();
  }
  const threads = readProfiles(profiles, window);
  const perRequest = (value: number) => (value * 1e6) / requests;
  return {
    kind: name,
    isMade: kind.origin === "MISS",
    load,
    requests,
    main: microsOf(
      threads.filter(({ isMain }) => isMain),
      requests,
    ),
    workers: microsOf(
      threads.filter(({ isMain }) => !isMain),
      requests,
    ),
    mainCpuMicros: perRequest(cpu.main),
    workersCpuMicros: perRequest(cpu.workers),
    otherCpuMicros: perRequest(cpu.other),
    ...client,
  };
}

interface Plan {
  /** Under which the store is published; the first one is for the warm-up, where chunks are to be uncached. */
  readonly ids: readonly string[];
  readonly warmUp: readonly string[];
  readonly measured: readonly string[];
}

function planPaths({ origin, chunkSide }: Kind, store: FieldStore, count: number): Plan {
  const keys = keysOf(store, chunkSide);
  if (origin === "HIT") {
    const paths = keys.slice(0, CACHED).map((key) => storePath({ ...store, id: "copy0" }, key));
    return { ids: ["copy0"], warmUp: paths, measured: paths };
  }
  const copies = 1 + Math.min(MAX_COPIES, Math.ceil(count / keys.length));
  const ids = Array.from({ length: copies }, (_, i) => `copy${i}`);
  const [warmUp, ...measured] = ids.map((id) => keys.map((key) => storePath({ ...store, id }, key)));
  return { ids, warmUp: warmUp!, measured: measured.flat() };
}

function keysOf(store: FieldStore, chunkSide: number): readonly string[] {
  return chunkSide === MIB_SIDE ? store.chunkKeys : gridKeys(chunkSide, store.steps);
}

async function checkAndWarm(
  server: RunningZpublish,
  { origin, chunkSide, dataset }: Kind,
  store: FieldStore,
  paths: readonly string[],
  scratch: string,
): Promise<void> {
  const { baseUrl } = server;
  const isStored = Object.keys(dataset).length === 0;
  const keys = keysOf(store, chunkSide).slice(0, 20);
  if (isStored) {
    for (const key of keys) await checkSame(baseUrl, storePath(store, key), storedBytes(store, key));
  } else {
    await checkDecoded(baseUrl, store, keys);
  }
  if (origin === "HIT") await warmCache(baseUrl, paths);
  const load = await runNodeLoad({
    baseUrl,
    paths,
    headers: {},
    connections: CONNECTIONS,
    length: { seconds: WARM_UP_SECONDS, isOnce: origin !== "HIT" },
    status: 200,
    scratch,
  });
  checkLoad(load, "profile-stages: warm-up", server);
}

/** CPU seconds since `before`. */
function threadCosts(
  pid: number,
  { origin }: Kind,
  atStart: ReadonlyMap<number, number>,
  before: ReadonlyMap<number, number>,
) {
  const cost = { main: 0, workers: 0, other: 0 };
  for (const [thread, seconds] of readThreadCpuSeconds(pid)) {
    const used = seconds - (before.get(thread) ?? 0);
    // Workers start with the first chunk that has to be made; all else that takes part is there before.
    const isWorker =
      origin === "MISS" && !atStart.has(thread) && !ENGINE_THREAD.test(threadName(pid, thread));
    cost[thread === pid ? "main" : isWorker ? "workers" : "other"] += used;
  }
  return cost;
}

function microsOf(threads: readonly ThreadProfile[], requests: number): Micros {
  const micros: Partial<Record<Attribution, number>> = {};
  for (const { seconds } of threads) {
    for (const [stage, value] of Object.entries(seconds) as [Attribution, number][]) {
      micros[stage] = (micros[stage] ?? 0) + (value * 1e6) / requests;
    }
  }
  return micros;
}

/** Adds up what answers say, and refuses those that were not answered as they should be. */
function createTimings({ origin }: Kind) {
  const sums: Record<string, number> = {};
  let answers = 0;
  return {
    take(head: string, path: string): void {
      const cache = /\r\nx-cache: *(\w+)/i.exec(head)?.[1];
      if (cache !== origin) throw new Error(`${path}: expected X-Cache ${origin}, received ${cache}`);
      const timings = parseServerTiming(/\r\nserver-timing: *([^\r]*)/i.exec(head)?.[1] ?? "");
      for (const [stage, milliseconds] of Object.entries(timings)) {
        sums[stage] = (sums[stage] ?? 0) + milliseconds * 1e3;
      }
      answers++;
    },
    means: () => Object.fromEntries(Object.entries(sums).map(([stage, sum]) => [stage, sum / answers])),
  };
}
