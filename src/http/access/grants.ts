import { AsyncLocalStorage } from "node:async_hooks";

/** What a client may read, by the credential that it sent. */
export interface Grant {
  /** Name of the token or issuer that it comes from, by which tickets refer to it. */
  readonly origin: string;
  /**
   * Lists of patterns: a dataset may be read if its id matches one pattern of each list. Without lists, everything may be read. In a
   * pattern, `*` stands for any text; all other characters stand for themselves.
   */
  readonly rules: readonly (readonly string[])[];
  /** End of its validity in milliseconds, on the clock of `Date.now()`. Infinity if it has none. */
  readonly expiresMs: number;
  /** Tells whether a dataset may be read, whether or not there is one of that id. To be called with the dataset's id for a version. */
  readonly allows: (id: string) => boolean;
  /** The same text for the same rules. */
  readonly key: string;
}

/** Creates a grant. Lists that have the pattern `*` are left out of its rules. */
export function createGrant(
  origin: string,
  lists: readonly (readonly string[])[],
  expiresMs = Number.POSITIVE_INFINITY,
): Grant {
  const rules = lists.filter((patterns) => !patterns.includes("*"));
  const compiled = rules.map((patterns) => patterns.map(compilePattern));
  return {
    ...{ origin, rules, expiresMs, key: JSON.stringify(rules) },
    allows: (id) => compiled.every((matchers) => matchers.some((matches) => matches(id))),
  };
}

/** Compiles a pattern to a function that takes linear time: clients may choose patterns for their tickets. */
function compilePattern(pattern: string): (id: string) => boolean {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return (id) => id === pattern;
  return (id) => {
    const end = id.length - last.length;
    if (end < first.length || !id.startsWith(first) || !id.endsWith(last)) return false;
    let at = first.length;
    for (const part of rest) {
      const found = id.indexOf(part, at);
      if (found < 0) return false;
      at = found + part.length;
    }
    return at <= end;
  };
}

/** Grants of the requests that are answered now and may not read everything. */
const limited = new AsyncLocalStorage<Grant>();

/** Runs what answers a request, now and in what that awaits, so that it finds the grant by {@link currentGrant}. */
export function answerAs<T>(grant: Grant | undefined, answer: () => T): T {
  return grant === undefined || grant.rules.length === 0 ? answer() : limited.run(grant, answer);
}

/** Returns the grant of the request that is answered now; undefined if that may read everything, and outside of requests. */
export function currentGrant(): Grant | undefined {
  return limited.getStore();
}
