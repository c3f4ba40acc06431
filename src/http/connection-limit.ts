import type { Log } from "../observe/log.js";

/** Counts of connections. */
export interface ConnectionStats {
  /** Open now. */
  readonly connections: number;
  /** Their bound: of what was asked for, as many as files may be open. */
  readonly maxConnections: number;
  /** Closed as soon as they were there, so far. */
  readonly connectionsRefused: number;
}

/** Keeps the number of connections within a bound, whatever listener they come in by. */
export interface ConnectionLimit {
  readonly stats: ConnectionStats;
  /**
   * Notes that a connection has come or gone. Over the bound it is closed at once: nothing was read of it.
   * @param change 1 or -1.
   * @param close Closes one that has come; may note that it is gone before it returns.
   */
  note(change: number, close: () => void): void;
}

/** The log says at most this often that connections are refused. */
const WARN_EVERY_MS = 10_000;

/** @param max Connections at once. */
export function createConnectionLimit(max: number, log: Log): ConnectionLimit {
  const stats = { connections: 0, maxConnections: max, connectionsRefused: 0 };
  let toldMs = Number.NEGATIVE_INFINITY;
  let told = 0;

  function refuse(close: () => void): void {
    stats.connectionsRefused += 1;
    close();
    const nowMs = performance.now();
    if (nowMs - toldMs < WARN_EVERY_MS) return;
    const refused = stats.connectionsRefused - told;
    toldMs = nowMs;
    told = stats.connectionsRefused;
    log.warn({ max, refused }, `connections refused: at most ${max} are allowed at once`);
  }

  return {
    stats,
    note(change, close) {
      stats.connections += change;
      if (change > 0 && stats.connections > max) refuse(close);
    },
  };
}
