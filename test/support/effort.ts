/** Effort of this run: 0.25 in the long ring, a tenth elsewhere, unless `ZPUBLISH_TEST_EFFORT` says otherwise. */
const EFFORT = Number(process.env.ZPUBLISH_TEST_EFFORT ?? 0.1);

/** Scales how often something is tried. @param count With effort 1. @returns At least 1. */
export function effort(count: number): number {
  return Math.max(1, Math.round(count * EFFORT));
}
