import { isDeepStrictEqual } from "node:util";
import { openSmallStores } from "../data/bench-data.js";
import type { Experiment, ExperimentContext } from "./experiment.js";
import { dataProgress } from "./open-mib-store.js";
import { type CountedStartUp, measureCounts, startUpTable } from "./scale-start-up.js";
import { timeAnswer, withStartedServer } from "./start-up.js";

/** How many datasets. */
const SIZES = { full: [1, 100, 10_000], small: [1, 10, 100], tiny: [1, 3] } as const;

interface DatasetsRecord extends CountedStartUp {
  /** Milliseconds: the first request of all, for a dataset's metadata; the same for another dataset; again; the list. */
  readonly firstMs: number;
  readonly otherMs: number;
  readonly againMs: number;
  readonly listMs: number;
}

/** What datasets cost that nobody asks for. */
export const scaleDatasets: Experiment = {
  title: "time to start and memory against 1, 100, 10,000 small datasets",
  async run(context) {
    const { size, parent } = context;
    const counts: readonly number[] = SIZES[size];
    const stores = await openSmallStores(counts.at(-1)!, dataProgress(context), parent);
    const records = await measureCounts(counts, "datasets", context, (count, round) =>
      measure(stores.slice(0, count), round, context),
    );
    const titles = { count: "datasets", perOne: "KiB per dataset" };
    return {
      records,
      tables: [
        startUpTable(counts, records, titles, {
          "first `.zmetadata`, ms": ({ firstMs }) => firstMs,
          "of another dataset": ({ otherMs }) => otherMs,
          again: ({ againMs }) => againMs,
          "`/datasets`, ms": ({ listMs }) => listMs,
        }),
      ],
      goals: [],
      notes: [
        "Each dataset is a directory of its own: a group, two variables with a chunk each, consolidated metadata. From the start of the process to its line that it is ready, start of Node.js included; the files are in the system's page cache.",
        "Memory is resident memory beyond the cache's map when the server is ready. Times of answers are those of a client that has its connection and its code ready.",
      ],
    };
  },
};

function measure(
  locations: readonly string[],
  round: number,
  { freshFolder }: ExperimentContext,
): Promise<DatasetsRecord> {
  const ids = locations.map((_, i) => `s${i}`);
  const datasets = Object.fromEntries(ids.map((id, i) => [id, locations[i]]));
  return withStartedServer({ datasets, scratch: freshFolder("server") }, async ({ baseUrl }, startUp) => {
    await timeAnswer(baseUrl, "/versions");
    const first = await metadataOf(baseUrl, ids.length - 1);
    const other = await metadataOf(baseUrl, Math.floor((ids.length - 1) / 2));
    const again = await metadataOf(baseUrl, Math.floor((ids.length - 1) / 2));
    const list = await timeAnswer(baseUrl, "/datasets");
    if (!isDeepStrictEqual(JSON.parse(list.body.toString()), ids)) {
      throw new Error(
        `/datasets: expected the ids of ${ids.length} datasets in order, received ${list.body.subarray(0, 200)}`,
      );
    }
    return {
      count: ids.length,
      round,
      ...startUp,
      firstMs: first,
      otherMs: other,
      againMs: again,
      listMs: list.milliseconds,
    };
  });
}

async function metadataOf(baseUrl: string, index: number): Promise<number> {
  const path = `/datasets/s${index}/zarr/.zmetadata`;
  const { milliseconds, body } = await timeAnswer(baseUrl, path);
  const title = JSON.parse(body.toString()).metadata?.[".zattrs"]?.title;
  if (title !== `small dataset ${index}`)
    throw new Error(`${path}: expected small dataset ${index}, received ${title}`);
  return milliseconds;
}
