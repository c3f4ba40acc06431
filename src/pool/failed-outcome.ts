import type { ErrorCode, ErrorDetails } from "../errors.js";
import type { ChunkOutcome } from "./chunk-task.js";

/** An outcome of a task that no worker said. */
export function failedOutcome(code: ErrorCode, message: string, details: ErrorDetails = {}): ChunkOutcome {
  return { status: "failed", error: { code, message, details } };
}

/** Of a task that was not tried because nobody waited for it: who comes in that moment may ask again. */
export function abandonedOutcome(): ChunkOutcome {
  return failedOutcome("overloaded", "nobody waits for the chunk any more", { abandoned: true });
}

/** Of a task too many. @param maxQueued How many may wait. */
export function overloadedOutcome(maxQueued: number): ChunkOutcome {
  return failedOutcome(
    "overloaded",
    `expected at most ${maxQueued} chunks to wait for a worker, received one more`,
  );
}

/** While no worker can be started. */
export function brokenOutcome(): ChunkOutcome {
  return failedOutcome("overloaded", "expected a worker to start, none does");
}

/** After closing. */
export function drainingOutcome(): ChunkOutcome {
  return failedOutcome("draining", "the server is shutting down");
}
