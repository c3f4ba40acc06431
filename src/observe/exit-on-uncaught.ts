import { messageOf } from "../errors.js";
import type { Log } from "./log.js";

/** Logs uncaught errors, and ends the process with exit code 1: its state cannot be trusted any more. */
export function exitOnUncaught(log: Log): void {
  const fail = (error: unknown): void => {
    log.fatal({ err: error }, `internal error: ${messageOf(error)}`);
    process.exit(1);
  };
  process.on("uncaughtException", fail);
  process.on("unhandledRejection", fail);
}
