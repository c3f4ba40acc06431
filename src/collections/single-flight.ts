import { setMaxListeners } from "node:events";

/** A caller that waits for a result. Making a signal takes microseconds, so it is read only if the result is not there at once. */
export interface Waiting {
  /** Aborts when the result is no longer needed. */
  readonly signal?: AbortSignal | undefined;
}

/** Requests for one key that share one making of its value. */
export interface SingleFlight<T> {
  /**
   * Returns the result of `make`, shared by all calls for the same key while it is under way: at once if `make` does.
   * @param make Gets a signal that aborts when all callers have gone.
   * @param caller Default: one that never goes.
   * @throws what `make` throws, to all callers; the next call tries again.
   */
  run<R extends T | Promise<T>>(
    key: string,
    make: (flight: { readonly signal: AbortSignal }) => R,
    caller?: Waiting,
  ): R | Promise<T>;
  /** Keys under way. */
  readonly size: number;
}

/** Creates a single flight without flights. The promise of a key is forgotten once it settles or is cancelled. */
export function createSingleFlight<T>(): SingleFlight<T> {
  const flights = new Map<string, Flight<T>>();

  function forget(key: string, flight: Flight<T>): void {
    if (flights.get(key) === flight) flights.delete(key);
  }

  return {
    run(key, make, caller = {}) {
      let flight = flights.get(key);
      if (flight === undefined) {
        const begun = new Flight<T>();
        const result = make(begun);
        if (!(result instanceof Promise)) return result;
        begun.result = result;
        flights.set(key, begun);
        // Registered before any continuation of a caller, so that a caller which tries again after a failure begins another flight.
        const end = () => forget(key, begun);
        result.then(end, end);
        flight = begun;
      }
      return join(flight, caller.signal, () => forget(key, flight));
    },
    get size() {
      return flights.size;
    },
  };
}

class Flight<T> {
  readonly controller = new AbortController();
  result: Promise<T> | undefined;
  waiting = 0;

  get signal(): AbortSignal {
    const { signal } = this.controller;
    // What is made of many chunks listens once for each.
    setMaxListeners(0, signal);
    return signal;
  }
}

/** Lets a caller wait for a flight. @param forget Called if all callers have gone. */
function join<T>(flight: Flight<T>, signal: AbortSignal | undefined, forget: () => void): Promise<T> {
  flight.waiting += 1;
  const leave = () => {
    flight.waiting -= 1;
    if (flight.waiting > 0) return;
    forget();
    flight.controller.abort(signal?.reason);
  };
  if (signal?.aborted) leave();
  else if (signal !== undefined) {
    signal.addEventListener("abort", leave, { once: true });
    // A signal may live longer than the result, which the listener would keep.
    const stay = () => signal.removeEventListener("abort", leave);
    flight.result?.then(stay, stay);
  }
  return flight.result as Promise<T>;
}
