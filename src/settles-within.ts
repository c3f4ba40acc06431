/**
 * Waits for `work`, but not for longer than `timeoutMs`.
 * @returns Whether it is done; if not it goes on, and its later failure is ignored.
 * @throws What `work` throws in time.
 */
export async function settlesWithin(work: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    // After one more look for what has come: the loop may have stood still, and timers come first.
    timer = setTimeout(() => setImmediate(resolve, false), timeoutMs);
  });
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
