import type { Goal } from "../experiments/experiment.js";
import { ROWS } from "../rows.js";
import type { Summary } from "./summarize.js";

/** How the rows stand to their goals: every way in which zpublish was measured, against everybody it is to be compared with. */
export function rowGoals(summaries: readonly Summary[]): Goal[] {
  return summaries
    .filter(({ subject }) => subject.startsWith("zpublish") && subject !== "zpublish on node:http")
    .flatMap(({ row, subject, ratios }) =>
      Object.entries(ROWS[row]?.goals ?? {}).flatMap(([other, aim]) => {
        const ratio = ratios[other];
        if (ratio === undefined) return [];
        return [
          {
            what: `${row}: ${subject}`,
            expected: `at least ${aim} × ${other}`,
            measured: `${ratio.toFixed(2)} ×`,
            isMet: ratio >= aim,
          },
        ];
      }),
    );
}
