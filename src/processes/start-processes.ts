import { setTimeout as delay } from "node:timers/promises";
import type { Config } from "../config/config.js";
import type { OptionKey } from "../config/options.js";
import { ZpublishError } from "../errors.js";
import { counter, gauge, type MetricFamily } from "../observe/metric-family.js";
import { createOneAtATime } from "../one-at-a-time.js";
import type { RunningServer, ServerParts } from "../server.js";
import { settlesWithin } from "../settles-within.js";
import { keepFixed } from "../site/keep-fixed.js";
import { allMetrics } from "./all-metrics.js";
import { createChunkTurns } from "./chunk-turns.js";
import { claimPort } from "./claim-port.js";
import { reloadProcesses } from "./reload-processes.js";
import { createRestartPolicy, type RestartPolicy, retryDelayMs } from "./restart-policy.js";
import { type ServerProcess, type ServerProcessOptions, startServerProcess } from "./server-process.js";

const FREE_PORT_ATTEMPTS = 5;
/** While none serves, a process is tried so often to be replaced: 16 seconds and what starting takes. */
const MAX_FAILURES_OF_ALL = 10;

export interface ProcessesParts extends Pick<ServerParts, "log" | "progress"> {
  /** When a process hangs; others than the default only in tests. */
  readonly watch?: ServerProcessOptions["watch"];
}

/**
 * Starts as many server processes as the configuration says, all on one port, and keeps them running. This process answers
 * no request: it says whose turn it is to make a chunk, and when to look for new metadata.
 * @throws ZpublishError What a single server would throw: nothing is left running then.
 */
export async function startProcesses(
  first: Config,
  { log, progress, watch }: ProcessesParts,
): Promise<RunningServer> {
  let config = first;
  refuseOtherSystems(config.processes);
  // At once, so that a port that is taken is found before anything is opened.
  let claim = config.port === 0 ? undefined : await claimPort(config.host, config.port);
  const { admin } = config.observe;
  const adminClaim = admin === null ? undefined : await claimPort(admin.host, admin.port);
  const slotsPerMember = workersPerProcess(config);
  const turns = createChunkTurns({ slots: config.workers, slotsPerMember });
  /** What changes the configuration, and what begins to serve: so that all who serve have the same. */
  const oneAtATime = createOneAtATime();
  /** All there are, those too that do not listen yet. */
  const alive = new Set<ServerProcess>();
  /** Those that answer requests. */
  const serving = new Set<ServerProcess>();
  const stopped = new AbortController();
  /** Processes that had served, and ended without being told to. */
  let ended = 0;
  let refreshing = new AbortController();

  /** What this process knows of all. */
  function ownMetrics(): readonly MetricFamily[] {
    return [
      gauge("zpublish_processes", "Processes that answer requests.", serving.size),
      counter("zpublish_process_restarts_total", "Processes that ended without being told to.", ended),
      gauge("zpublish_turns_making", "Chunks being made, over all processes.", turns.stats.making),
      gauge(
        "zpublish_turns_waiting",
        "Chunks that wait for their turn, over all processes.",
        turns.stats.waiting,
      ),
    ];
  }

  function ofProcess(whole: Config): Config {
    const { observe } = whole;
    if (observe.admin === null || adminClaim === undefined) return { ...whole, workers: slotsPerMember };
    const shared = { ...observe.admin, port: adminClaim.port };
    return { ...whole, workers: slotsPerMember, observe: { ...observe, admin: shared } };
  }

  async function open(number: number): Promise<ServerProcess> {
    const started: ServerProcess = startServerProcess({
      number,
      watch,
      allMetrics: () => allMetrics([...serving], ownMetrics),
      onHang: () => log.error({ process: number }, "a server process hangs, and is ended"),
      onTurnMessage: (message) => turns.receive(started, message),
      onProgress: (said) => progress?.(said),
    });
    alive.add(started);
    void started.ended.then(() => {
      alive.delete(started);
      serving.delete(started);
      turns.leave(started);
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

  /** Where any free port will do, another program may be quicker to take the one that was found. */
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
   * Puts another in its place when it has ended, unless all are to end. What keeps a new one from starting (a store that is gone,
   * say) need not keep the others from serving: it is tried again, as long as one of them does.
   * @throws Error Which ends the program: where processes end too often, or none can be started.
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
      // Those that serve finish what they have.
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
   * Counted from the end of the refresh before, or from when it had that long; all processes look at the same time. Takes
   * the place of what was said before.
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
    const { config: next, ignored } = keepFixed(config, asked);
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
        // What does not serve yet has nothing to finish.
        if (!serving.has(server)) server.kill();
        else if (!(await server.close(delayMs + timeoutMs)))
          log.warn({ process: server.number }, "a server process hung, and was ended");
        await server.ended;
      }),
    );
    refreshing.abort();
  }

  try {
    // Alone, so that what is wrong is found, said and, in the cache, put right once.
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

/**
 * Workers that one process may have at work. Twice its share: connections, and with them work, are not spread evenly.
 * How many work at a time over all processes is settled by turns.
 */
function workersPerProcess({ workers, processes }: Config): number {
  return Math.min(workers, 2 * Math.ceil(workers / processes));
}

function refuseOtherSystems(processes: number): void {
  if (process.platform === "linux") return;
  throw new ZpublishError(
    "invalid-config",
    `--processes: expected 1 on ${process.platform}, received ${processes}: only Linux spreads connections over processes that share a port`,
  );
}
