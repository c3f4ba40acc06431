import type { Test } from "tap";

/** A broken codec fails in thousands of cases at once. */
const MAX_SHOWN = 20;

/** One assertion about many cases: none failed, and there were some. The first failures are shown. */
export function reportFailures(t: Test, failures: readonly string[], count: number): void {
  for (const failure of failures.slice(0, MAX_SHOWN)) t.comment(failure);
  t.equal(failures.length, 0, `${count} cases, ${failures.length} wrong`);
  t.ok(count > 0, "there were cases");
}
