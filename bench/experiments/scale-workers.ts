import { availableParallelism } from "node:os";
import { checkDecoded } from "../check-answers.js";
import type { FieldStore } from "../data/bench-data.js";
import { checkLoad } from "../load/check-load.js";
import { runNodeLoad } from "../load/node-load.js";
import { readProcessCost } from "../process-cost.js";
import { startZpublish } from "../start-zpublish.js";
import { median } from "../statistics.js";
import { storePath } from "../subjects/subject.js";
import type { Experiment, ExperimentContext } from "./experiment.js";
import { openMibStore } from "./open-mib-store.js";

const SIZES = {
  full: { steps: 64, chunks: 256 },
  small: { steps: 4, chunks: 64 },
  tiny: { steps: 1, chunks: 4 },
} as const;
const CONNECTIONS_PER_WORKER = 8;

interface WorkersRecord {
  readonly workers: number;
  readonly round: number;
  readonly chunks: number;
  readonly seconds: number;
  readonly chunksPerSecond: number;
  /** Of the server with its workers. */
  readonly cpuSeconds: number | undefined;
  readonly generatorCpuSeconds: number | undefined;
}

/** What another worker brings. */
export const scaleWorkers: Experiment = {
  title: "transcoded chunks per second against `--workers`, each with a fresh server and an empty cache",
  async run(context) {
    const { size, rounds, onProgress } = context;
    const store = await openMibStore(context, SIZES[size].steps);
    const counts = Array.from({ length: availableParallelism() }, (_, i) => i + 1);
    const records: WorkersRecord[] = [];
    for (let round = 0; round < rounds; round++) {
      const order = round % 2 === 0 ? counts : [...counts].reverse();
      for (const [i, workers] of order.entries()) {
        onProgress((round + i / order.length) / rounds, `--workers ${workers}`);
        records.push(await measure(workers, round, store, context));
      }
    }
    const rateOf = (workers: number, round: number) =>
      records.find((record) => record.workers === workers && record.round === round)!.chunksPerSecond;
    return {
      records,
      tables: [
        {
          columns: [
            "--workers",
            "chunks/s",
            "lowest",
            "highest",
            "× one worker",
            "CPU ms/chunk",
            "processors used, server",
            "load",
          ],
          rows: counts.map((workers) => {
            const own = records.filter((record) => record.workers === workers);
            const rates = own.map(({ chunksPerSecond }) => chunksPerSecond);
            const used = (field: "cpuSeconds" | "generatorCpuSeconds") =>
              median(
                own.flatMap((record) =>
                  record[field] === undefined ? [] : [record[field] / record.seconds],
                ),
              );
            return [
              workers,
              median(rates),
              Math.min(...rates),
              Math.max(...rates),
              median(own.map(({ round, chunksPerSecond }) => chunksPerSecond / rateOf(1, round))),
              median(
                own.flatMap(({ cpuSeconds, chunks }) =>
                  cpuSeconds === undefined ? [] : [(cpuSeconds * 1e3) / chunks],
                ),
              ),
              used("cpuSeconds"),
              used("generatorCpuSeconds"),
            ];
          }),
        },
      ],
      goals: [],
      notes: [
        `Chunks of 1 MiB to Zstandard level 3, ${CONNECTIONS_PER_WORKER} connections per worker, ${SIZES[size].chunks} chunks once each; the start of the workers is in it. Ratios are medians of the ratios within a round.`,
        `${availableParallelism()} processors, which the event loop and the load use too: as many workers as processors are more than there is room for.`,
      ],
    };
  },
};

async function measure(
  workers: number,
  round: number,
  store: FieldStore,
  { size, freshFolder }: ExperimentContext,
): Promise<WorkersRecord> {
  const scratch = freshFolder("server");
  const keys = store.chunkKeys.slice(0, SIZES[size].chunks);
  const dataset = { location: store.directory, encoding: { compressor: { id: "zstd", level: 3 } } };
  const server = await startZpublish({
    datasets: { [store.id]: dataset },
    scratch,
    args: ["--workers", String(workers)],
  });
  try {
    const before = readProcessCost(server.pid);
    const paths = keys.map((key) => storePath(store, key));
    const load = await runNodeLoad({
      baseUrl: server.baseUrl,
      paths,
      headers: {},
      connections: workers * CONNECTIONS_PER_WORKER,
      length: "once",
      status: 200,
      scratch,
    });
    const after = readProcessCost(server.pid);
    checkLoad(load, `scale-workers: ${workers} workers`, server);
    const { requests, seconds, generatorCpuSeconds } = load;
    if (round === 0) await checkDecoded(server.baseUrl, store, keys.slice(0, 20));
    return {
      workers,
      round,
      chunks: requests,
      seconds,
      chunksPerSecond: requests / seconds,
      cpuSeconds: before && after && after.cpuSeconds - before.cpuSeconds,
      generatorCpuSeconds,
    };
  } finally {
    await server.stop();
  }
}
