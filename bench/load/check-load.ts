import type { RunningZpublish } from "../start-zpublish.js";
import type { LoadResult } from "./load.js";

/** Refuses a load in which anything failed. @throws Error that says what, and what the server said. */
export function checkLoad(
  { requests, failures, firstFailure }: Pick<LoadResult, "requests" | "failures" | "firstFailure">,
  what: string,
  server: RunningZpublish,
): void {
  if (failures === 0) return;
  const said = server.errorText().trim();
  throw new Error(
    `${what}: ${failures} failures beside ${requests} answers, the first one: ${firstFailure ?? "unknown"}${said === "" ? "" : `; zpublish said: ${said}`}`,
  );
}
