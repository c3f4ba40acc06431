import { setMaxListeners } from "node:events";
import { constants } from "node:os";
import { formatByteSize } from "../config/byte-size.js";
import type { Config } from "../config/config.js";
import { configError } from "../config/problem.js";
import { createRefreshScheduler } from "../dataset/refresh-scheduler.js";
import { ZpublishError } from "../errors.js";
import { settlesWithin } from "../event-loop/settles-within.js";
import { exitOnUncaught } from "../observe/exit-on-uncaught.js";
import { createLog, type Log } from "../observe/log.js";
import { createEncodePool } from "../pool/encode-pool.js";
import { defaultMemoryBudget } from "../pool/task-memory.js";
import { type App, openApp } from "../server/open-app.js";
import { createRuntime, type Runtime } from "../server/runtime.js";
import { doneOf, type WarmResult, warmChunks } from "../warm/warm-chunks.js";
import { createProgressReporter } from "./open-progress.js";
import { EXIT_CODES, reportError } from "./report-error.js";
import { selectAll } from "./select-all.js";
import type { WarmRequest } from "./warm-command.js";
import { createWarmReporter, describeResult } from "./warm-progress.js";

/** Time that chunks under way have after a signal. */
const END_WITHIN_MS = 5_000;

/**
 * Runs `warm`: opens the datasets as a server does, without a listener, and encodes what is asked for into the cache.
 * @returns The exit code.
 * @throws ZpublishError if the datasets cannot be opened, or do not have what is asked for.
 */
export async function runWarm(given: Config, request: WarmRequest): Promise<number> {
  if (given.cache === null) throw configError(["--no-cache: expected a cache to warm, received none"]);
  const threads = Math.max(1, Math.round(given.workers * request.share));
  const config = configOfWarm(given, threads);
  const log = createLog(config.logLevel);
  exitOnUncaught(log);
  const stopping = stopOnSignals();
  const memoryBytes = Math.floor(defaultMemoryBudget() * request.share);
  const parts: { app?: App } = {};
  const runtime = createRuntime(config, {
    log,
    supervisor: undefined,
    createPool: (options) => createEncodePool({ ...options, memoryBudgetBytes: memoryBytes }),
    app: () => parts.app,
  });
  try {
    const opening = open(config, runtime, log, stopping.signal).then((app) => {
      parts.app = app;
      return app;
    });
    const app = await Promise.race([opening, stopping.aborted]);
    if (app === undefined) {
      reportError("ended by a signal while datasets were being opened");
      return stopping.exitCode();
    }
    const targets = await selectAll(app, runtime.makeChunk, request, stopping.signal);
    const began = performance.now();
    const reporter = createWarmReporter(process.stderr, log);
    const warming = warmChunks(targets, {
      warmer: runtime.chunks(),
      cacheBytes: given.cache.maxBytes,
      isOwn: request.isOwn,
      rootPath: config.rootPath,
      threads,
      memoryBytes,
      stored: request.stored,
      signal: stopping.signal,
      hasEvicted: () => (runtime.cacheStats()?.evictions ?? 0) > 0,
      onProgress: reporter.update,
      onTooMuch: (bytes) => reportTooMuch(bytes, config, reporter.clear),
    });
    await Promise.race([warming, stopping.aborted]);
    const result = (await settlesWithin(warming, END_WITHIN_MS)) ? await warming : undefined;
    reporter.clear();
    if (result === undefined) {
      reportError(`ended by a signal; chunks under way were not finished within ${END_WITHIN_MS / 1_000} s`);
      return stopping.exitCode();
    }
    const seconds = (performance.now() - began) / 1_000;
    process.stdout.write(describeResult(result, seconds, runtime.cacheStats()?.evictions ?? 0));
    return exitCodeOfResult(result, stopping.exitCode);
  } finally {
    await runtime.close();
    await parts.app?.close();
  }
}

/** Changes what a command without a listener does not need: other users may read its files, and each part of a share is a thread. */
function configOfWarm(config: Config, threads: number): Config {
  return {
    ...config,
    workers: threads,
    access: { trustedProxies: [], tls: null, tokenFile: null },
    observe: { ...config.observe, admin: null },
  };
}

/** @param signal Once it is aborted, the cache is not opened any more: the process would end without closing it. */
async function open(config: Config, runtime: Runtime, log: Log, signal: AbortSignal): Promise<App> {
  const chunks = () => {
    if (signal.aborted) throw new ZpublishError("cancelled", "ended by a signal");
    return runtime.chunks();
  };
  const progress = createProgressReporter(process.stderr, log);
  try {
    const app = await openApp(config, {
      log,
      datasetLog: log,
      scheduler: createRefreshScheduler(),
      chunks,
      previews: runtime.previews,
      onChange: () => runtime.forgetChunks(),
      progress: progress.update,
    });
    chunks();
    await runtime.started();
    if (runtime.cacheStats()?.isOff !== false)
      throw new ZpublishError("internal", "the cache cannot be opened");
    return app;
  } finally {
    progress.finish();
  }
}

function reportTooMuch(bytes: number, { cache }: Config, clear: () => void): void {
  clear();
  reportError(
    `what is to be warmed takes about ${formatByteSize(bytes)}, and the cache holds ${formatByteSize(cache?.maxBytes ?? 0)}: ` +
      "it ends when that is full. Choose less, or a larger --cache-size here and for the server",
  );
}

function exitCodeOfResult(result: WarmResult, signalCode: () => number): number {
  const { stopped, failures, failed, total } = result;
  for (const failure of failures) reportError(failure);
  if (failed > failures.length) reportError(`and ${failed - failures.length} others`);
  const left = total - doneOf(result);
  if (stopped === "cancelled") {
    reportError(`ended by a signal, ${left} chunks are left: the same command continues`);
    return signalCode();
  }
  if (stopped === "cache-full") reportError(`the cache is full, ${left} chunks are left`);
  if (stopped === "cache-failed")
    reportError(`the cache cannot be written, ${left} chunks are left; the log has the reason`);
  return stopped === undefined && failed === 0 ? EXIT_CODES.done : EXIT_CODES.failed;
}

/** Aborts a signal at TERM and INT. A second one ends the process at once. */
function stopOnSignals() {
  const controller = new AbortController();
  // Each chunk under way listens.
  setMaxListeners(0, controller.signal);
  let code: number = EXIT_CODES.failed;
  const aborted = new Promise<undefined>((resolve) => {
    controller.signal.addEventListener("abort", () => resolve(undefined));
  });
  for (const name of ["SIGTERM", "SIGINT"] as const) {
    process.on(name, () => {
      code = 128 + constants.signals[name];
      if (controller.signal.aborted) process.exit(code);
      controller.abort();
    });
  }
  return { signal: controller.signal, aborted, exitCode: () => code };
}
