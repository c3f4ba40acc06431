import { checkDecoded, checkSame } from "../check-answers.js";
import { type FieldStore, openFieldStore, storedBytes } from "../data/bench-data.js";
import { checkLoad } from "../load/check-load.js";
import { runNodeLoad } from "../load/node-load.js";
import { createRandom } from "../random.js";
import { type ResidentMemory, readResidentMemory } from "../resident-memory.js";
import { type RunningZpublish, startZpublish } from "../start-zpublish.js";
import { storePath } from "../subjects/subject.js";
import type { Experiment, ExperimentContext, ExperimentResult } from "./experiment.js";
import { dataProgress } from "./open-mib-store.js";

/** 40 steps are 10,240 chunks of 64 KiB. */
const SIZES = {
  full: { steps: 40, chunks: 10_000, requests: 100_000 },
  small: { steps: 4, chunks: 1_000, requests: 10_000 },
  tiny: { steps: 1, chunks: 20, requests: 200 },
} as const;
const KIB64_SIDE = 128;
const CONNECTIONS = 32;
/** How many of the requests have been answered when memory is looked at. */
const LOOKS = [0.01, 0.1, 0.2, 0.4, 0.6, 0.8, 1];
const MAX_GROWTH = 64 * 2 ** 20;
const SEED = 7;

/** How zpublish serves the chunks, by what the table says. */
const SERVINGS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "as stored": {},
  "transcoded to Zstandard": { encoding: { compressor: { id: "zstd", level: 1 } } },
};

interface MemoryRecord extends ResidentMemory {
  readonly serving: string;
  /** Answered when memory was looked at; 0 when the server was ready. */
  readonly requests: number;
}

/** What a server's memory grows by over many requests. */
export const memory: Experiment = {
  title: "memory of the server over 100,000 requests for 10,000 chunks of 64 KiB",
  async run(context) {
    const { steps } = SIZES[context.size];
    const store = await openFieldStore("kib64", KIB64_SIDE, steps, dataProgress(context), context.parent);
    const records: MemoryRecord[] = [];
    for (const [i, serving] of Object.keys(SERVINGS).entries()) {
      records.push(...(await measure(serving, store, context, i / Object.keys(SERVINGS).length)));
    }
    return { records, ...report(records) };
  },
};

async function measure(
  serving: string,
  store: FieldStore,
  context: ExperimentContext,
  done: number,
): Promise<MemoryRecord[]> {
  const { chunks, requests } = SIZES[context.size];
  const scratch = context.freshFolder("server");
  const keys = store.chunkKeys.slice(0, chunks);
  const paths = shuffledRounds(
    keys.map((key) => storePath(store, key)),
    requests,
  );
  const dataset = { location: store.directory, ...SERVINGS[serving] };
  const server = await startZpublish({ datasets: { [store.id]: dataset }, scratch });
  try {
    const records = [look(server, serving, 0)];
    let answered = 0;
    for (const share of LOOKS) {
      context.onProgress(done + share / Object.keys(SERVINGS).length, serving);
      const until = Math.round(share * requests);
      const load = await runNodeLoad({
        baseUrl: server.baseUrl,
        paths: paths.slice(answered, until),
        headers: {},
        connections: CONNECTIONS,
        length: "once",
        status: 200,
        scratch,
      });
      checkLoad(load, `memory: ${serving}`, server);
      answered = until;
      records.push(look(server, serving, answered));
    }
    const some = keys.slice(0, 20);
    if (serving === "as stored") {
      for (const key of some) await checkSame(server.baseUrl, storePath(store, key), storedBytes(store, key));
    } else {
      await checkDecoded(server.baseUrl, store, some);
    }
    return records;
  } finally {
    await server.stop();
  }
}

function look({ pid }: RunningZpublish, serving: string, requests: number): MemoryRecord {
  const resident = readResidentMemory(pid);
  if (resident === undefined)
    throw new Error("memory: expected /proc/PID/smaps, which this system does not have");
  return { serving, requests, ...resident };
}

/** Every path as often as another, each time round in another order: the same each run. */
function shuffledRounds(paths: readonly string[], requests: number): string[] {
  const random = createRandom(SEED);
  const all: string[] = [];
  while (all.length < requests) {
    const round = [...paths];
    for (let i = round.length - 1; i > 0; i--) {
      const j = Math.floor(random() * (i + 1));
      [round[i], round[j]] = [round[j]!, round[i]!];
    }
    all.push(...round);
  }
  return all.slice(0, requests);
}

function report(records: readonly MemoryRecord[]): Omit<ExperimentResult, "records"> {
  const first = (record: MemoryRecord) =>
    records.find(({ serving, requests }) => serving === record.serving && requests === 0)!;
  const growth = (record: MemoryRecord) => record.otherBytes - first(record).otherBytes;
  const last = Object.keys(SERVINGS).map(
    (serving) => records.filter((record) => record.serving === serving).at(-1)!,
  );
  const mib = (bytes: number) => bytes / 2 ** 20;
  return {
    tables: [
      {
        columns: [
          "chunks",
          "requests answered",
          "resident MiB",
          "of it the cache's map",
          "the rest",
          "growth of the rest",
        ],
        rows: records.map((record) => [
          record.serving,
          record.requests,
          mib(record.totalBytes),
          mib(record.cacheMapBytes),
          mib(record.otherBytes),
          mib(growth(record)),
        ]),
      },
    ],
    goals: last.map((record) => ({
      what: `growth of resident memory beyond the cache's map, chunks ${record.serving}, ${record.requests.toLocaleString("en-US")} requests`,
      expected: `under ${mib(MAX_GROWTH)} MiB`,
      measured: `${mib(growth(record)).toFixed(1)} MiB`,
      isMet: growth(record) < MAX_GROWTH,
    })),
    notes: [
      "Growth is counted from the moment the server is ready, before its first request: it holds what the engine compiles, what the allocator keeps, and the worker threads, which start with the first chunk that is transcoded.",
      "Pages of the cache's file are those of the system's page cache: it takes them back when it needs memory.",
      `${CONNECTIONS} connections; each time round all chunks in another order; chunks as stored are kept in the cache from their second request on.`,
    ],
  };
}
