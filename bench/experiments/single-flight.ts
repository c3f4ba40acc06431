import { checkDecoded } from "../check-answers.js";
import type { FieldStore } from "../data/bench-data.js";
import { askAtOnce, type RawAnswer } from "../load/ask-at-once.js";
import { parseServerTiming } from "../server-timing.js";
import { type RunningZpublish, startZpublish } from "../start-zpublish.js";
import { storePath } from "../subjects/subject.js";
import type { Experiment } from "./experiment.js";
import { openMibStore } from "./open-mib-store.js";

const AT_ONCE = 128;
const SIZES = {
  full: { steps: 64, chunks: 16 },
  small: { steps: 4, chunks: 8 },
  tiny: { steps: 1, chunks: 2 },
} as const;

/** Whether a chunk that many ask for at once is made once. */
export const singleFlight: Experiment = {
  title: `${AT_ONCE} requests at once for one uncached transcoded chunk: how often it is encoded`,
  async run(context) {
    const { size, rounds, freshFolder, onProgress } = context;
    const { steps, chunks } = SIZES[size];
    const store = await openMibStore(context, steps);
    const keys = store.chunkKeys.slice(0, chunks);
    const records: (BurstRecord & { round: number })[] = [];
    for (let round = 0; round < rounds; round++) {
      onProgress(round / rounds, "asking");
      const server = await start(store, freshFolder("burst"));
      try {
        for (const key of keys) records.push({ round, ...(await burst(server, store, key)) });
        await checkDecoded(server.baseUrl, store, keys);
      } finally {
        await server.stop();
      }
    }
    const counted = await countWithoutCache(store, keys, freshFolder("control"));
    const most = Math.max(...records.map(({ encodes }) => encodes));
    return {
      records,
      tables: [
        {
          columns: [
            "round",
            "chunks",
            "requests",
            "answered from the one encode",
            "from the cache",
            "encodes per chunk, most",
            "ms until all had it, most",
          ],
          rows: Array.from({ length: rounds }, (_, round) => {
            const own = records.filter((record) => record.round === round);
            const sum = (field: "shared" | "cached" | "requests") =>
              own.reduce((total, record) => total + record[field], 0);
            return [
              round + 1,
              own.length,
              sum("requests"),
              sum("shared"),
              sum("cached"),
              Math.max(...own.map(({ encodes }) => encodes)),
              Math.max(...own.map(({ milliseconds }) => milliseconds)),
            ];
          }),
        },
      ],
      goals: [
        {
          what: `${AT_ONCE} requests at once for one uncached transcoded chunk`,
          expected: "encoded once",
          measured: `encoded at most ${most} times`,
          isMet: most === 1,
        },
      ],
      notes: [
        "Encodes are counted by Server-Timing: answers of one encode carry the same read, decode and encode times to the microsecond, two encodes do not.",
        `Control: ${keys.length} chunks asked for one after the other, twice each, without a cache, were counted as ${counted} encodes.`,
        "All answers to one chunk were compared byte by byte, and one of them decoded and compared with the field.",
      ],
    };
  },
};

interface BurstRecord {
  readonly key: string;
  readonly requests: number;
  /** Answers `MISS`, which carry the times of an encode. */
  readonly shared: number;
  /** Answers `HIT`. */
  readonly cached: number;
  readonly encodes: number;
  readonly milliseconds: number;
}

function start(store: FieldStore, scratch: string, args: readonly string[] = []): Promise<RunningZpublish> {
  const dataset = { location: store.directory, encoding: { compressor: { id: "zstd", level: 3 } } };
  return startZpublish({ datasets: { [store.id]: dataset }, scratch, args });
}

async function burst({ baseUrl }: RunningZpublish, store: FieldStore, key: string): Promise<BurstRecord> {
  const began = performance.now();
  const answers = await askAtOnce(baseUrl, storePath(store, key), AT_ONCE);
  const milliseconds = performance.now() - began;
  const [{ body }] = answers as [RawAnswer];
  for (const answer of answers) {
    if (answer.status !== 200 || !answer.body.equals(body)) {
      throw new Error(
        `${key}: expected ${AT_ONCE} answers 200 that are the same, received another (status ${answer.status})`,
      );
    }
  }
  const made = answers.filter(({ headers }) => headers.get("x-cache") === "MISS");
  const cached = answers.filter(({ headers }) => headers.get("x-cache") === "HIT").length;
  if (made.length === 0 || made.length + cached !== AT_ONCE) {
    throw new Error(
      `${key}: expected X-Cache MISS of a chunk that is made, or HIT, received ${answers[0]!.headers.get("x-cache")}`,
    );
  }
  return {
    key,
    requests: AT_ONCE,
    shared: made.length,
    cached,
    encodes: new Set(made.map(encodeOf)).size,
    milliseconds,
  };
}

/** What tells one encode from another. @throws Error where the answer does not say. */
function encodeOf({ headers }: RawAnswer): string {
  const { read, decode, encode } = parseServerTiming(headers.get("server-timing") ?? "");
  if (encode === undefined) throw new Error("expected Server-Timing with encode, received none");
  return `${read} ${decode} ${encode}`;
}

/** How many encodes are counted where each request is one: twice the number of chunks, if the count can be believed. */
async function countWithoutCache(
  store: FieldStore,
  keys: readonly string[],
  scratch: string,
): Promise<number> {
  const server = await start(store, scratch, ["--no-cache"]);
  try {
    const encodes = new Set<string>();
    for (const key of [...keys, ...keys]) {
      const [answer] = await askAtOnce(server.baseUrl, storePath(store, key), 1);
      encodes.add(encodeOf(answer!));
    }
    if (encodes.size !== 2 * keys.length) {
      throw new Error(`expected ${2 * keys.length} encodes to be counted, received ${encodes.size}`);
    }
    return encodes.size;
  } finally {
    await server.stop();
  }
}
