import { settlesWithin } from "../event-loop/settles-within.js";

/** Something took longer than it may. */
export class DeadlineError extends Error {}

/**
 * Waits for `work`, but not for ever: lmdb can leave a write unsettled (see `lmdb-store`).
 * @throws DeadlineError Where `work` is not done in time; it goes on, and its later failure is ignored.
 */
export async function withDeadline(work: Promise<void>, deadlineMs: number): Promise<void> {
  if (await settlesWithin(work, deadlineMs)) return;
  throw new DeadlineError(`a write did not finish within ${deadlineMs / 1000} s`);
}
