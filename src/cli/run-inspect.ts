import { resolveLocation } from "../config/locate.js";
import type { JsonValue } from "../model/json-value.js";
import { stringifyJson } from "../model/stringify-json.js";
import { openSource } from "../source/open-source.js";
import { formatInspection } from "./format-inspection.js";
import { inspectTree } from "./inspect.js";

/**
 * Prints what is at a location, as text or as JSON, on standard output.
 * @throws ZpublishError `invalid-metadata` or `source-unreadable` where nothing can be opened there.
 */
export async function runInspect(location: string, { json }: { readonly json: boolean }): Promise<void> {
  const source = await openSource(resolveLocation(location, process.cwd()));
  try {
    const inspection = inspectTree(location, await source.readTree());
    process.stdout.write(
      json ? `${stringifyJson(inspection as unknown as JsonValue, 2)}\n` : formatInspection(inspection),
    );
  } finally {
    await source.close();
  }
}
