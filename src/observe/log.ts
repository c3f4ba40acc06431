import { type Logger, pino } from "pino";
import { createLogSink, type LogSink } from "./log-sink.js";

/** Structured log on standard error: standard output belongs to the line that says where the server is. */
export type Log = Logger;

export const LOG_LEVELS = ["silent", "fatal", "error", "warn", "info", "debug", "trace"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const STANDARD_ERROR = 2;

/** One for all logs of the process: each has its own memory, and looks after the process's end. */
let sink: LogSink | undefined;

/** A log that writes JSON lines to standard error. What is written is never waited for; see `log-sink.ts`. */
export function createLog(level: LogLevel): Log {
  sink ??= createLogSink(STANDARD_ERROR);
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, sink);
}
