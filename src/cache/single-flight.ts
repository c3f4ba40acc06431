/** See {@link createSingleFlight}. */
export interface SingleFlight<T> {
  /**
   * The result of `make`, shared with everybody who asks for the same key while it is under way.
   * @param make Is given what tells whether anybody of those who asked so far still wants the result.
   * @param isWanted Whether the caller still wants it. Default: to the end.
   * @throws What `make` threw, to all who waited; the next call tries again.
   */
  run(key: string, make: (isWanted: () => boolean) => Promise<T>, isWanted?: () => boolean): Promise<T>;
  /** Keys under way. */
  readonly size: number;
}

interface Flight<T> {
  readonly result: Promise<T>;
  /** Of each who asked. */
  readonly wants: (() => boolean)[];
}

const ALWAYS = () => true;

/** One flight per key: concurrent calls share one promise, which is forgotten once settled. */
export function createSingleFlight<T>(): SingleFlight<T> {
  const flights = new Map<string, Flight<T>>();

  return {
    run(key, make, isWanted = ALWAYS) {
      const underWay = flights.get(key);
      if (underWay !== undefined) {
        underWay.wants.push(isWanted);
        return underWay.result;
      }
      const wants = [isWanted];
      const result = start(() => make(() => wants.some((want) => want())));
      flights.set(key, { result, wants });
      // Registered before any caller's own continuation: whoever tries again after a failure starts anew.
      const forget = () => flights.delete(key);
      result.then(forget, forget);
      return result;
    },
    get size() {
      return flights.size;
    },
  };
}

/** A throw before the first await becomes a rejection like any other. */
async function start<T>(make: () => Promise<T>): Promise<T> {
  return make();
}
