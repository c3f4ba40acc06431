/** See {@link createSingleFlight}. */
export interface SingleFlight<T> {
  /**
   * Returns the result of `make`, shared by all who ask for the same key while it is under way.
   * @param make Gets a signal that aborts when all who asked have gone.
   * @param signal Aborts when the caller has gone. Default: never.
   * @throws What `make` threw, to all who waited; the next call tries again.
   */
  run(key: string, make: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** Keys under way. */
  readonly size: number;
}

interface Flight<T> {
  readonly result: Promise<T>;
  readonly controller: AbortController;
  waiting: number;
}

/** One flight per key: concurrent calls share one promise, which is forgotten once settled or cancelled. */
export function createSingleFlight<T>(): SingleFlight<T> {
  const flights = new Map<string, Flight<T>>();

  function forget(key: string, flight: Flight<T>): void {
    if (flights.get(key) === flight) flights.delete(key);
  }

  function begin(key: string, make: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const controller = new AbortController();
    const flight = { result: start(() => make(controller.signal)), controller, waiting: 0 };
    flights.set(key, flight);
    // Registered before any caller's own continuation: a caller that tries again after a failure begins another flight.
    flight.result.then(
      () => forget(key, flight),
      () => forget(key, flight),
    );
    return flight;
  }

  return {
    run(key, make, signal) {
      const flight = flights.get(key) ?? begin(key, make);
      flight.waiting += 1;
      const leave = () => {
        flight.waiting -= 1;
        if (flight.waiting > 0) return;
        forget(key, flight);
        flight.controller.abort();
      };
      if (signal?.aborted) leave();
      else signal?.addEventListener("abort", leave, { once: true });
      return flight.result;
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
