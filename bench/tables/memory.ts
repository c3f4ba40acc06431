import { storedBytes } from "../data/bench-data.js";
import {
  type BenchContext,
  type BenchTable,
  type Build,
  type Figures,
  perBuild,
} from "../harness/harness.js";
import { runLoad } from "../load/load.js";
import { readResidentMemory } from "../process-cost.js";
import { createRandom } from "../random.js";
import { type RunningZpublish, withZpublish } from "../start-zpublish.js";
import { checkDecoded, checkSame } from "../subjects/check-answers.js";
import { storePath } from "../subjects/subject.js";
import { openKib64Store, pathsOf } from "./rows.js";

/** 40 steps are 10,240 chunks of 64 KiB. */
const SIZES = {
  full: { steps: 40, chunks: 10_000, requests: 100_000 },
  small: { steps: 4, chunks: 1_000, requests: 10_000 },
  tiny: { steps: 1, chunks: 20, requests: 200 },
} as const;
const CONNECTIONS = 32;
/** Shares of the requests after which memory is read. */
const LOOKS = [0.01, 0.1, 0.4, 1];
const MAX_GROWTH_MIB = 64;
const CHECKED = 20;
const SEED = 7;

/** How zpublish serves the chunks, by name of the contestant. */
const SERVINGS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "as stored": {},
  "transcoded to Zstandard": { encoding: { compressor: { id: "zstd", level: 1 } } },
};

/** Memory that a server takes over many requests. */
export const memory: BenchTable = {
  title: "memory of the server over 100,000 requests for 10,000 chunks of 64 KiB",
  async *contests(context) {
    const names = Object.keys(SERVINGS);
    yield {
      contestants: names.flatMap((name) => perBuild(context, name, (build) => measure(name, build, context))),
      compared: "growth, MiB",
      aims: names.map((of) => ({ of, most: MAX_GROWTH_MIB })),
      notes: [
        "Resident memory of all processes, without the cache's map, whose pages the system takes back when it needs memory. Growth is counted from the moment the server is ready: it contains what the engine compiles, what the allocator keeps, and the worker threads.",
        `${CONNECTIONS} connections; each time round all chunks in another order; chunks as stored are kept in the cache from their second request on.`,
      ],
    };
  },
};

async function measure(name: string, build: Build, context: BenchContext): Promise<Figures> {
  const { steps, chunks, requests } = SIZES[context.size];
  const store = await openKib64Store(context, steps);
  const scratch = context.freshFolder("server");
  const keys = store.chunkKeys.slice(0, chunks);
  const paths = shuffledRounds(pathsOf(store, keys), requests);
  const datasets = { [store.id]: { location: store.directory, ...SERVINGS[name] } };
  return withZpublish({ build, datasets, scratch }, async (server) => {
    const ready = residentMib(server);
    const figures: Record<string, number> = { "ready, MiB": ready };
    let answered = 0;
    for (const share of LOOKS) {
      const until = Math.round(share * requests);
      const asked = paths.slice(answered, until);
      await runLoad(server, { paths: asked, connections: CONNECTIONS, length: "once", scratch });
      answered = until;
      figures[`after ${share * 100} %`] = residentMib(server);
    }
    for (const key of keys.slice(0, CHECKED)) {
      if (name !== "as stored") await checkDecoded(server.baseUrl, store, [key]);
      else await checkSame(server.baseUrl, storePath(store, key), storedBytes(store, key));
    }
    return { ...figures, "growth, MiB": figures["after 100 %"]! - ready };
  });
}

/** Returns resident memory without the cache's map. @throws Error if the system does not say. */
export function residentMib({ pid }: Pick<RunningZpublish, "pid">): number {
  const resident = readResidentMemory(pid);
  if (resident === undefined) throw new Error("expected /proc/PID/smaps, which this system does not have");
  return resident.otherBytes / 2 ** 20;
}

/** Returns every path as often as another, each time round in another order: the same in each run. */
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
