import { setMaxListeners } from "node:events";

/** Requests for one key that share one making of its value. */
export interface SingleFlight<T> {
  /**
   * Returns the result of `make`, shared by all calls for the same key while it is under way.
   * @param make Gets a signal that aborts when all callers have gone.
   * @param signal Aborts when the caller has gone. Default: never.
   * @throws what `make` throws, to all callers; the next call tries again.
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

/** Creates a single flight without flights. The promise of a key is forgotten once it settles or is cancelled. */
export function createSingleFlight<T>(): SingleFlight<T> {
  const flights = new Map<string, Flight<T>>();

  function forget(key: string, flight: Flight<T>): void {
    if (flights.get(key) === flight) flights.delete(key);
  }

  function begin(key: string, make: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const controller = new AbortController();
    // What is made of many chunks listens once for each.
    setMaxListeners(0, controller.signal);
    const flight = { result: start(() => make(controller.signal)), controller, waiting: 0 };
    flights.set(key, flight);
    // Registered before any continuation of a caller, so that a caller which tries again after a failure begins another flight.
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
        flight.controller.abort(signal?.reason);
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

/** Turns a throw before the first await into a rejection. */
async function start<T>(make: () => Promise<T>): Promise<T> {
  return make();
}
