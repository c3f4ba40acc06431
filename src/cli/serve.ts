import { setKernelUse } from "../codec/kernel/kernel-use.js";
import type { Config } from "../config/config.js";
import { isAwkwardInUrl } from "../config/dataset-id.js";
import { messageOf, ZpublishError } from "../errors.js";
import { exitOnUncaught } from "../observe/exit-on-uncaught.js";
import { createLog, type Log } from "../observe/log.js";
import type { RunningServer } from "../server.js";
import { createProgressReporter, type OpenProgress } from "./open-progress.js";
import { reloadConfig } from "./reload-config.js";
import { createReloader } from "./reloader.js";
import { EXIT_CODES } from "./report-error.js";

export type { RunningServer };

/** Opens all datasets and listens, as `startServer` does. */
export type StartServer = (
  config: Config,
  parts: { readonly log: Log; readonly progress: (progress: OpenProgress) => void },
) => Promise<RunningServer>;

/**
 * Runs a server until a signal ends it: prints one line with its URL on standard output when it is ready. TERM and
 * INT have it take its leave and exit with 0 (a second one exits at once), HUP reads the configuration again and looks for
 * new metadata.
 * @param readConfig What flags, variables and file say at that moment.
 * @throws ZpublishError where it cannot be started: `invalid-config`, or what kept a dataset from being opened.
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
    // An error that says its code is for the operator; any other is a mistake of ours, and needs its stack.
    if (!(error instanceof ZpublishError) && (error as NodeJS.ErrnoException).code === undefined) {
      log.error({ err: error }, "the server could not be started");
    }
    throw isListenFailure(error) ? new ZpublishError("internal", error.message, { cause: error }) : error;
  }
}

/** Loaded here and not above, so that help and mistakes in a configuration need nothing native. */
const startRealServer: StartServer = async (config, parts) => {
  if (config.processes > 1) {
    return (await import("../processes/start-processes.js")).startProcesses(config, parts);
  }
  if (!config.simd) setKernelUse(false);
  return (await import("../server.js")).startServer(config, parts);
};

/** That an address cannot be had is the machine's state, not a mistake in the operator's words: it exits with 1. */
function isListenFailure(error: unknown): error is ZpublishError {
  return error instanceof ZpublishError && error.code === "invalid-config" && "port" in error.details;
}

function warnOfIds({ datasets }: Config, log: Log): void {
  for (const { id } of datasets) {
    if (isAwkwardInUrl(id))
      log.warn({ dataset: id }, "clients must percent-encode this dataset's id in URLs");
  }
}

/**
 * Takes over the signals at once, so that one that comes while datasets are opened is not lost: what changed since the
 * configuration was read is read again when there is a server.
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

  const reloader = createReloader(async () => {
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
    else reloader.ask();
  });
  return {
    serve(started) {
      server = started;
      if (isReloadMissed) reloader.ask();
    },
  };
}
