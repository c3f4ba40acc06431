/** A chunk that was made, and how. */
export interface MadeChunk {
  readonly bytes: Uint8Array;
  readonly origin: "PASS" | "MISS";
  /** Milliseconds per stage. */
  readonly timings: Readonly<Record<string, number>>;
  /** Gives the memory back; undefined where it is not to be used again, and once that is done. */
  giveBack?: (() => void) | undefined;
  /** CRC-32, where it is known. */
  readonly checksum?: number | undefined;
  /** Bodies that read from it, and the cache. */
  readers: number;
}

/** Gives memory back that nobody reads from. Not in this turn: others may have waited for the same chunk. */
export function releaseMade(made: MadeChunk): void {
  made.readers -= 1;
  if (made.readers > 0 || made.giveBack === undefined) return;
  setImmediate(() => {
    if (made.readers > 0) return;
    made.giveBack?.();
    // Several may have been the last one in the same turn.
    made.giveBack = undefined;
  });
}
