import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { compareFiles } from "../test/foreign/compare-files.js";
import { findFiles } from "../test/foreign/find-files.js";
import { foreignReport } from "./foreign/foreign-report.js";
import { createProgress } from "./progress.js";

/**
 * A program: serves every file below a folder, compares it with what its own libraries read, and prints a report. `--outcomes`
 * writes what became of each file, as `test/fixtures/foreign/outcomes.json` has it.
 */
const { values } = parseArgs({
  options: {
    directory: { type: "string" },
    outcomes: { type: "string" },
  },
});
if (values.directory === undefined) {
  console.error("foreign-files: expected --directory with a folder of NetCDF, HDF5 and TIFF files");
  process.exit(2);
}
// Of the fixtures' own folder, these are no data.
const files = findFiles(values.directory).filter(({ id }) => !/\.(json|md|txt|tsv|jsonl|list)$/.test(id));
const progress = createProgress();
progress.label(`${files.length} files`);
const scratch = await mkdtemp(join(tmpdir(), "zpublish-foreign-"));
try {
  const outcomes = await compareFiles(files, scratch, (done) =>
    progress.update(done / files.length, `${done} of ${files.length}`),
  );
  progress.end();
  console.log(foreignReport(outcomes));
  if (values.outcomes !== undefined) {
    const entries = outcomes.map(({ file, outcome }) => [file.id, outcome]);
    writeFileSync(values.outcomes, `${JSON.stringify(Object.fromEntries(entries), null, 2)}\n`);
  }
} finally {
  await rm(scratch, { recursive: true, force: true });
}
