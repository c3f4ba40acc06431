import type { AdminEndpoint } from "../http/admin-endpoint.js";
import type { Readiness } from "./readiness.js";

/** Sources of the reports about a server's health. */
export interface HealthParts {
  readonly readiness: Pick<Readiness, "check">;
  /** Text of `/metrics`; undefined if there is no such endpoint. */
  readonly metrics?: { readonly contentType: string; readonly render: () => Promise<string> } | undefined;
}

const JSON_TYPE = "application/json";

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
    const { contentType, render } = metrics;
    endpoints.push({
      path: "/metrics",
      isOpen: false,
      answer: async () => ({ status: "200 OK", contentType, body: await render() }),
    });
  }
  return endpoints;
}
