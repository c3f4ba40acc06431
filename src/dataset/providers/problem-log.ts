import type { Log } from "../../observe/log.js";

/** Problems of one kind that are named in the log; of further ones there is only a count. */
const MAX_NAMED = 20;

/** Log of problems that are found again and again. Each is named once, and only the first ones. */
export interface ProblemLog {
  /** Begins to collect the problems of one look. */
  begin(): void;
  add(name: string, reason: string): void;
  /** Logs those that are new. */
  end(): void;
}

/** Creates a log without problems. @param message Message of each line, such as `dataset left out`. */
export function createProblemLog(log: Log, provider: string, message: string): ProblemLog {
  const named = new Set<string>();
  let fresh = new Map<string, string>();
  let others = 0;
  let loggedOthers = 0;
  return {
    begin() {
      fresh = new Map();
      others = 0;
    },
    add(name, reason) {
      if (named.has(name) || fresh.has(name)) return;
      if (named.size + fresh.size < MAX_NAMED) fresh.set(name, reason);
      else others++;
    },
    end() {
      for (const [name, reason] of fresh) {
        named.add(name);
        log.warn({ provider, name, reason }, message);
      }
      if (others > 0 && others !== loggedOthers)
        log.warn({ provider, count: others }, `${message}: further ones`);
      loggedOthers = others;
    },
  };
}
