import { checkDocument } from "../check-answers.js";
import { type BenchStore, openManyStore } from "../data/bench-data.js";
import { storePath } from "../subjects/subject.js";
import type { Experiment, ExperimentContext } from "./experiment.js";
import { type CountedStartUp, measureCounts, startUpTable } from "./scale-start-up.js";
import { timeAnswer, withStartedServer } from "./start-up.js";

/** How many variables. */
const SIZES = { full: [1, 1_000, 50_000], small: [1, 100, 1_000], tiny: [1, 10] } as const;

interface VariablesRecord extends CountedStartUp {
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
    const { size, parent, onProgress } = context;
    const counts: readonly number[] = SIZES[size];
    const stores = new Map<number, BenchStore>();
    for (const count of counts) {
      onProgress(0, "making data");
      stores.set(count, await openManyStore(count, parent));
    }
    const records = await measureCounts(counts, "variables", context, (count, round) =>
      measure(stores.get(count)!, count, round, context),
    );
    const titles = { count: "variables", perOne: "KiB per variable" };
    return {
      records,
      tables: [
        startUpTable(counts, records, titles, {
          "`.zmetadata`, MB": ({ zmetadataBytes }) => zmetadataBytes / 1e6,
          "first `.zarray`, ms": ({ arrayMs }) => arrayMs,
          "first `.zmetadata`, ms": ({ zmetadataMs }) => zmetadataMs,
          again: ({ againMs }) => againMs,
          "`/keys`, ms": ({ keysMs }) => keysMs,
        }),
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
      count: variables,
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
