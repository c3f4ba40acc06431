import type { MetricFamily } from "../observe/metric-family.js";
import type { ProcessMetrics } from "../observe/metrics.js";
import { settlesWithin } from "../settles-within.js";
import type { ServerProcess } from "./server-process.js";

/** How long a process may take for its metrics: one that hangs is left out. */
const METRICS_TIMEOUT_MS = 2_000;

/** The metrics of all processes that say theirs in time, and of the supervisor. Never rejects. */
export async function allMetrics(
  processes: readonly Pick<ServerProcess, "number" | "metrics">[],
  own: () => readonly MetricFamily[],
): Promise<readonly ProcessMetrics[]> {
  const all: ProcessMetrics[] = [];
  const asked = processes.map(async (process) => {
    const families = await process.metrics().catch(() => undefined);
    if (families !== undefined) all.push({ process: String(process.number), families });
  });
  await settlesWithin(Promise.all(asked), METRICS_TIMEOUT_MS);
  // What comes later is not for this answer.
  const inTime = all.toSorted((a, b) => Number(a.process) - Number(b.process));
  return [...inTime, { process: "supervisor", families: own() }];
}
