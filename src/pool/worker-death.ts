/**
 * How a worker came to its end while it had a task. Who tells them apart:
 *
 * - `crashed`: an uncaught error, `process.exit`, an abort of native code that ends the thread only.
 * - `outOfMemory`: its JavaScript heap was at its limit.
 * - `timedOut`: it did not answer in time, and was ended.
 * - `couldNotStart`: there was no worker yet: the task has not been begun.
 * - `wornOut`: it ended itself before it touched the task; not a failure.
 */
export type DeathKind = "crashed" | "outOfMemory" | "timedOut" | "couldNotStart" | "wornOut";

/** The end of a worker, as its task sees it. The message is for the log: it may name files of the machine. */
export class WorkerDeath extends Error {
  override readonly name = "WorkerDeath";
  readonly kind: DeathKind;

  constructor(kind: DeathKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
  }
}
