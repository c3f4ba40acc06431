import type { ResultTable } from "../experiments/experiment.js";
import type { LoadName } from "./fleet-case.js";
import { caseOf, type FleetResult, type FleetScale, type FleetTopic, percent } from "./fleet-topic.js";
import type { PlacementName } from "./placements.js";

const EXPONENTS = [0.7, 0.9, 1.1] as const;
const CACHED_SHARES = [0.01, 0.03, 0.1, 0.3, 0.5] as const;
/** Requests per cached chunk, as many times as those of other topics: this table is for planning. */
const SIZE_TIMES = 3;
const FRONT_SHARES = [0, 0.01, 0.1, 1] as const;
const ALL_PLACEMENTS: readonly PlacementName[] = [
  ...(["in turn", "modulo", "consistent", "consistent, HAProxy"] as const),
  ...(["bounded, 150 %", "bounded, 125 %"] as const),
];
const FEW_PLACEMENTS: readonly PlacementName[] = [
  ...(["in turn", "consistent", "consistent, HAProxy", "bounded, 125 %"] as const),
];

/** Hit ratio by load and placement, the bucket's share, and how even the load is. */
export function spreadTopic(scale: FleetScale): FleetTopic {
  const loads: readonly (readonly [LoadName, number])[] = [
    ...EXPONENTS.map((exponent) => ["steady", exponent] as const),
    ...(["shifting", "scans"] as const).map((load) => [load, 0.9] as const),
  ];
  const cases = scale.instances.flatMap((instances) =>
    loads
      .filter(([load, exponent]) => instances !== scale.few || (load === "steady" && exponent > 0.7))
      .flatMap(([load, exponent]) =>
        (instances === scale.few || load !== "steady" ? FEW_PLACEMENTS : ALL_PLACEMENTS).map((placement) =>
          caseOf(scale, { instances, load, exponent, placement }),
        ),
      ),
  );
  const rowOf = ({ case: { instances, load, exponent } }: FleetResult) => [instances, nameOf(load, exponent)];
  return {
    cases,
    tables: (results) => [
      pivot("Hit ratio, by how requests are spread", results, rowOf, ({ hitRatio }) => percent(hitRatio)),
      pivot("Requests to the bucket per 1,000 requests", results, rowOf, (each) => each.bucketPer1000),
      pivot("Requests to the busiest instance, times the mean", results, rowOf, (each) => each.peakToMean),
      pivot(
        "Requests under way at the busiest instance, times the mean",
        results,
        rowOf,
        (each) => each.peakUnderWay,
      ),
    ],
  };
}

/** Hit ratio by the share of the data that all caches hold together. */
export function cacheSizeTopic(scale: FleetScale): FleetTopic {
  const instances = scale.usual;
  const requestsPerChunk = scale.requestsPerChunk(instances) * SIZE_TIMES;
  const cases = CACHED_SHARES.flatMap((cachedShare) =>
    EXPONENTS.map((exponent) => caseOf(scale, { instances, exponent, cachedShare, requestsPerChunk })),
  );
  return {
    cases,
    tables: (results) => [
      {
        title: `Hit ratio by cache, ${instances} instances, consistent`,
        columns: [
          "all caches, share of the data",
          ...EXPONENTS.map((exponent) => nameOf("steady", exponent)),
        ],
        rows: CACHED_SHARES.map((share) => [
          percent(share, 0),
          ...results
            .filter(({ case: { cachedShare } }) => cachedShare === share)
            .map(({ hitRatio }) => percent(hitRatio)),
        ]),
      },
    ],
  };
}

/** What a shared cache in front of the balancer saves. */
export function frontTopic(scale: FleetScale): FleetTopic {
  const sizes = scale.instances.filter((instances) => instances !== scale.instances[0]);
  const cases = (sizes.length === 0 ? scale.instances : sizes).flatMap((instances) =>
    (instances === scale.few ? EXPONENTS.slice(1) : EXPONENTS).flatMap((exponent) =>
      FRONT_SHARES.map((frontShare) => caseOf(scale, { instances, exponent, frontShare })),
    ),
  );
  return {
    cases,
    tables: (results) => [
      {
        title: "A shared cache (least recently used) in front of the balancer, consistent",
        columns: [
          ...["instances", "load", "its size, share of all caches", "answered by it", "hit ratio of all"],
          ...["bucket per 1,000", "busiest instance, times the mean", "busiest per 1,000 requests"],
        ],
        rows: results.map((each) => [
          each.case.instances,
          nameOf(each.case.load, each.case.exponent),
          percent(each.case.frontShare, 0),
          percent(each.frontRatio),
          percent(each.hitRatio),
          each.bucketPer1000,
          each.peakToMean,
          each.peakPer1000,
        ]),
      },
    ],
  };
}

/** A table with a column per placement. */
function pivot(
  title: string,
  results: readonly FleetResult[],
  rowOf: (result: FleetResult) => readonly (string | number)[],
  cellOf: (result: FleetResult) => string | number,
): ResultTable {
  const rows = new Map<string, FleetResult[]>();
  for (const result of results) {
    const key = rowOf(result).join();
    rows.set(key, [...(rows.get(key) ?? []), result]);
  }
  return {
    title,
    columns: ["instances", "load", ...ALL_PLACEMENTS],
    rows: [...rows.values()].map((row) => [
      ...rowOf(row[0]!),
      ...ALL_PLACEMENTS.map((placement) => {
        const found = row.find((each) => each.case.placement === placement);
        return found && cellOf(found);
      }),
    ]),
  };
}

function nameOf(load: LoadName, exponent: number): string {
  return load === "steady" ? `Zipf ${exponent}` : `Zipf ${exponent}, ${load}`;
}
