import t from "tap";
import { foreignReport } from "../../bench/foreign/foreign-report.js";
import type { ForeignOutcome, MeasuredOutcome } from "../foreign/foreign-file.js";

const measured = (id: string, outcome: ForeignOutcome): MeasuredOutcome => ({
  ...{ file: { id, path: `/data/${id}` }, format: "hdf5", outcome, openMs: 3, heldMs: 1 },
});

t.test(
  "a report counts files and arrays, and joins reasons that differ in names and numbers alone",
  async (t) => {
    const report = foreignReport([
      measured("one.h5", { equal: 3, refused: { "/a": "'a' has 7 axes", "/b": "'b' has 12 axes" } }),
      measured("two.h5", { refusedFile: "unsupported: two.h5: superblock 9" }),
      measured("three.h5", { refusedFile: "invalid-metadata: three.h5: cut short", oracle: "unreadable" }),
    ]);
    t.match(report, "| hdf5 | 3 | 1 | 1 | 1 | 3 | 2 | 0 | 0 | 0 | 0 |");
    t.match(report, "- **2** × 'a' has 7 axes");
    t.match(report, "`one.h5 /a`, `one.h5 /b`");
    t.match(report, "## Files that are refused, though their own library opens them (1)");
    t.match(report, "- 3 ms: `one.h5`");
  },
);
