/** Something took longer than it may. */
export class DeadlineError extends Error {}

/**
 * Waits for `work`, but not for ever: lmdb can leave a write unsettled (see `lmdb-store`).
 * @throws DeadlineError Where `work` is not done in time; it goes on, and its later failure is ignored.
 */
export async function withDeadline(work: Promise<void>, deadlineMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new DeadlineError(`a write did not finish within ${deadlineMs / 1000} s`)),
      deadlineMs,
    );
  });
  try {
    await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
}
