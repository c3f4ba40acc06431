import { availableParallelism } from "node:os";
import { eventTopic } from "../fleet/event-topic.js";
import { cacheSizeTopic, frontTopic, spreadTopic } from "../fleet/fleet-tables.js";
import type { FleetResult, FleetScale } from "../fleet/fleet-topic.js";
import { runCases } from "../fleet/run-cases.js";
import { formatCell } from "../report/markdown-cells.js";
import type { Experiment, ExperimentSize } from "./experiment.js";

/** Chunks in all caches; each of 1,000 instances has enough of them for the policy to know their average size. */
const SCALES: Readonly<Record<ExperimentSize, Omit<FleetScale, "seed">>> = {
  full: {
    instances: [3, 10, 100, 1_000],
    cachedChunks: (instances) => (instances === 1_000 ? 100_000 : 10_000),
    requestsPerChunk: (instances) => (instances === 1_000 ? 5 : 8),
    few: 1_000,
    usual: 10,
  },
  small: {
    instances: [3, 10],
    cachedChunks: () => 2_000,
    requestsPerChunk: () => 8,
    few: 10,
    usual: 10,
  },
  tiny: { instances: [3], cachedChunks: () => 300, requestsPerChunk: () => 4, few: 1_000, usual: 3 },
};

/** Fleets of instances behind a balancer, simulated with the cache policy itself. */
export const fleet: Experiment = {
  title:
    "3 to 1,000 instances behind a balancer, simulated: hits, requests to the bucket, the busiest instance",
  async run({ size, seed = 1, onProgress }) {
    const scale = { ...SCALES[size], seed };
    const topics = [spreadTopic(scale), cacheSizeTopic(scale), eventTopic(scale), frontTopic(scale)];
    const cases = topics.flatMap((topic) => topic.cases);
    const outcomes = await runCases(cases, Math.min(2, availableParallelism()), (done) =>
      onProgress(done, `${cases.length} simulations`),
    );
    const results: FleetResult[] = cases.map((each, i) => ({ case: each, ...outcomes[i]! }));
    let from = 0;
    const tables = topics.flatMap((topic) => {
      const own = results.slice(from, from + topic.cases.length);
      from += own.length;
      return topic.tables(own);
    });
    const scales = scale.instances.map(
      (instances) =>
        `${formatCell(scale.cachedChunks(instances))} chunks and ${scale.requestsPerChunk(instances)} requests per chunk for ${formatCell(instances)} instances`,
    );
    return {
      tables,
      goals: [],
      records: results.map(({ case: each, windows, ...numbers }) => ({ ...each, ...numbers })),
      notes: [
        `A simulation: the cache policy and its writer are the server's own code, over a list in memory in place of LMDB; balancers are their published algorithms. Seed ${seed}; the same seed gives the same tables.`,
        `Scale, of all caches together: ${scales.join("; ")}. That is a tenth of the data unless the table says otherwise. First, each of the most popular chunks that fit is asked for; of the requests that follow, the second half counts. They are three times as many in the table by cache, and one and a half times in that of events. After many more, hit ratios are one to two points higher.`,
        "One request at a time: requests for one chunk at once, which an instance answers with one request to the bucket, are not played. Requests that only ask the bucket if an object is unchanged are not counted.",
        "Bounded loads: a hit is under way for two requests per instance, a request to the bucket ten times as long.",
        "Shifting: what is popular moves on by a tenth of the data four times. Scans: a fifth of the requests read other data once, end to end. Neither is a property of data that was measured.",
        `Lost: the balancer's checks fail and the list stays. Removed: it leaves the list. Restart: one instance after another, at most ten steps; requests are counted from its end. Within so many points of the same requests undisturbed; 1 is as many requests as all caches hold chunks.`,
      ],
    };
  },
};
