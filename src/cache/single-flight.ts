/** See {@link createSingleFlight}. */
export interface SingleFlight<T> {
  /**
   * The result of `make`, shared with everybody who asks for the same key while it is under way.
   * @throws What `make` threw, to all who waited; the next call tries again.
   */
  run(key: string, make: () => Promise<T>): Promise<T>;
  /** Keys under way. */
  readonly size: number;
}

/** One flight per key: concurrent calls share one promise, which is forgotten once settled. */
export function createSingleFlight<T>(): SingleFlight<T> {
  const flights = new Map<string, Promise<T>>();

  return {
    run(key, make) {
      const underWay = flights.get(key);
      if (underWay !== undefined) return underWay;
      const flight = start(make);
      flights.set(key, flight);
      // Registered before any caller's own continuation: whoever tries again after a failure starts anew.
      const forget = () => flights.delete(key);
      flight.then(forget, forget);
      return flight;
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
