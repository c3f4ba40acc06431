import { isDeepStrictEqual } from "node:util";
import { openSmallStores } from "../data/bench-data.js";
import type { Experiment, ExperimentContext } from "./experiment.js";
import { dataProgress } from "./open-mib-store.js";
import { medianOf, type StartUp, timeAnswer, withStartedServer } from "./start-up.js";

/** How many datasets. */
const SIZES = { full: [1, 100, 10_000], small: [1, 10, 100], tiny: [1, 3] } as const;

interface DatasetsRecord extends StartUp {
  readonly datasets: number;
  readonly round: number;
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
    const { size, rounds, parent, onProgress } = context;
    const counts: readonly number[] = SIZES[size];
    const stores = await openSmallStores(counts.at(-1)!, dataProgress(context), parent);
    const records: DatasetsRecord[] = [];
    for (let round = 0; round < rounds; round++) {
      const order = round % 2 === 0 ? counts : [...counts].reverse();
      for (const [i, count] of order.entries()) {
        onProgress((round + i / order.length) / rounds, `${count} datasets`);
        records.push(await measure(stores.slice(0, count), round, context));
      }
    }
    return {
      records,
      tables: [
        {
          columns: [
            "datasets",
            "ready after s",
            "highest",
            "CPU s",
            "memory, MiB",
            "KiB per dataset",
            "first `.zmetadata`, ms",
            "of another dataset",
            "again",
            "`/datasets`, ms",
          ],
          rows: counts.map((count) => {
            const own = records.filter(({ datasets }) => datasets === count);
            const base = medianOf(
              records.filter(({ datasets }) => datasets === 1),
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
              medianOf(own, ({ firstMs }) => firstMs),
              medianOf(own, ({ otherMs }) => otherMs),
              medianOf(own, ({ againMs }) => againMs),
              medianOf(own, ({ listMs }) => listMs),
            ];
          }),
        },
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
      datasets: ids.length,
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
