import { basename } from "node:path";
import type { CollectionConfig, Config, DatasetConfig } from "../config/config.js";
import { resolveArguments } from "../config/resolve-config.js";
import { createCollectionProvider } from "../dataset/collection/collection-provider.js";
import { openJoin } from "../join/open-join.js";
import type { JsonValue } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import { openSource } from "../open/open-source.js";
import { separateFolders } from "../server/open-app.js";
import { formatInspection } from "./format-inspection.js";
import { inspectStores, inspectTree } from "./inspect.js";
import { formatCollection, inspectCollection } from "./inspect-collection.js";
import { createProgressReporter } from "./open-progress.js";

/** Options of `inspect`. */
export interface InspectOptions {
  readonly json: boolean;
  /** Dimension along which the files of the location are one dataset, as in `serve`. */
  readonly concat?: string;
  /** New dimension along which they are. */
  readonly stack?: string;
}

/**
 * Prints the content of a location on standard output, as text or as JSON: of a dataset, of files that are joined, or of a folder.
 * @throws ZpublishError `invalid-config`; `invalid-metadata` or `source-unreadable` if the location cannot be opened.
 */
export async function runInspect(location: string, options: InspectOptions): Promise<void> {
  const { datasets, collections } = await separateFolders(resolveLocation(location, options));
  for (const dataset of datasets) await printDataset(location, dataset, options);
  for (const collection of collections) await printCollection(location, collection, options);
}

/** Resolves a location as `serve` does, without its variables. */
function resolveLocation(location: string, { concat, stack }: InspectOptions): Config {
  const said = { locations: [location], config: undefined, concat, stack, plugins: [], values: {} };
  return resolveArguments(said, { env: {}, cwd: process.cwd() });
}

/** @param said Location as the operator wrote it. */
async function printDataset(
  said: string,
  { location, join }: DatasetConfig,
  { json }: InspectOptions,
): Promise<void> {
  const source = join === undefined ? await openSource(location) : await openJoin(location, join);
  const progress = createProgressReporter(process.stderr, { info: () => {} });
  try {
    const tree = await source.readTree((arrays) =>
      progress.update({ opened: 0, total: 1, id: basename(location), arrays }),
    );
    progress.finish();
    const inspection = { ...(await inspectTree(said, tree)), stores: inspectStores() };
    print(json ? inspection : formatInspection(inspection));
  } finally {
    progress.finish();
    await source.close();
  }
}

/** @param said Location as the operator wrote it. */
async function printCollection(
  said: string,
  config: CollectionConfig,
  { json }: InspectOptions,
): Promise<void> {
  const provider = createCollectionProvider(config);
  try {
    const inspection = await inspectCollection(said, provider, config.root.startsWith("/") ? 2 : 1);
    print(json ? inspection : formatCollection(inspection));
  } finally {
    await provider.close();
  }
}

/** Writes text, or anything else as JSON. */
function print(content: object | string): void {
  process.stdout.write(typeof content === "string" ? content : `${stringifyJson(content as JsonValue, 2)}\n`);
}
