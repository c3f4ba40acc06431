import { checkDocument } from "../check-answers.js";
import { type BenchStore, openManyStore } from "../data/bench-data.js";
import { storePath } from "../subjects/subject.js";
import type { Experiment, ExperimentContext } from "./experiment.js";
import { medianOf, type StartUp, timeAnswer, withStartedServer } from "./start-up.js";

/** How many variables. */
const SIZES = { full: [1, 1_000, 50_000], small: [1, 100, 1_000], tiny: [1, 10] } as const;

interface VariablesRecord extends StartUp {
  readonly variables: number;
  readonly round: number;
  readonly zmetadataBytes: number;
  /** Milliseconds: the first request of all, for one variable; the first `.zmetadata`; the same again; `/keys`. */
  readonly arrayMs: number;
  readonly zmetadataMs: number;
  readonly againMs: number;
  readonly keysMs: number;
}

/** What variables cost that nobody asks for. */
export const scaleVariables: Experiment = {
  title: "time to start and memory against 1, 1,000, 50,000 variables of one dataset",
  async run(context) {
    const { size, rounds, parent, onProgress } = context;
    const counts: readonly number[] = SIZES[size];
    const stores = new Map<number, BenchStore>();
    for (const count of counts) {
      onProgress(0, "making data");
      stores.set(count, await openManyStore(count, parent));
    }
    const records: VariablesRecord[] = [];
    for (let round = 0; round < rounds; round++) {
      const order = round % 2 === 0 ? counts : [...counts].reverse();
      for (const [i, count] of order.entries()) {
        onProgress((round + i / order.length) / rounds, `${count} variables`);
        records.push(await measure(stores.get(count)!, count, round, context));
      }
    }
    return {
      records,
      tables: [
        {
          columns: [
            "variables",
            "ready after s",
            "highest",
            "CPU s",
            "memory, MiB",
            "KiB per variable",
            "`.zmetadata`, MB",
            "first `.zarray`, ms",
            "first `.zmetadata`, ms",
            "again",
            "`/keys`, ms",
          ],
          rows: counts.map((count) => {
            const own = records.filter(({ variables }) => variables === count);
            const base = medianOf(
              records.filter(({ variables }) => variables === 1),
              ({ residentBytes }) => residentBytes,
            );
            const resident = medianOf(own, ({ residentBytes }) => residentBytes);
            return [
              count,
              medianOf(own, ({ readySeconds }) => readySeconds),
              Math.max(...own.map(({ readySeconds }) => readySeconds)),
              medianOf(own, ({ cpuSeconds }) => cpuSeconds),
              resident === undefined ? undefined : resident / 2 ** 20,
              resident === undefined || base === undefined || count === 1
                ? undefined
                : (resident - base) / 1024 / (count - 1),
              medianOf(own, ({ zmetadataBytes }) => zmetadataBytes / 1e6),
              medianOf(own, ({ arrayMs }) => arrayMs),
              medianOf(own, ({ zmetadataMs }) => zmetadataMs),
              medianOf(own, ({ againMs }) => againMs),
              medianOf(own, ({ keysMs }) => keysMs),
            ];
          }),
        },
      ],
      goals: [],
      notes: [
        "One store with consolidated metadata. From the start of the process to its line that it is ready, start of Node.js included; memory is resident memory beyond the cache's map when the server is ready; answers are not compressed.",
      ],
    };
  },
};

function measure(
  store: BenchStore,
  variables: number,
  round: number,
  { freshFolder }: ExperimentContext,
): Promise<VariablesRecord> {
  const datasets = { [store.id]: store.directory };
  return withStartedServer({ datasets, scratch: freshFolder("server") }, async ({ baseUrl }, startUp) => {
    await timeAnswer(baseUrl, "/versions");
    const array = await timeAnswer(baseUrl, storePath(store, `v${variables - 1}/.zarray`));
    const path = storePath(store, ".zmetadata");
    const first = await timeAnswer(baseUrl, path);
    const again = await timeAnswer(baseUrl, path);
    const keys = await timeAnswer(baseUrl, `/datasets/${store.id}/keys`);
    if (round === 0) await checkDocument(baseUrl, store, path);
    const listed = JSON.parse(keys.body.toString()).length;
    if (listed !== variables) throw new Error(`/keys: expected ${variables} names, received ${listed}`);
    return {
      variables,
      round,
      ...startUp,
      zmetadataBytes: first.body.length,
      arrayMs: array.milliseconds,
      zmetadataMs: first.milliseconds,
      againMs: again.milliseconds,
      keysMs: keys.milliseconds,
    };
  });
}
