import type { Config } from "../config/config.js";
import { ZpublishError } from "../errors.js";
import type { ServerProcess } from "./server-process.js";

/** The part of a server process that a reload needs. */
export type ReloadableProcess = Pick<ServerProcess, "prepare" | "use" | "discard" | "hasEnded">;

/**
 * Applies another configuration to all processes, or to none. A process that ends meanwhile is passed over: its replacement starts
 * with the newest configuration.
 * @throws ZpublishError The reason of the first process that refused it.
 */
export async function reloadProcesses(
  processes: readonly ReloadableProcess[],
  config: Config,
): Promise<void> {
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
