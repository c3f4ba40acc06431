import { setMaxListeners } from "node:events";
import { constants } from "node:os";
import { EXIT_CODES } from "./output.js";

/** What ends a command early. */
interface Stopping {
  readonly signal: AbortSignal;
  /** Resolves when the signal aborts. */
  readonly aborted: Promise<undefined>;
  /** Exit code of the command once the signal is aborted. */
  readonly exitCode: () => number;
}

/** Aborts a signal at TERM and INT, and at HUP from a terminal. A second one ends the process at once. */
export function stopOnSignals(): Stopping {
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
