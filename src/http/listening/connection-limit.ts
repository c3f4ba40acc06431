import type { Log } from "../../observe/log.js";

/** Counts of connections. */
export interface ConnectionStats {
  /** Open connections. */
  readonly connections: number;
  /** Maximum of open connections: as configured, or lower if fewer files may be open. */
  readonly maxConnections: number;
  /** Connections closed so far because the maximum was reached. */
  readonly connectionsRefused: number;
}

/** Limit of the number of connections, which several listeners may share. */
export interface ConnectionLimit {
  readonly stats: ConnectionStats;
  /**
   * Counts a connection that has opened or closed. One beyond the maximum is closed before anything is read from it.
   * @param change 1 or -1.
   * @param close Closes the connection that has opened; may count its end before it returns.
   */
  note(change: number, close: () => void): void;
}

/** Shortest time between two warnings that connections are refused. */
const WARN_EVERY_MS = 10_000;

/** Creates a limit. @param max Maximum of open connections. */
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
