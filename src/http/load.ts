import { ZpublishError } from "../errors.js";
import type { Route } from "./route.js";

/** Hard limits of one server. */
export interface LoadLimits {
  /** Requests being answered at once; more are turned away with 503. Default 16,384. */
  readonly maxRequestsInFlight: number;
  /** The same for pages and metadata, which are shed first. Default 8,192. */
  readonly maxPagesInFlight: number;
  /** Bytes of bodies that clients have not taken yet; beyond it, chunks wait until there is room. Default 1 GiB. */
  readonly maxBodyBytesInFlight: number;
}

export const DEFAULT_LOAD_LIMITS: LoadLimits = {
  maxRequestsInFlight: 16_384,
  maxPagesInFlight: 8_192,
  maxBodyBytesInFlight: 2 ** 30,
};

/** Counts of one server. */
export interface LoadStats {
  /** Requests since the server listens. */
  readonly requests: number;
  readonly requestsInFlight: number;
  readonly bodyBytesInFlight: number;
  /** Chunk requests that wait for room. */
  readonly waiting: number;
}

/** What a server is busy with, kept within its limits. */
export interface Load {
  readonly stats: LoadStats;
  /** @throws ZpublishError `overloaded` */
  admit(weight: Route["weight"]): void;
  begin(): void;
  end(): void;
  addBodyBytes(byteLength: number): void;
  removeBodyBytes(byteLength: number): void;
  /**
   * Resolves when another body may be opened, first come first served; undefined: at once.
   * @param isWanted Asked when its turn comes: false where the client has gone, so that the turn goes to the next.
   */
  room(isWanted: () => boolean): Promise<void> | undefined;
  /** Resolves when nothing is in flight. */
  idle(): Promise<void>;
}

export function createLoad(limits: LoadLimits): Load {
  const stats = { requests: 0, requestsInFlight: 0, bodyBytesInFlight: 0, waiting: 0 };
  const queue: { readonly isWanted: () => boolean; readonly resolve: () => void }[] = [];
  const idlers: (() => void)[] = [];

  // One at a time, whenever a request ends or bytes have left: whoever is let in ends too, so that nobody is forgotten.
  function letNextIn(): void {
    while (queue.length > 0 && stats.bodyBytesInFlight < limits.maxBodyBytesInFlight) {
      const next = queue.shift()!;
      stats.waiting -= 1;
      next.resolve();
      if (next.isWanted()) return;
    }
  }

  return {
    stats,
    admit(weight) {
      const max = weight === "page" ? limits.maxPagesInFlight : limits.maxRequestsInFlight;
      if (stats.requestsInFlight > Math.min(max, limits.maxRequestsInFlight)) {
        throw new ZpublishError(
          "overloaded",
          `${stats.requestsInFlight} requests in flight, at most ${max} are allowed`,
        );
      }
    },
    begin() {
      stats.requests += 1;
      stats.requestsInFlight += 1;
    },
    end() {
      stats.requestsInFlight -= 1;
      letNextIn();
      if (stats.requestsInFlight === 0) for (const resolve of idlers.splice(0)) resolve();
    },
    addBodyBytes(byteLength) {
      stats.bodyBytesInFlight += byteLength;
    },
    removeBodyBytes(byteLength) {
      stats.bodyBytesInFlight -= byteLength;
      letNextIn();
    },
    room(isWanted) {
      if (stats.bodyBytesInFlight < limits.maxBodyBytesInFlight && queue.length === 0) return undefined;
      stats.waiting += 1;
      return new Promise<void>((resolve) => queue.push({ isWanted, resolve }));
    },
    idle() {
      return stats.requestsInFlight === 0
        ? Promise.resolve()
        : new Promise((resolve) => idlers.push(resolve));
    },
  };
}
