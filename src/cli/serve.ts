import { setKernelUse } from "../codec/kernel/kernel-use.js";
import type { Config } from "../config/config.js";
import { isAwkwardInUrl } from "../config/dataset-id.js";
import { messageOf, ZpublishError } from "../errors.js";
import { exitOnUncaught } from "../observe/exit-on-uncaught.js";
import { createLog, type Log } from "../observe/log.js";
import type { RunningServer } from "../server.js";
import { createProgressReporter, type OpenProgress } from "./open-progress.js";
import { EXIT_CODES } from "./report-error.js";

export type { RunningServer };

/** Opens all datasets and listens, as `startServer` does. */
export type StartServer = (
  config: Config,
  parts: { readonly log: Log; readonly progress: (progress: OpenProgress) => void },
) => Promise<RunningServer>;

/**
 * Runs a server until a signal ends it: prints one line with its URL on standard output when it is ready. TERM and
 * INT close it and exit with 0 (a second one exits at once), HUP refreshes the datasets.
 * @throws ZpublishError where it cannot be started: `invalid-config`, or what kept a dataset from being opened.
 */
export async function runServe(config: Config, start: StartServer = startRealServer): Promise<RunningServer> {
  const log = createLog(config.logLevel);
  exitOnUncaught(log);
  const signals = handleSignals(log);
  const progress = createProgressReporter(process.stderr, log);
  try {
    for (const { id } of config.datasets) {
      if (isAwkwardInUrl(id))
        log.warn({ dataset: id }, "clients must percent-encode this dataset's id in URLs");
    }
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

/**
 * Takes over the signals at once, so that one that comes while datasets are opened is not lost: HUP would kill the
 * process then, and a refresh is not needed.
 */
function handleSignals(log: Log): { serve(server: RunningServer): void } {
  let server: RunningServer | undefined;
  let isStopping = false;

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
    if (server === undefined || isStopping) return;
    log.info("looking for new metadata");
    server.refresh().catch((error: unknown) => log.error({ err: error }, "refresh failed"));
  });
  return {
    serve(started) {
      server = started;
    },
  };
}
