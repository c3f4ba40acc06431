/** A result that is there at once, or later. Awaiting one that is there would cost a turn of the microtask queue. */
export type MaybePromise<T> = T | Promise<T>;

/** Calls `then` with a result: now if it is there, else later. */
export function whenDone<T, R>(
  result: MaybePromise<T>,
  then: (value: T) => MaybePromise<R>,
): MaybePromise<R> {
  return result instanceof Promise ? result.then(then) : then(result);
}

/** Returns the result of `work`. @param errorOf Returns the error to throw in place of what `work` throws. */
export function withErrorsOf<T>(work: () => MaybePromise<T>, errorOf: (error: unknown) => unknown) {
  const fail = (error: unknown): never => {
    throw errorOf(error);
  };
  try {
    const result = work();
    return result instanceof Promise ? result.catch(fail) : result;
  } catch (error) {
    return fail(error);
  }
}

/**
 * Returns the results of `work` for all items, in their order; so many items are worked on at a time.
 * @throws the first error of `work`, at once. No further lot is started then.
 */
export function mapInLots<T, R>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => MaybePromise<R>,
): MaybePromise<R[]> {
  const first = start(items.slice(0, atOnce), work);
  const isDone = items.length <= atOnce && !first.some((result) => result instanceof Promise);
  return isDone ? (first as R[]) : mapRest(items, atOnce, work, first);
}

async function mapRest<T, R>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => MaybePromise<R>,
  first: readonly MaybePromise<R>[],
): Promise<R[]> {
  const results = await Promise.all(first);
  for (let from = atOnce; from < items.length; from += atOnce)
    results.push(...(await Promise.all(start(items.slice(from, from + atOnce), work))));
  return results;
}

/** Starts work on all items. What it throws is awaited with the promises before it: their failures have to be handled. */
function start<T, R>(items: readonly T[], work: (item: T) => MaybePromise<R>): MaybePromise<R>[] {
  const started: MaybePromise<R>[] = [];
  try {
    for (const item of items) started.push(work(item));
  } catch (error) {
    if (!started.some((result) => result instanceof Promise)) throw error;
    started.push(Promise.reject(error));
  }
  return started;
}
