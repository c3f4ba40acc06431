import type { Test } from "tap";
import type { Program } from "../servers/start-program.js";
import { errorsOf, type FixtureStore, type Fixtures } from "./fixtures.js";
import { datasetId, refusedBy, type Variant } from "./served-variants.js";

/** A dataset that a client has read. */
export interface ReadDataset {
  readonly store: string;
  readonly variant: Variant;
}

/** Says of datasets which arrays were refused at open: exactly those that had to be, each by name with a reason. */
export function checkRefusals(
  t: Test,
  server: Program,
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
export function checkCleanLog(t: Test, server: Program): void {
  t.same(errorsOf(server).slice(0, 5), [], "no errors in the log");
}
