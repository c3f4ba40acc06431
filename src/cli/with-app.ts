import { setMaxListeners } from "node:events";
import { constants } from "node:os";
import type { Config } from "../config/config.js";
import { createRefreshScheduler } from "../dataset/refresh-scheduler.js";
import { ZpublishError } from "../errors.js";
import type { Log } from "../observe/log.js";
import { type App, openApp } from "../server/open-app.js";
import { createRuntime, type Runtime, type RuntimeParts } from "../server/runtime.js";
import { EXIT_CODES, reportError } from "./output.js";
import { createOpenReporter } from "./progress.js";

/** What ends a command early. */
export interface Stopping {
  readonly signal: AbortSignal;
  /** Resolves when the signal aborts. */
  readonly aborted: Promise<undefined>;
  /** Exit code of the command once the signal is aborted. */
  readonly exitCode: () => number;
}

/** How a command opens datasets. */
interface AppOptions extends Pick<RuntimeParts, "createPool"> {
  readonly log: Log;
  /** Gets the progress if there is no terminal. */
  readonly progressLog: Pick<Log, "info">;
}

/**
 * Runs a command with the datasets of a configuration, opened as a server does, without a listener.
 * @param command Returns the exit code.
 * @returns The exit code; that of a signal if one comes before the datasets are open.
 */
export async function withApp(
  config: Config,
  { log, progressLog, createPool }: AppOptions,
  command: (app: App, runtime: Runtime, stopping: Stopping) => Promise<number>,
): Promise<number> {
  const stopping = stopOnSignals();
  const parts: { app?: App } = {};
  const runtime = createRuntime(config, { log, supervisor: undefined, createPool, app: () => parts.app });
  const progress = createOpenReporter(process.stderr, progressLog);
  try {
    const opening = openApp(config, {
      ...{ log, datasetLog: log, scheduler: createRefreshScheduler() },
      chunks() {
        // A cache that is opened now would not be closed before the process ends.
        if (stopping.signal.aborted) throw new ZpublishError("cancelled", "ended by a signal");
        return runtime.chunks();
      },
      ...{ previews: runtime.previews, values: runtime.values, maps: runtime.maps },
      ...{ isBusy: () => true, signingKey: "", progress: progress.update },
    }).then((app) => {
      parts.app = app;
      return app;
    });
    const app = await Promise.race([opening, stopping.aborted]);
    progress.clear();
    if (app !== undefined) return await command(app, runtime, stopping);
    reportError("ended by a signal while datasets were being opened");
    return stopping.exitCode();
  } finally {
    progress.clear();
    await runtime.close();
    await parts.app?.close();
  }
}

/** Aborts a signal at TERM and INT, and at HUP from a terminal. A second one ends the process at once. */
function stopOnSignals(): Stopping {
  const controller = new AbortController();
  // Each chunk under way listens.
  setMaxListeners(0, controller.signal);
  let code: number = EXIT_CODES.failed;
  const aborted = new Promise<undefined>((resolve) => {
    controller.signal.addEventListener("abort", () => resolve(undefined));
  });
  for (const name of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    process.on(name, () => {
      // Below `nohup` there is no terminal. Node.js does not keep that a parent has the signal ignored.
      if (name === "SIGHUP" && !process.stdout.isTTY && !process.stderr.isTTY) return;
      code = 128 + constants.signals[name];
      if (controller.signal.aborted) process.exit(code);
      controller.abort();
    });
  }
  return { signal: controller.signal, aborted, exitCode: () => code };
}
