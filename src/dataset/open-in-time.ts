import { ZpublishError } from "../errors.js";
import { settlesWithin } from "../event-loop/settles-within.js";

/** Time that a request waits until a dataset is open: as long as one chunk may take. */
const OPEN_TIMEOUT_MS = 120_000;

/**
 * Opens a dataset, within the time that a request may wait for it.
 * @param work Gets a signal that aborts when it is too late.
 * @throws ZpublishError `source-unreadable` if it takes too long; what `work` throws.
 */
export async function openInTime<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController();
  const opening = work(late.signal);
  if (await settlesWithin(opening, OPEN_TIMEOUT_MS)) return opening;
  late.abort();
  const problem = `cannot be read: expected to be open after ${OPEN_TIMEOUT_MS} ms`;
  throw new ZpublishError("source-unreadable", problem);
}
