/**
 * Waits for `work`, for at most `timeoutMs` milliseconds.
 * @returns False if it is not done by then; its later failure is ignored.
 * @throws what `work` throws in time
 */
export async function settlesWithin(work: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    // After one more poll for events, because timers run first if the loop was blocked.
    timer = setTimeout(() => setImmediate(resolve, false), timeoutMs);
  });
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Returns the result of `work`.
 * @param lateError Called if the work is not done after `timeoutMs` milliseconds; makes the error that is thrown.
 * @throws what `work` throws in time
 */
export async function withinTime<T>(work: Promise<T>, timeoutMs: number, lateError: () => Error): Promise<T> {
  if (await settlesWithin(work, timeoutMs)) return work;
  throw lateError();
}
