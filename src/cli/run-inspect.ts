import { basename } from "node:path";
import { resolveLocation } from "../config/locate.js";
import type { JsonValue } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import { openSource } from "../source/open-source.js";
import { formatInspection } from "./format-inspection.js";
import { inspectStores, inspectTree } from "./inspect.js";
import { createProgressReporter } from "./open-progress.js";

/**
 * Prints the content of a location on standard output, as text or as JSON.
 * @throws ZpublishError `invalid-metadata` or `source-unreadable` if the location cannot be opened.
 */
export async function runInspect(location: string, { json }: { readonly json: boolean }): Promise<void> {
  const source = await openSource(resolveLocation(location, process.cwd()));
  const progress = createProgressReporter(process.stderr, { info: () => {} });
  try {
    const tree = await source.readTree((arrays) =>
      progress.update({ opened: 0, total: 1, id: basename(location), arrays }),
    );
    progress.finish();
    const inspection = { ...(await inspectTree(location, tree)), stores: inspectStores() };
    process.stdout.write(
      json ? `${stringifyJson(inspection as unknown as JsonValue, 2)}\n` : formatInspection(inspection),
    );
  } finally {
    progress.finish();
    await source.close();
  }
}
