import { setTimeout as delay } from "node:timers/promises";
import type { Config } from "../config/config.js";
import { messageOf, ZpublishError } from "../errors.js";
import type { RunningServer, ServerParts } from "../server.js";
import { settlesWithin } from "../settles-within.js";
import { createChunkTurns } from "./chunk-turns.js";
import { claimPort } from "./claim-port.js";
import { createRestartPolicy } from "./restart-policy.js";
import { type ServerProcess, startServerProcess } from "./server-process.js";

const FREE_PORT_ATTEMPTS = 5;

/**
 * Starts as many server processes as the configuration says, all on one port, and keeps them running. This process answers
 * no request: it says whose turn it is to make a chunk, and when to look for new metadata.
 * @throws ZpublishError What a single server would throw: nothing is left running then.
 */
export async function startProcesses(
  config: Config,
  { log, progress }: Pick<ServerParts, "log" | "progress">,
): Promise<RunningServer> {
  refuseOtherSystems(config.processes);
  // At once, so that a port that is taken is found before anything is opened.
  let claim = config.port === 0 ? undefined : await claimPort(config.host, config.port);
  const slotsPerMember = workersPerProcess(config);
  const turns = createChunkTurns({ slots: config.workers, slotsPerMember });
  const ofProcess: Config = { ...config, workers: slotsPerMember, refreshSeconds: 0 };
  const restarts = createRestartPolicy();
  /** All there are, those too that do not listen yet. */
  const alive = new Set<ServerProcess>();
  /** Those that answer requests. */
  const serving = new Set<ServerProcess>();
  const stopped = new AbortController();

  async function open(number: number): Promise<ServerProcess> {
    const started: ServerProcess = startServerProcess({
      number,
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
      await started.open(ofProcess, config.processes);
      return started;
    } catch (error) {
      started.kill();
      throw error;
    }
  }

  async function listen(opened: ServerProcess): Promise<string> {
    const url = await opened.listen(claim?.port ?? config.port);
    serving.add(opened);
    void keep(opened);
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

  /** Puts another in its place when it has ended, unless all are to end. */
  async function keep(kept: ServerProcess): Promise<void> {
    const how = await kept.ended;
    const { number } = kept;
    for (let reason = how; !stopped.signal.aborted; ) {
      log.error({ process: number, reason }, "a server process has ended; another takes its place");
      await delay(restarts.delayMs(), undefined, { signal: stopped.signal }).catch(() => undefined);
      if (stopped.signal.aborted) return;
      let next: ServerProcess | undefined;
      try {
        next = await open(number);
        await listen(next);
        log.info({ process: number }, "the server process is replaced");
        return;
      } catch (error) {
        next?.kill();
        reason = messageOf(error);
      }
    }
  }

  async function refresh(): Promise<void> {
    await Promise.all([...serving].map((server) => server.refresh()));
  }

  /** Counted from the end of the refresh before, or from when it had that long; all processes look at the same time. */
  async function refreshEvery(seconds: number): Promise<void> {
    const periodMs = seconds * 1000;
    while (seconds > 0 && !stopped.signal.aborted) {
      await delay(periodMs, undefined, { signal: stopped.signal }).catch(() => undefined);
      await settlesWithin(refresh(), periodMs);
    }
  }

  async function close(): Promise<void> {
    stopped.abort();
    claim?.release();
    await Promise.all(
      [...alive].map(async (server) => {
        // What does not serve yet has nothing to finish.
        if (!serving.has(server)) server.kill();
        else if (!(await server.close()))
          log.warn({ process: server.number }, "a server process hung, and was ended");
        await server.ended;
      }),
    );
  }

  try {
    // Alone, so that what is wrong is found, said and, in the cache, put right once.
    const first = await open(1);
    const others = await Promise.all(
      Array.from({ length: config.processes - 1 }, (_, index) => open(index + 2)),
    );
    const url = await listenFirst(first);
    await Promise.all(others.map(listen));
    void refreshEvery(config.refreshSeconds);
    return { url, refresh, close };
  } catch (error) {
    stopped.abort();
    claim?.release();
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
