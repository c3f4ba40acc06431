import type { Config } from "../config/config.js";
import { isAwkwardInUrl } from "../config/dataset-id.js";
import type { OpenProgress } from "../dataset/dataset-registry.js";
import { messageOf, ZpublishError } from "../errors.js";
import { exitOnUncaught } from "../observe/exit-on-uncaught.js";
import { createLog, type Log } from "../observe/log.js";
import type { RunningServer } from "../server/server.js";
import { createProgressReporter } from "./open-progress.js";
import { reloadConfig } from "./reload-config.js";
import { EXIT_CODES } from "./report-error.js";

export type { RunningServer };

/** Opens all datasets and listens, as `startServer` does. */
export type StartServer = (
  config: Config,
  parts: { readonly log: Log; readonly progress: (progress: OpenProgress) => void },
) => Promise<RunningServer>;

/**
 * Runs a server until a signal ends it. Prints one line with its URL on standard output when it is ready. TERM and INT
 * drain it and exit with 0 (a second one exits at once). HUP reads the configuration again and refreshes datasets.
 * @param readConfig Resolves flags, variables and file again.
 * @throws ZpublishError if the server cannot be started: `invalid-config`, or if a dataset cannot be opened.
 */
export async function runServe(
  readConfig: () => Config,
  start: StartServer = startRealServer,
): Promise<RunningServer> {
  const config = readConfig();
  const log = createLog(config.logLevel);
  exitOnUncaught(log);
  const signals = handleSignals(log, config, readConfig);
  const progress = createProgressReporter(process.stderr, log);
  try {
    warnOfIds(config, log);
    const server = await start(config, { log, progress: progress.update });
    progress.finish();
    process.stdout.write(`zpublish ready on ${server.url}\n`);
    signals.serve(server);
    return server;
  } catch (error) {
    progress.finish();
    // An error with a code is for the operator; any other error is a bug, and needs its stack.
    if (!(error instanceof ZpublishError) && (error as NodeJS.ErrnoException).code === undefined) {
      log.error({ err: error }, "the server could not be started");
    }
    throw isListenFailure(error) ? new ZpublishError("internal", error.message, { cause: error }) : error;
  }
}

/** Starts the server. Imported here and not above, so that help and wrong configurations load nothing native. */
const startRealServer: StartServer = async (config, parts) => {
  if (config.processes > 1) {
    return (await import("../processes/start-processes.js")).startProcesses(config, parts);
  }
  return (await import("../server/server.js")).startServer(config, parts);
};

/** Tells whether the server cannot listen on its address. That depends on the machine, not on the configuration: exit code 1. */
function isListenFailure(error: unknown): error is ZpublishError {
  return error instanceof ZpublishError && error.code === "invalid-config" && "port" in error.details;
}

function warnOfIds({ datasets, collections }: Config, log: Log): void {
  for (const { id } of datasets) {
    if (isAwkwardInUrl(id))
      log.warn({ dataset: id }, "clients must percent-encode this dataset's id in URLs");
  }
  for (const { name } of collections) {
    if (isAwkwardInUrl(name))
      log.warn(
        { collection: name },
        "clients must percent-encode ids that begin with this collection's name",
      );
  }
}

/**
 * Handles signals from the start, so that none is lost while datasets are opened. After a HUP at that time, the configuration
 * is read again as soon as the server runs.
 */
function handleSignals(
  log: Log,
  config: Config,
  readConfig: () => Config,
): { serve(server: RunningServer): void } {
  let current = config;
  let server: RunningServer | undefined;
  let isReloadMissed = false;
  let isStopping = false;

  const reload = onceAtATime(async () => {
    if (server === undefined || isStopping) return;
    const before = current;
    current = await reloadConfig({ server, log, readConfig, current });
    if (current !== before) warnOfIds(current, log);
    await server.refresh().catch((error: unknown) => log.error({ err: error }, "refresh failed"));
  });

  const stop = (signal: NodeJS.Signals, number: number): void => {
    if (server === undefined) process.exit(EXIT_CODES.done);
    if (isStopping) process.exit(128 + number);
    isStopping = true;
    log.info({ signal }, "closing");
    server.close().then(
      () => process.exit(EXIT_CODES.done),
      (error: unknown) => {
        log.error({ err: error }, `closing failed: ${messageOf(error)}`);
        process.exit(EXIT_CODES.failed);
      },
    );
  };
  process.on("SIGTERM", () => stop("SIGTERM", 15));
  process.on("SIGINT", () => stop("SIGINT", 2));
  process.on("SIGHUP", () => {
    if (server === undefined) isReloadMissed = true;
    else reload();
  });
  return {
    serve(started) {
      server = started;
      if (isReloadMissed) reload();
    },
  };
}

/** Runs `work` when asked, never twice at a time: if asked while it runs, it runs once more. */
function onceAtATime(work: () => Promise<void>): () => void {
  let isRunning = false;
  let isAsked = false;

  async function run(): Promise<void> {
    isRunning = true;
    while (isAsked) {
      isAsked = false;
      await work();
    }
    isRunning = false;
  }

  return () => {
    isAsked = true;
    if (!isRunning) void run();
  };
}
