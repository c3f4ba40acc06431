import { errorToData } from "../errors.js";
import { settlesWithin } from "../event-loop/settles-within.js";
import type { Log } from "../observe/log.js";

/** Tells whether a server can answer requests. */
export interface Readiness {
  /** Reports readiness. Until the probes have passed once, it runs them and waits for up to 4 s. Never rejects. */
  check(): Promise<ReadinessReport>;
  /** True if the server is ready by the last results of the probes. Runs none. */
  readonly isReady: boolean;
  /** Lets the server become ready. */
  begin(): void;
  /** Makes the server not ready for good. */
  drain(): void;
}

/** The answer of `/readyz`. */
export interface ReadinessReport {
  readonly ready: boolean;
  /** State of the server, or the part that fails and the code of its error. Messages of errors may name files: they are in the log. */
  readonly reason?: string;
  /** A word or two about each part; empty unless the server is ready. */
  readonly checks: Readonly<Record<string, string>>;
}

/** Parts that readiness depends on. */
export interface ReadinessParts {
  /** Probes that have to pass before the server is ready, by part. Each resolves with a word about the part. */
  readonly probes: Readonly<Record<string, () => Promise<string>>>;
  /** Tells whether no worker lives and none can be started. Probes are then run again: they make the pool try to start one. */
  readonly isPoolBroken: () => boolean;
  /** A word about the cache, which keeps no server from being ready. */
  readonly cacheState: () => string;
  /** Gets one line when a part fails, and one when it works again. */
  readonly log: Log;
}

interface Problem {
  readonly part: string;
  readonly reason: string;
  readonly error?: unknown;
}

/** Balancers are told to wait for 5 s. */
const PROBE_WAIT_MS = 4_000;
const NO_WORKER: Problem = { part: "pool", reason: "pool: expected a worker to start, none does" };

/** Creates the readiness of a server that is starting. */
export function createReadiness({ probes, isPoolBroken, cacheState, log }: ReadinessParts): Readiness {
  let state: "starting" | "serving" | "draining" = "starting";
  let probing: Promise<void> | undefined;
  /** Results of the last run of the probes; undefined unless it has passed. */
  let passed: Readonly<Record<string, string>> | undefined;
  let problem: Problem | undefined;
  let reported: Problem | undefined;

  async function runProbes(): Promise<void> {
    const checks: Record<string, string> = {};
    for (const [part, probe] of Object.entries(probes)) {
      try {
        checks[part] = await probe();
      } catch (error) {
        problem = { part, reason: `${part}: ${errorToData(error).code}`, error };
        passed = undefined;
        return;
      }
    }
    problem = undefined;
    passed = checks;
  }

  function logChange(current: Problem | undefined): void {
    if (current?.reason === reported?.reason) return;
    const { part, error } = current ?? reported ?? NO_WORKER;
    reported = current;
    if (current === undefined) log.info({ part }, "a part of the server works again");
    else log.error({ err: error, part }, "a part of the server does not work: it is not ready");
  }

  return {
    async check() {
      if (state === "serving" && (passed === undefined || isPoolBroken())) {
        probing ??= runProbes().finally(() => {
          probing = undefined;
        });
        await settlesWithin(probing, PROBE_WAIT_MS);
      }
      if (state !== "serving") return { ready: false, reason: state, checks: {} };
      const current = isPoolBroken() ? NO_WORKER : problem;
      logChange(current);
      if (current !== undefined) return { ready: false, reason: current.reason, checks: {} };
      if (passed === undefined) return { ready: false, reason: "starting", checks: {} };
      return { ready: true, checks: { ...passed, cache: cacheState() } };
    },
    get isReady() {
      return state === "serving" && passed !== undefined && !isPoolBroken();
    },
    begin() {
      if (state === "starting") state = "serving";
    },
    drain() {
      state = "draining";
    },
  };
}
