import type { Config } from "../config/config.js";
import { ZpublishError } from "../errors.js";
import type { ServerProcess } from "./server-process.js";

/** What a reload asks of a server process. */
export type ReloadableProcess = Pick<ServerProcess, "prepare" | "use" | "discard" | "hasEnded">;

/**
 * Has all processes take another configuration, or none of them. One that ends meanwhile, or is about to, is passed over: whoever
 * takes its place begins with the newest.
 * @throws ZpublishError what the first that refused it said.
 */
export async function reloadProcesses(
  processes: readonly ReloadableProcess[],
  config: Config,
): Promise<void> {
  // One alone first, as at start: what is wrong is found once.
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
