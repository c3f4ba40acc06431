import type { Test } from "tap";
import { errorsOf, type FixtureStore, type Fixtures, type RunningServer } from "./harness.js";
import { datasetId, refusedBy, type Variant } from "./served-variants.js";

/** A dataset that a client has read. */
export interface ReadDataset {
  readonly store: string;
  readonly variant: Variant;
}

/** Says of datasets which arrays were refused at open: exactly those that had to be, each by name with a reason. */
export function checkRefusals(
  t: Test,
  server: RunningServer,
  fixtures: Fixtures,
  datasets: Iterable<ReadDataset>,
): void {
  for (const { store, variant } of datasets) {
    const id = datasetId(store, variant);
    const lines = server.log().filter(({ msg, dataset }) => msg === "refused" && dataset === id);
    const paths = lines.map(({ path }) => path).sort();
    t.same(paths, refusedBy(variant, fixtures.stores[store] as FixtureStore), `refused of ${id}`);
    for (const { path, reason } of lines) {
      t.ok(String(reason).length > 10 && String(reason).includes(String(path)), `reason: ${reason}`);
    }
  }
}

/** A client can turn a failure into fill values without a word, so the server's log has to be looked at as well. */
export function checkCleanLog(t: Test, server: RunningServer): void {
  t.same(errorsOf(server).slice(0, 5), [], "no errors in the log");
}
