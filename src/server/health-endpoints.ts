import type { AdminEndpoint } from "../http/admin-endpoint.js";
import type { Readiness } from "./readiness.js";

/** Sources of the reports about a server's health. */
export interface HealthParts {
  readonly readiness: Pick<Readiness, "check">;
  /** Text of `/metrics`; undefined if there is no such endpoint. */
  readonly metrics?: { readonly contentType: string; readonly render: () => Promise<string> } | undefined;
}

const JSON_TYPE = "application/json";
/** Milliseconds for which a text of metrics answers further requests: it takes some milliseconds to make. */
const METRICS_FRESH_MS = 250;

const ALIVE = { status: "200 OK", contentType: JSON_TYPE, body: '{"status":"ok"}' };

/**
 * Creates `/healthz`, which shows that the event loop runs, `/readyz`, which reports whether the server can answer requests,
 * and `/metrics`. The first two need no token.
 */
export function createHealthEndpoints({ readiness, metrics }: HealthParts): AdminEndpoint[] {
  const endpoints: AdminEndpoint[] = [
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
    endpoints.push({
      path: "/metrics",
      isOpen: false,
      answer: async () => ({ status: "200 OK", contentType: metrics.contentType, body: await render() }),
    });
  }
  return endpoints;
}

/** Makes a text once for all requests at the same time and soon after. A failure is not reused. */
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
