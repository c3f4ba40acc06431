import { messageOf } from "../errors.js";
import type { Log } from "./log.js";

/** Has an error that nobody caught logged, and the process end with 1: what it left behind is not to be trusted. */
export function exitOnUncaught(log: Log): void {
  const fail = (error: unknown): void => {
    log.fatal({ err: error }, `internal error: ${messageOf(error)}`);
    process.exit(1);
  };
  process.on("uncaughtException", fail);
  process.on("unhandledRejection", fail);
}
