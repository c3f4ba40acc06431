import type { Verdict } from "./judge.js";
import type { Observation } from "./observation.js";

/** Each bucket of latencies is this much longer than the one before. */
const GROWTH = 1.05;
const SHORTEST_MS = 0.05;
const BUCKETS = 400;
/** Problems whose text is kept. */
const MAX_PROBLEMS = 40;

/** Counts what came of requests, in constant memory. */
export class Tally {
  requests = 0;
  wrong = 0;
  failed = 0;
  /** By status; 0: no answer. */
  readonly statuses = new Map<number, number>();
  /** Excused failures, by `trouble: event`. */
  readonly excused = new Map<string, number>();
  /** Failures that nothing excuses, by kind. */
  readonly failures = new Map<string, number>();
  /** The first of what was wrong or failed. */
  readonly problems: string[] = [];
  readonly #latencies = new Float64Array(BUCKETS);

  add(seen: Observation, verdict: Verdict): void {
    this.requests++;
    count(this.statuses, seen.status);
    if (seen.status !== 0) this.#latencies[bucketOf(seen.until - seen.from)]!++;
    switch (verdict.kind) {
      case "right":
        return;
      case "excused":
        count(this.excused, `${verdict.trouble}: ${verdict.event}`);
        return;
      case "failed":
        this.failed++;
        count(this.failures, verdict.trouble);
        this.#note(`failed: ${verdict.problem}`);
        return;
      case "wrong":
        this.wrong++;
        this.#note(`WRONG: ${verdict.problem}`);
    }
  }

  #note(problem: string): void {
    if (this.problems.length < MAX_PROBLEMS) this.problems.push(problem);
  }

  /** Milliseconds, 5 % off at most; NaN where nothing was answered. */
  latency(percent: number): number {
    const total = this.#latencies.reduce((sum, each) => sum + each, 0);
    let seen = 0;
    for (let i = 0; i < BUCKETS; i++) {
      seen += this.#latencies[i]!;
      if (total > 0 && seen >= (total * percent) / 100) return SHORTEST_MS * GROWTH ** i;
    }
    return Number.NaN;
  }
}

function bucketOf(ms: number): number {
  const bucket = Math.ceil(Math.log(Math.max(ms, SHORTEST_MS) / SHORTEST_MS) / Math.log(GROWTH));
  return Math.min(BUCKETS - 1, bucket);
}

function count<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
