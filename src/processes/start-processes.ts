import { createServer, type Server } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Config } from "../config/config.js";
import type { OptionKey } from "../config/options.js";
import { ZpublishError } from "../errors.js";
import { createOneAtATime } from "../event-loop/joined.js";
import { settlesWithin } from "../event-loop/settles-within.js";
import { listenFailure, probeAddress } from "../http/listening/listener.js";
import { counter, gauge, type MetricFamily } from "../observe/metrics.js";
import { keepRestartOnlyOptions } from "../server/restart-only-options.js";
import type { RunningServer, ServerParts } from "../server/server.js";
import {
  collectMetrics,
  type ServerProcess,
  type ServerProcessOptions,
  startServerProcess,
} from "./server-process.js";

/** A port that only the processes of this server share. */
export interface PortClaim {
  readonly port: number;
  /** Lets another server claim it once no process listens on it. */
  release(): void;
}

/**
 * Checks that a port is free, before processes listen on it with SO_REUSEPORT and would share it with any program. Two servers that
 * start in one instant would both find it free. So it first binds a name, an abstract socket of Linux, which the system removes with
 * the process.
 * @param port 0 picks a free one, which another program may still take before this server listens on it.
 * @throws ZpublishError `invalid-config` if the address is not available, as `HttpServer.listen` throws it.
 */
export async function claimPort(host: string, port: number): Promise<PortClaim> {
  // uWebSockets.js does not share a port that it was not given by its number.
  const claimed = port === 0 ? await probeAddress(host, 0) : port;
  const holder = await hold(`\0zpublish/${host}/${claimed}`);
  if (holder === "taken") throw listenFailure(host, claimed, { code: "EADDRINUSE" });
  try {
    if (port !== 0) await probeAddress(host, port);
  } catch (error) {
    holder?.close();
    throw error;
  }
  return { port: claimed, release: () => void holder?.close() };
}

/** Binds the name. Undefined if the system has no such sockets: then only the port is checked. */
function hold(name: string): Promise<Server | "taken" | undefined> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", (error: NodeJS.ErrnoException) => {
      resolve(error.code === "EADDRINUSE" ? "taken" : undefined);
    });
    server.listen({ path: name }, () => resolve(server.unref()));
  });
}

/** The part of a server process that a reload needs. */
export type ReloadableProcess = Pick<ServerProcess, "prepare" | "use" | "discard" | "hasEnded">;

/**
 * Applies another configuration to all processes, or to none. A process that ends meanwhile is passed over: its replacement starts
 * with the newest configuration.
 * @throws ZpublishError The reason of the first process that refused it.
 */
export async function reloadProcesses(
  processes: readonly ReloadableProcess[],
  config: Config,
): Promise<void> {
  // One alone first, as at start, so that a problem is logged once.
  for (const some of [processes.slice(0, 1), processes.slice(1)]) {
    const prepared = await Promise.allSettled(some.map((one) => one.prepare(config)));
    const index = prepared.findIndex(
      (outcome, at) => outcome.status === "rejected" && !some[at]?.hasEnded() && !isLeaving(outcome.reason),
    );
    if (index < 0) continue;
    await Promise.allSettled(processes.map((one) => one.discard()));
    throw (prepared[index] as PromiseRejectedResult).reason;
  }
  await Promise.allSettled(processes.map((one) => one.use()));
}

function isLeaving(reason: unknown): boolean {
  return reason instanceof ZpublishError && reason.code === "draining";
}

/** Pauses before a process that ended is started again. */
export interface RestartPolicy {
  /**
   * Counts an end and returns the pause before the next start: 0 at first, then longer each time.
   * @throws Error If there were too many ends within a minute.
   */
  delayMs(): number;
}

const PERIOD_MS = 60_000;
const MAX_PER_PERIOD = 10;

/**
 * Creates the policy of one process. Each has its own, so that a fault that ends all of them once does not end the program.
 * @param now Milliseconds of a monotonic clock; another one only in tests.
 */
export function createRestartPolicy(now: () => number = () => performance.now()): RestartPolicy {
  const ends: number[] = [];
  return {
    delayMs() {
      const time = now();
      while (ends.length > 0 && time - (ends[0] as number) > PERIOD_MS) ends.shift();
      ends.push(time);
      if (ends.length > MAX_PER_PERIOD) {
        throw new Error(`a server process has ended ${ends.length} times within ${PERIOD_MS / 1000} seconds`);
      }
      return ends.length === 1 ? 0 : retryDelayMs(ends.length - 1);
    },
  };
}

const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 5_000;

/** Returns the pause before the next attempt. @param failures Failures in a row, from 1. */
export function retryDelayMs(failures: number): number {
  return Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (failures - 1));
}

const FREE_PORT_ATTEMPTS = 5;
/** Attempts to replace a process while none serves: 16 seconds plus the time to start. */
const MAX_FAILURES_OF_ALL = 10;

/** Parts that the supervisor gets besides the configuration. */
export interface ProcessesParts extends Pick<ServerParts, "log" | "progress"> {
  /** Settings of the watchdogs; other ones only in tests. */
  readonly watch?: ServerProcessOptions["watch"];
}

/**
 * Starts the configured number of server processes on one port and keeps them running. This process, the supervisor, answers
 * no request: it triggers refreshes and reloads.
 * @throws ZpublishError The error that a single server would throw; no process stays alive.
 */
export async function startProcesses(
  first: Config,
  { log, progress, watch }: ProcessesParts,
): Promise<RunningServer> {
  let config = first;
  refuseOtherSystems(config.processes);
  // First, so that a port that is taken is reported before any dataset is opened.
  let claim = config.port === 0 ? undefined : await claimPort(config.host, config.port);
  const { admin } = config.observe;
  const adminClaim = admin === null ? undefined : await claimPort(admin.host, admin.port);
  const workers = Math.ceil(config.workers / config.processes);
  /** Runs reloads and replacements one at a time, so that all serving processes have the same configuration. */
  const oneAtATime = createOneAtATime();
  /** All processes, including those that do not listen yet. */
  const alive = new Set<ServerProcess>();
  /** Processes that answer requests. */
  const serving = new Set<ServerProcess>();
  const stopped = new AbortController();
  /** Number of processes that served and ended unexpectedly. */
  let ended = 0;
  let refreshing = new AbortController();

  /** Metrics of the supervisor. */
  function ownMetrics(): readonly MetricFamily[] {
    return [
      gauge("zpublish_processes", "Processes that answer requests.", serving.size),
      counter("zpublish_process_restarts_total", "Processes that ended without being told to.", ended),
    ];
  }

  function ofProcess(whole: Config): Config {
    const { observe } = whole;
    if (observe.admin === null || adminClaim === undefined) return { ...whole, workers };
    const shared = { ...observe.admin, port: adminClaim.port };
    return { ...whole, workers, observe: { ...observe, admin: shared } };
  }

  async function open(number: number): Promise<ServerProcess> {
    const started: ServerProcess = startServerProcess({
      number,
      watch,
      allMetrics: () => collectMetrics([...serving], ownMetrics),
      onHang: () => log.error({ process: number }, "a server process hangs, and is ended"),
      onProgress: (said) => progress?.(said),
    });
    alive.add(started);
    void started.ended.then(() => {
      alive.delete(started);
      serving.delete(started);
    });
    try {
      await started.open(ofProcess(config), config.processes);
      return started;
    } catch (error) {
      started.kill();
      throw error;
    }
  }

  async function listen(opened: ServerProcess, restarts = createRestartPolicy()): Promise<string> {
    const url = await opened.listen(claim?.port ?? config.port);
    serving.add(opened);
    void keep(opened, restarts);
    return url;
  }

  /** Has the first process listen. With port 0, another program may take the claimed port: then it claims another. */
  async function listenFirst(opened: ServerProcess): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      claim ??= await claimPort(config.host, 0);
      try {
        return await listen(opened);
      } catch (error) {
        if (config.port !== 0 || attempt === FREE_PORT_ATTEMPTS) throw error;
        claim.release();
        claim = undefined;
      }
    }
  }

  /**
   * Replaces a process when it has ended, unless the server closes. If the replacement cannot start, because a store is gone, say,
   * the supervisor retries as long as another process serves.
   * @throws Error If processes end too often or none can be started; the program ends with it.
   */
  async function keep(kept: ServerProcess, restarts: RestartPolicy): Promise<void> {
    const reason = await kept.ended;
    if (stopped.signal.aborted) return;
    const { number } = kept;
    ended++;
    log.error({ process: number, reason }, "a server process has ended; another takes its place");
    let delayMs: number;
    try {
      delayMs = restarts.delayMs();
    } catch (error) {
      // The other processes finish their requests.
      await close();
      throw error;
    }
    await pause(delayMs);
    for (let failures = 1; !stopped.signal.aborted; failures++) {
      try {
        await replace(number, restarts);
        log.info({ process: number }, "the server process is replaced");
        return;
      } catch (error) {
        if (stopped.signal.aborted) return;
        log.error({ process: number, err: error }, "a server process could not be replaced");
        if (serving.size === 0 && failures >= MAX_FAILURES_OF_ALL) {
          await close();
          throw error;
        }
      }
      await pause(retryDelayMs(failures));
    }
  }

  async function pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: stopped.signal }).catch(() => undefined);
  }

  async function replace(number: number, restarts: RestartPolicy): Promise<void> {
    const openedWith = config;
    const opened = await open(number);
    try {
      await oneAtATime(async () => {
        if (config !== openedWith) await reloadProcesses([opened], ofProcess(config));
        await listen(opened, restarts);
      });
    } catch (error) {
      opened.kill();
      throw error;
    }
  }

  async function refresh(): Promise<void> {
    await Promise.all([...serving].map((server) => server.refresh()));
  }

  /**
   * Refreshes all processes at the same time, periodically. The period starts at the end of the previous refresh, or when that
   * has taken a period. Replaces an earlier schedule.
   */
  async function refreshEvery(seconds: number): Promise<void> {
    const periodMs = seconds * 1000;
    refreshing.abort();
    refreshing = new AbortController();
    const { signal } = refreshing;
    while (seconds > 0) {
      await delay(periodMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (signal.aborted) return;
      await settlesWithin(refresh(), periodMs);
    }
  }

  async function reload(asked: Config): Promise<readonly OptionKey[]> {
    if (stopped.signal.aborted) throw new ZpublishError("draining", "the server is shutting down");
    if (serving.size === 0) {
      throw new ZpublishError("internal", "no server process serves that could try the new configuration");
    }
    const { config: next, ignored } = keepRestartOnlyOptions(config, asked);
    await reloadProcesses([...serving], ofProcess(next));
    config = next;
    if (!stopped.signal.aborted) void refreshEvery(config.refreshSeconds);
    return ignored;
  }

  async function close(): Promise<void> {
    stopped.abort();
    claim?.release();
    adminClaim?.release();
    const { delayMs, timeoutMs } = config.drain;
    await Promise.all(
      [...alive].map(async (server) => {
        // A process that does not serve yet has nothing to finish.
        if (!serving.has(server)) server.kill();
        else if (!(await server.close(delayMs + timeoutMs)))
          log.warn({ process: server.number }, "a server process hung, and was ended");
        await server.ended;
      }),
    );
    refreshing.abort();
  }

  try {
    // Alone, so that a problem with datasets or the cache is logged and repaired once.
    const first = await open(1);
    const others = await Promise.all(
      Array.from({ length: config.processes - 1 }, (_, index) => open(index + 2)),
    );
    const url = await listenFirst(first);
    await Promise.all(others.map((other) => listen(other)));
    void refreshEvery(config.refreshSeconds);
    return { url, refresh, reload: (asked) => oneAtATime(() => reload(asked)), close };
  } catch (error) {
    stopped.abort();
    claim?.release();
    adminClaim?.release();
    for (const server of alive) server.kill();
    throw error;
  }
}

function refuseOtherSystems(processes: number): void {
  if (process.platform === "linux") return;
  throw new ZpublishError(
    "invalid-config",
    `--processes: expected 1 on ${process.platform}, received ${processes}: only Linux spreads connections over processes that share a port`,
  );
}
