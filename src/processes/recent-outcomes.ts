import type { ChunkOutcome } from "../pool/chunk-task.js";

/** What was made a moment ago, for others who ask for it. */
export interface RecentOutcomes {
  /** Keeps it for a while: not for long, and not where it alone is larger than the bound. */
  keep(id: number, outcome: ChunkOutcome): void;
  /** Undefined: not kept, or no more. */
  get(id: number): ChunkOutcome | undefined;
}

/** @param maxBytes Of all chunks together; the oldest go first. @param keepMs How long each is kept. */
export function createRecentOutcomes(maxBytes: number, keepMs: number): RecentOutcomes {
  const kept = new Map<number, { readonly outcome: ChunkOutcome; readonly timer: NodeJS.Timeout }>();
  let byteLength = 0;

  function drop(id: number): void {
    const found = kept.get(id);
    if (found === undefined) return;
    kept.delete(id);
    clearTimeout(found.timer);
    byteLength -= byteLengthOf(found.outcome);
  }

  return {
    keep(id, outcome) {
      // Whoever asks for what failed, or was not there, had better look for himself.
      if (outcome.status !== "encoded" || byteLengthOf(outcome) > maxBytes) return;
      kept.set(id, { outcome, timer: setTimeout(drop, keepMs, id).unref() });
      byteLength += byteLengthOf(outcome);
      for (const oldest of kept.keys()) {
        if (byteLength <= maxBytes) break;
        drop(oldest);
      }
    },
    get: (id) => kept.get(id)?.outcome,
  };
}

function byteLengthOf(outcome: ChunkOutcome): number {
  return outcome.status === "encoded" ? outcome.bytes.length : 0;
}
