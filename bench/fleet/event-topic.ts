import { formatNumber } from "../report/markdown-cells.js";
import { type EventName, windowOf } from "./fleet-case.js";
import { caseOf, type FleetResult, type FleetScale, type FleetTopic, percent } from "./fleet-topic.js";
import type { PlacementName } from "./placements.js";

/** Placed consistently, an instance that leaves the list is the same as one whose checks fail. */
const EVENTS: Readonly<Partial<Record<PlacementName, readonly EventName[]>>> = {
  modulo: ["lost", "removed", "restart, cache kept", "restart, cache lost"],
  consistent: ["lost", "restart, cache kept", "restart, cache lost"],
};
/** Differences of hit ratios from which a fleet counts as recovered. */
const BACK_WITHIN = [0.05, 0.02] as const;
/** Requests per cached chunk, as many times as those of other topics: half of them follow the event. */
const EVENT_TIMES = 1.5;

/** Instances that are lost and restarted: how long the caches take to recover, and what that costs. */
export function eventTopic(scale: FleetScale): FleetTopic {
  const groups = scale.instances.flatMap((instances) =>
    (instances === scale.few ? (["consistent"] as const) : (["modulo", "consistent"] as const)).map(
      (placement) => ({ instances, placement }),
    ),
  );
  const cases = groups.flatMap((group) =>
    (["none", ...EVENTS[group.placement]!] as const).map((event) =>
      caseOf(scale, {
        ...group,
        requestsPerChunk: scale.requestsPerChunk(group.instances) * EVENT_TIMES,
        event,
      }),
    ),
  );
  return {
    cases,
    tables: (results) => {
      let undisturbed = results[0]!;
      const rows = results.flatMap((each) => {
        const { instances, placement, event } = each.case;
        if (event === "none") {
          undisturbed = each;
          return [];
        }
        const { lowest, back, extra } = recovery(each, undisturbed);
        return [
          [instances, placement, event, percent(undisturbed.hitRatio), percent(lowest), ...back, extra],
        ];
      });
      return [
        {
          title: "Instances lost and restarted, Zipf 0.9; requests per cached chunk",
          columns: [
            ...["instances", "spread", "event", "hit ratio undisturbed", "lowest"],
            ...BACK_WITHIN.map((points) => `requests until within ${points * 100} points`),
            "more requests to the bucket",
          ],
          rows,
        },
      ];
    },
  };
}

/** Windows of a disturbed run beside those of the same load undisturbed. */
function recovery(each: FleetResult, undisturbed: FleetResult) {
  const window = windowOf(each.case);
  const { cachedChunks } = each.case;
  const more = each.windows.map((count, i) => count - undisturbed.windows[i]!);
  const lowest = 1 - Math.max(...each.windows) / window;
  const end = Math.ceil(each.eventRequests / window);
  return {
    lowest,
    back: BACK_WITHIN.map((points) => {
      const isBack = (count = 0) => count <= window * points;
      // Two in a row, since one may be so by chance.
      const at = more.findIndex((count, i) => i >= end && isBack(count) && isBack(more[i + 1]));
      return at === -1
        ? `more than ${formatNumber(((more.length - end) * window) / cachedChunks)}`
        : formatNumber(((at - end) * window) / cachedChunks);
    }),
    extra: more.reduce((sum, count) => sum + count, 0) / cachedChunks,
  };
}
