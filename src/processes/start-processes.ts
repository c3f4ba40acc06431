import { randomBytes } from "node:crypto";
import { createServer, type Server } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Config } from "../config/config.js";
import { keepRestartOnlyOptions, type OptionKey } from "../config/options.js";
import { createRefreshScheduler } from "../dataset/refresh-scheduler.js";
import { ZpublishError } from "../errors.js";
import { createOneAtATime } from "../event-loop/joined.js";
import { listenFailure, probeAddress } from "../http/listening/listener.js";
import { counter, gauge, type MetricFamily } from "../observe/metrics.js";
import type { RunningServer, ServerParts } from "../server/server.js";
import {
  collectMetrics,
  createServerProcess,
  type Listening,
  type ServerProcess,
  type ServerProcessOptions,
} from "./server-process.js";

/** A port that only the processes of this server share. */
interface PortClaim {
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
async function claimPort(host: string, port: number): Promise<PortClaim> {
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

/**
 * Applies another configuration to all processes, or to none. A process that ends meanwhile is passed over: its replacement starts
 * with the newest configuration.
 * @throws ZpublishError The reason of the first process that refused it.
 */
async function reloadProcesses(processes: readonly ServerProcess[], config: Config): Promise<void> {
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

const PERIOD_MS = 60_000;
const MAX_PER_PERIOD = 10;

/**
 * Creates a function that counts an end of one process, and returns the pause before the next start: 0 at first, then longer each time.
 * It throws an error if there were too many ends within a minute. Each process has its own, so that a fault that ends all of them once
 * does not end the program.
 */
function createRestartPolicy(): () => number {
  const ends: number[] = [];
  return () => {
    const time = performance.now();
    while (ends.length > 0 && time - ends[0]! > PERIOD_MS) ends.shift();
    ends.push(time);
    if (ends.length > MAX_PER_PERIOD) {
      throw new Error(`a server process has ended ${ends.length} times within ${PERIOD_MS / 1000} seconds`);
    }
    return ends.length === 1 ? 0 : retryDelayMs(ends.length - 1);
  };
}

const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 5_000;

/** Returns the pause before the next attempt. @param failures Failures in a row, from 1. */
function retryDelayMs(failures: number): number {
  return Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (failures - 1));
}

const FREE_PORT_ATTEMPTS = 5;

/** Ports of a server that all its processes share. */
interface ClaimedPorts {
  /** Undefined if health and metrics have no port of their own. */
  readonly admin: number | undefined;
  /** Has a process listen on the main port. With port 0, another program may take the claimed one: then it claims another. */
  listen(opened: ServerProcess): Promise<Listening>;
  release(): void;
}

async function claimPorts({ host, port, observe: { admin } }: Config): Promise<ClaimedPorts> {
  let claim = port === 0 ? undefined : await claimPort(host, port);
  const ofAdmin = admin === null ? undefined : await claimPort(admin.host, admin.port);
  let isFixed = port !== 0;
  return {
    admin: ofAdmin?.port,
    async listen(opened) {
      for (let attempt = 1; ; attempt++) {
        claim ??= await claimPort(host, 0);
        try {
          const listening = await opened.listen(claim.port);
          isFixed = true;
          return listening;
        } catch (error) {
          if (isFixed || attempt === FREE_PORT_ATTEMPTS) throw error;
          claim.release();
          claim = undefined;
        }
      }
    },
    release() {
      claim?.release();
      ofAdmin?.release();
    },
  };
}

/** Attempts to replace a process while none serves: 16 seconds plus the time to start. */
const MAX_FAILURES_OF_ALL = 10;

/** Means to keep one place served. */
interface PlaceParts {
  readonly log: ProcessesParts["log"];
  /** Aborted when the server closes. */
  readonly signal: AbortSignal;
  /** Called when a process has ended unexpectedly. */
  readonly onEnd: () => void;
  /** Starts a process that serves in place of another. */
  readonly replace: (number: number) => Promise<ServerProcess>;
  readonly isAnyServing: () => boolean;
}

/**
 * Replaces the process of a place whenever it has ended, until the server closes.
 * @throws Error If processes end too often or none can be started.
 */
async function keepServed(first: ServerProcess, parts: PlaceParts): Promise<void> {
  const { log, signal, onEnd } = parts;
  const restartDelayMs = createRestartPolicy();
  for (let kept: ServerProcess | undefined = first; kept !== undefined; ) {
    const reason: string = await kept.ended;
    if (signal.aborted) return;
    onEnd();
    log.error({ process: kept.number, reason }, "a server process has ended; another takes its place");
    await pause(restartDelayMs(), signal);
    kept = await replaceUntilServed(kept.number, parts);
  }
}

/** Tries again as long as another process serves: a store may be gone for a while. @returns undefined if the server closes. */
async function replaceUntilServed(
  number: number,
  { log, signal, replace, isAnyServing }: PlaceParts,
): Promise<ServerProcess | undefined> {
  for (let failures = 1; !signal.aborted; failures++) {
    try {
      const replacement = await replace(number);
      log.info({ process: number }, "the server process is replaced");
      return replacement;
    } catch (error) {
      if (signal.aborted) return undefined;
      log.error({ process: number, err: error }, "a server process could not be replaced");
      if (!isAnyServing() && failures >= MAX_FAILURES_OF_ALL) throw error;
    }
    await pause(retryDelayMs(failures), signal);
  }
  return undefined;
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}

/** Parts that the supervisor gets besides the configuration. */
interface ProcessesParts extends Pick<ServerParts, "log" | "progress"> {
  /** Settings of the watchdogs; other ones only in tests. */
  readonly watch?: ServerProcessOptions["watch"];
}

/**
 * Starts the configured number of server processes on one port and keeps them running. This process, the supervisor, answers
 * no request: it triggers refreshes and reloads.
 * @throws ZpublishError The error that a single server would throw; no process stays alive.
 */
export async function startProcesses(config: Config, parts: ProcessesParts): Promise<RunningServer> {
  refuseOtherSystems(config.processes);
  // First, so that a port that is taken is reported before any dataset is opened.
  const supervisor = createSupervisor(config, await claimPorts(config), parts);
  try {
    return { ...(await supervisor.start()), ...supervisor };
  } catch (error) {
    supervisor.kill();
    throw error;
  }
}

function createSupervisor(first: Config, ports: ClaimedPorts, { log, progress, watch }: ProcessesParts) {
  let config = first;
  /** Runs reloads and replacements one at a time, so that all serving processes have the same configuration. */
  const oneAtATime = createOneAtATime();
  /** All processes, including those that do not listen yet. */
  const alive = new Set<ServerProcess>();
  /** Processes that answer requests. */
  const serving = new Set<ServerProcess>();
  const stopped = new AbortController();
  const signingKey = randomBytes(32).toString("hex");
  const refresh = async () => void (await Promise.all([...serving].map((server) => server.refresh())));
  const scheduler = createRefreshScheduler();
  scheduler.addTask(refresh);
  /** Number of processes that served and ended unexpectedly. */
  let ended = 0;

  async function open(number: number): Promise<ServerProcess> {
    const started = createServerProcess({
      number,
      watch,
      allMetrics: () => collectMetrics([...serving], () => metricsOf(serving.size, ended)),
      onHang: () => log.error({ process: number }, "a server process hangs, and is ended"),
      onProgress: (said) => progress?.(said),
    });
    alive.add(started);
    void started.ended.then(() => {
      alive.delete(started);
      serving.delete(started);
    });
    try {
      await started.open(configOfProcess(config, ports), { processes: config.processes, signingKey });
      return started;
    } catch (error) {
      started.kill();
      throw error;
    }
  }

  async function listen(opened: ServerProcess): Promise<Listening> {
    const listening = await ports.listen(opened);
    serving.add(opened);
    return listening;
  }

  async function replace(number: number): Promise<ServerProcess> {
    const openedWith = config;
    const opened = await open(number);
    try {
      await oneAtATime(async () => {
        if (config !== openedWith) await reloadProcesses([opened], configOfProcess(config, ports));
        await listen(opened);
      });
      return opened;
    } catch (error) {
      opened.kill();
      throw error;
    }
  }

  /** Keeps the place of a process served. If that fails, the other processes finish their requests, and the program ends. */
  async function keep(served: ServerProcess): Promise<void> {
    const parts = { log, signal: stopped.signal, onEnd: () => ended++, isAnyServing: () => serving.size > 0 };
    try {
      await keepServed(served, { ...parts, replace });
    } catch (error) {
      await close();
      throw error;
    }
  }

  async function start(): Promise<Listening> {
    // Alone, so that a problem with datasets or the cache is logged and repaired once.
    const one = await open(1);
    const others = await Promise.all(
      Array.from({ length: config.processes - 1 }, (_, index) => open(index + 2)),
    );
    const listening = await listen(one);
    void keep(one);
    await Promise.all(
      others.map(async (other) => {
        await listen(other);
        void keep(other);
      }),
    );
    scheduler.every(config.refreshSeconds);
    return listening;
  }

  async function reload(asked: Config): Promise<readonly OptionKey[]> {
    if (stopped.signal.aborted) throw new ZpublishError("draining", "the server is shutting down");
    if (serving.size === 0) {
      throw new ZpublishError("internal", "no server process serves that could try the new configuration");
    }
    const { config: next, ignored } = keepRestartOnlyOptions(config, asked);
    await reloadProcesses([...serving], configOfProcess(next, ports));
    config = next;
    if (!stopped.signal.aborted) scheduler.every(config.refreshSeconds);
    return ignored;
  }

  function stop(): void {
    stopped.abort();
    scheduler.close();
    ports.release();
  }

  async function close(): Promise<void> {
    stop();
    await Promise.all(
      [...alive].map((server) => closeProcess(server, serving.has(server), config.drain, log)),
    );
  }

  function kill(): void {
    stop();
    for (const server of alive) server.kill();
  }

  return { start, refresh, reload: (asked: Config) => oneAtATime(() => reload(asked)), close, kill };
}

/** Returns the metrics of the supervisor. */
function metricsOf(serving: number, ended: number): readonly MetricFamily[] {
  return [
    gauge("zpublish_processes", "Processes that answer requests.", serving),
    counter("zpublish_process_restarts_total", "Processes that ended without being told to.", ended),
  ];
}

async function closeProcess(
  server: ServerProcess,
  isServing: boolean,
  { delayMs, timeoutMs }: Config["drain"],
  log: ProcessesParts["log"],
): Promise<void> {
  // A process that does not serve yet has nothing to finish.
  if (!isServing) server.kill();
  else if (!(await server.close(delayMs + timeoutMs)))
    log.warn({ process: server.number }, "a server process hung, and was ended");
  await server.ended;
}

/** Returns the configuration of one process: its share of the workers, and the port of health and metrics that all share. */
function configOfProcess(config: Config, { admin }: ClaimedPorts): Config {
  const workers = Math.ceil(config.workers / config.processes);
  const { observe } = config;
  if (observe.admin === null || admin === undefined) return { ...config, workers };
  return { ...config, workers, observe: { ...observe, admin: { ...observe.admin, port: admin } } };
}

function refuseOtherSystems(processes: number): void {
  if (process.platform === "linux") return;
  throw new ZpublishError(
    "invalid-config",
    `--processes: expected 1 on ${process.platform}, received ${processes}: only Linux spreads connections over processes that share a port`,
  );
}
