import type { Readiness } from "../health/readiness.js";
import type { Operation } from "./operation.js";

export interface HealthParts {
  readonly readiness: Pick<Readiness, "check">;
  /** Text of `/metrics`; undefined: there is none. */
  readonly metrics?: { readonly contentType: string; readonly render: () => Promise<string> } | undefined;
}

const JSON_TYPE = "application/json";
/** How long a text of metrics is given to others who ask: it takes some milliseconds to make. */
const METRICS_FRESH_MS = 250;

const ALIVE = { status: "200 OK", contentType: JSON_TYPE, body: '{"status":"ok"}' };

/**
 * `/healthz`: that the event loop turns, and no more; `/readyz`: that requests can be answered; `/metrics`. The first two
 * are for whoever asks, with or without a token.
 */
export function createHealthOperations({ readiness, metrics }: HealthParts): Operation[] {
  const operations: Operation[] = [
    { path: "/healthz", isOpen: true, answer: () => ALIVE },
    {
      path: "/readyz",
      isOpen: true,
      async answer() {
        const report = await readiness.check();
        const body = JSON.stringify(report);
        return report.ready
          ? { status: "200 OK", contentType: JSON_TYPE, body }
          : { status: "503 Service Unavailable", contentType: JSON_TYPE, body, retryAfterSeconds: 1 };
      },
    },
  ];
  if (metrics !== undefined) {
    const render = onceInAWhile(metrics.render, METRICS_FRESH_MS);
    operations.push({
      path: "/metrics",
      isOpen: false,
      answer: async () => ({ status: "200 OK", contentType: metrics.contentType, body: await render() }),
    });
  }
  return operations;
}

/** For all who ask at the same time or soon after; a failure is not kept. */
function onceInAWhile(make: () => Promise<string>, freshMs: number): () => Promise<string> {
  let made: Promise<string> | undefined;
  let staleAt = 0;
  return () => {
    if (made !== undefined && performance.now() < staleAt) return made;
    const making = make();
    made = making;
    staleAt = Number.POSITIVE_INFINITY;
    making.then(
      () => {
        staleAt = performance.now() + freshMs;
      },
      () => {
        staleAt = 0;
      },
    );
    return making;
  };
}
