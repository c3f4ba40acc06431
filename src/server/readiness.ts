import { errorFromData, errorToData } from "../errors.js";
import { joined } from "../event-loop/joined.js";
import { settlesWithin } from "../event-loop/settles-within.js";
import type { AdminEndpoint } from "../http/admin-endpoint.js";
import type { Log } from "../observe/log.js";
import { createMemorySource } from "../open/memory-source.js";
import type { EncodePool } from "../pool/encode-pool.js";
import { createEncodingPlan } from "../zarr/plan/create-encoding-plan.js";
import type { StoredArray } from "../zarr/stored-array.js";

/** Tells whether a server can answer requests. */
export type Readiness = ReturnType<typeof createReadiness>;

/** The answer of `/readyz`. */
export interface ReadinessReport {
  readonly ready: boolean;
  /** State of the server, or the code of the pool's error. Messages of errors may name files: they are in the log. */
  readonly reason?: string;
  /** A word or two about pool and cache; empty unless the server is ready. */
  readonly checks: Readonly<Record<string, string>>;
}

/** Parts that readiness depends on. */
export interface ReadinessParts {
  /** Returns the pool; undefined if the server needs none. */
  readonly pool: () => Pick<EncodePool, "makeChunk" | "stats"> | undefined;
  /** A word about the cache, which keeps no server from being ready. */
  readonly cacheState: () => string;
  /** Gets one line when the pool fails, and one when it works again. */
  readonly log: Log;
}

/** Balancers are told to wait for 5 s. */
const PROBE_WAIT_MS = 4_000;
const NO_WORKER = "pool: expected a worker to start, none does";

/** Creates the readiness of a server that is starting. */
export function createReadiness({ pool, cacheState, log }: ReadinessParts) {
  let state: "starting" | "serving" | "draining" = "starting";
  let hasPassed = false;
  let failure: unknown;
  let reported: string | undefined;
  const isBroken = () => pool()?.stats.isBroken ?? false;

  /** Tries the pool. If no worker lives, that makes it try to start one. */
  const probe = joined(async () => {
    try {
      await probePool(pool());
      hasPassed = true;
      failure = undefined;
    } catch (error) {
      hasPassed = false;
      failure = error;
    }
  });

  function logChange(reason: string | undefined): void {
    if (reason === reported) return;
    reported = reason;
    if (reason === undefined) log.info("workers make chunks again");
    else log.error({ err: failure }, "no worker can make chunks: the server is not ready");
  }

  return {
    /** Reports readiness. Until a worker has made a chunk, it asks for one and waits for up to 4 s. Never rejects. */
    async check(): Promise<ReadinessReport> {
      if (state === "serving" && (!hasPassed || isBroken())) {
        await settlesWithin(probe(), PROBE_WAIT_MS);
      }
      if (state !== "serving") return { ready: false, reason: state, checks: {} };
      const code = failure === undefined ? undefined : `pool: ${errorToData(failure).code}`;
      const reason = isBroken() ? NO_WORKER : code;
      logChange(reason);
      if (reason !== undefined) return { ready: false, reason, checks: {} };
      if (!hasPassed) return { ready: false, reason: "starting", checks: {} };
      return { ready: true, checks: { pool: pool() === undefined ? "none" : "ok", cache: cacheState() } };
    },
    /** True if the server is ready by the last result. */
    get isReady() {
      return state === "serving" && hasPassed && !isBroken();
    },
    /**
     * Lets the server become ready.
     * @param workers Workers that start now rather than with the first chunks, which would wait for their modules to be loaded.
     */
    begin(workers: number) {
      if (state !== "starting") return;
      state = "serving";
      // Behind the line that says that the server is ready. Whether a worker can start, `check` tells.
      setImmediate(() => {
        for (let i = 0; i < workers; i++) void probePool(pool()).catch(() => undefined);
      });
    },
    /** Makes the server not ready for good. */
    drain() {
      state = "draining";
    },
  };
}

/** Has a worker encode a small chunk that belongs to no dataset. @throws ZpublishError if that fails. */
async function probePool(pool: Pick<EncodePool, "makeChunk"> | undefined): Promise<void> {
  if (pool === undefined) return;
  const arrays = [{ name: "probe", data: new Int16Array(4_096), shape: [4_096] }];
  const tree = await createMemorySource({ groups: [{ path: "/", arrays }] }).readTree();
  const { plan } = createEncodingPlan(tree.groups[0]?.arrays[0] as StoredArray, {});
  const outcome = await pool.makeChunk({ plan, chunkCoords: [0] });
  if (outcome.status === "failed") throw errorFromData(outcome.error);
}

/** Sources of the reports about a server's health. */
interface HealthParts {
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
