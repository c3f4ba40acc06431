import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import type { ExperimentContext, ExperimentResult } from "../../bench/experiments/experiment.js";
import { EXPERIMENTS } from "../../bench/experiments/experiments.js";
import { experimentSection, goalSection } from "../../bench/report/experiment-section.js";
import { clientMissing } from "../require-client.js";

const root = t.testdir({});
const skip = existsSync("/proc/self/smaps") ? false : "skipped, because there is no /proc/PID/smaps";

let folders = 0;
const context: ExperimentContext = {
  size: "tiny",
  rounds: 1,
  seconds: 0.3,
  parent: join(root, "data"),
  freshFolder(name) {
    const folder = join(root, `${name}-${folders++}`);
    mkdirSync(folder);
    return folder;
  },
  onProgress: () => {},
};

/** Clients that an experiment runs. */
const CLIENTS: Readonly<Record<string, Parameters<typeof clientMissing>>> = {
  "browser-http2": ["chromium", "nginx", "haproxy"],
  explore: ["chromium"],
  files: ["h5netcdf", "h5py", "netcdf4", "xarray"],
};

/** What else is known of the results of some. */
const CHECKS: Readonly<Record<string, (t: Test, result: ExperimentResult) => void>> = {
  // One encode for requests at once, and every one of those without a cache.
  "single-flight"(t, { goals, records, notes }) {
    t.match(goals, [{ isMet: true }]);
    t.match(records, [
      { requests: 128, encodes: 1 },
      { requests: 128, encodes: 1 },
    ]);
    t.match(notes.join("\n"), /twice each, without a cache, were counted as 4 encodes/);
  },
};

/** What was measured says nothing here; only that it was, of answers that were right. */
for (const [name, experiment] of Object.entries(EXPERIMENTS)) {
  const clients = CLIENTS[name];
  const missing = skip || (clients === undefined ? false : clientMissing(...clients));
  t.test(`${name} finds its answers right and fills its tables`, { skip: missing }, async (t) => {
    const result = await experiment.run(context);
    t.ok(result.records.length > 0 && result.tables.length > 0);
    for (const { columns, rows } of result.tables) {
      t.ok(rows.length > 0);
      for (const row of rows) t.equal(row.length, columns.length, `as many cells as columns: ${row}`);
    }
    const text = experimentSection({ name, title: experiment.title, result }).join("\n");
    t.match(text, `## ${name}\n`);
    t.notMatch(text + goalSection(result.goals).join("\n"), /NaN|Infinity|undefined|\[object/);
    t.doesNotThrow(() => JSON.stringify(result.records));
    CHECKS[name]?.(t, result);
  });
}
