import type { Config } from "../config/config.js";
import { flagOf } from "../config/options.js";
import type { OpenProgress } from "../dataset/dataset-registry.js";
import { messageOf, ZpublishError } from "../errors.js";
import { createOneAtATime } from "../event-loop/joined.js";
import { createLog, exitOnUncaught, type Log } from "../observe/log.js";
import type { RunningServer } from "../server/server.js";
import { EXIT_CODES } from "./output.js";
import { createOpenReporter } from "./progress.js";

/** Parts that a reload needs. */
interface ReloadParts {
  readonly server: Pick<RunningServer, "reload">;
  readonly log: Log;
  /** Resolves flags, variables and file again. @throws ZpublishError `invalid-config` */
  readonly readConfig: () => Config;
  /** The configuration that is in use. */
  readonly current: Config;
}

/**
 * Reads the configuration again, and replaces the one in use as a whole or not at all. Logs the result. Never rejects.
 * @returns The configuration that is in use now.
 */
async function reloadConfig({ server, log, readConfig, current }: ReloadParts): Promise<Config> {
  log.info("reloading the configuration");
  try {
    const next = readConfig();
    const ignored = await server.reload(next);
    if (ignored.length > 0) {
      log.warn(
        { options: ignored.map(flagOf) },
        "options that cannot change without a restart stay as they are",
      );
    }
    log.level = next.logLevel;
    const { datasets, collections } = next;
    log.info({ datasets: datasets.length, collections: collections.length }, "configuration reloaded");
    return next;
  } catch (error) {
    if (error instanceof ZpublishError && error.code === "draining") {
      log.info("the server is closing: the configuration stays as it is");
      return current;
    }
    // A ZpublishError is for the operator; any other error is a bug, and needs its stack.
    if (!(error instanceof ZpublishError))
      log.error({ err: error }, "the configuration could not be reloaded");
    for (const reason of messageOf(error).split("\n")) {
      log.error({ reason }, "the new configuration cannot be used; the present one stays");
    }
    return current;
  }
}

export type { RunningServer };

/** Opens all datasets and listens, as `startServer` does. */
export type StartServer = (
  config: Config,
  parts: { readonly log: Log; readonly progress: (progress: OpenProgress) => void },
) => Promise<RunningServer>;

/**
 * Runs a server until a signal ends it. When it is ready, prints a line with its URL on standard output, and how to open its first
 * datasets. TERM and INT
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
  const progress = createOpenReporter(process.stderr, log);
  try {
    const server = await start(config, { log, progress: progress.update });
    progress.clear();
    process.stdout.write(`zpublish ready on ${server.url}\n${describeDatasets(server, config)}`);
    signals.serve(server);
    return server;
  } catch (error) {
    progress.clear();
    // An error with a code is for the operator; any other error is a bug, and needs its stack.
    if (!(error instanceof ZpublishError) && (error as NodeJS.ErrnoException).code === undefined) {
      log.error({ err: error }, "the server could not be started");
    }
    throw isListenFailure(error) ? new ZpublishError("internal", error.message, { cause: error }) : error;
  }
}

/** Writes the URLs of a server's first datasets, and the line of Python that opens each. */
function describeDatasets(
  { url, published }: Pick<RunningServer, "url" | "published">,
  { plugins, access }: Config,
): string {
  const hasStores = plugins.some(({ name }) => name === "zarr");
  // fsspec sends these headers with each request.
  const isOpen = access.tokenFile === null && access.jwt === null;
  const token = isOpen ? "" : ', storage_options={"headers": {"Authorization": "Bearer TOKEN"}}';
  const texts = published.first.map(({ id, path, group }) => {
    const store = `${url}${path}zarr${group === "" ? "" : `/${group}`}`;
    const lines = [
      `  page    ${url}${path}`,
      `  Zarr    ${store}`,
      `  Python  xr.open_zarr("${store}"${token})`,
    ];
    return `\n${id}\n${(hasStores ? lines : lines.slice(0, 1)).join("\n")}\n`;
  });
  // A browser has no token.
  if (texts.length > 0 && isOpen) texts.unshift(`\nOpen ${url}/ in a browser, or read from a program:\n`);
  const rest = published.count - published.first.length;
  if (rest > 0) texts.push(`\nand ${rest} more: ${url}/\n`);
  return texts.join("");
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
    current = await reloadConfig({ server, log, readConfig, current });
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
  const oneAtATime = createOneAtATime();
  let isWaiting = false;
  return () => {
    if (isWaiting) return;
    isWaiting = true;
    void oneAtATime(() => {
      isWaiting = false;
      return work();
    });
  };
}
