import { destination, type Logger, pino } from "pino";

/** Structured log on standard error: standard output belongs to the line that says where the server is. */
export type Log = Logger;

export const LOG_LEVELS = ["silent", "fatal", "error", "warn", "info", "debug", "trace"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** A log that writes JSON lines to standard error. */
export function createLog(level: LogLevel): Log {
  return pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    destination({ fd: 2, sync: true }),
  );
}
