import type { DatasetDefaults } from "../config/config.js";
import { readDatasetConfig } from "../config/config-file.js";
import { configError, quoteValue } from "../config/value-schemas.js";
import type { GivenDataset } from "../dataset/dataset-handle.js";
import type { DatasetProvider } from "../dataset/dataset-provider.js";
import { sourceOf } from "../dataset/in-memory-tree.js";
import { messageOf, ZpublishError } from "../errors.js";
import type { Plugin, PluginDatasets, ProvidedDataset, ProviderContext } from "./plugin.js";

/**
 * Creates the provider of a plugin's datasets.
 * @param defaults What holds for datasets that do not say otherwise.
 * @throws ZpublishError `invalid-config`, naming the plugin, if its function throws or returns something else.
 */
export async function createPluginProvider(
  plugin: Pick<Plugin, "name" | "datasets">,
  context: ProviderContext,
  defaults: DatasetDefaults = {},
): Promise<DatasetProvider> {
  const place = `plugin '${plugin.name}'`;
  let datasets: PluginDatasets | undefined;
  try {
    datasets = await plugin.datasets?.(context);
  } catch (error) {
    const problem = `${place}: its datasets cannot be published: ${messageOf(error)}`;
    throw new ZpublishError("invalid-config", problem, { cause: error });
  }
  return createGivenProvider(plugin.name, datasets, place, defaults);
}

/**
 * Creates the provider of datasets that a plugin or a program gives.
 * @param name Name and, with a `~`, prefix.
 * @param place Begins messages: `plugin 'x'`.
 * @throws ZpublishError `invalid-config` if they have no `list` and `open`.
 */
export function createGivenProvider(
  name: string,
  given: unknown,
  place: string,
  defaults: DatasetDefaults = {},
): DatasetProvider {
  const datasets = checkDatasets(given, place);
  return {
    name,
    prefix: `${name}~`,
    async list(signal) {
      const ids: unknown = await datasets.list(signal);
      if (!Array.isArray(ids)) throw failure(`${place}: list(): expected an array of ids`, ids);
      // The plugin may add to its own array later.
      return [...ids];
    },
    async open(id) {
      const said: unknown = await datasets.open(id);
      return said === undefined ? undefined : givenDataset(id, said, place, defaults);
    },
    problems: () => [...(datasets.problems?.() ?? [])],
    onChange: (changed) => datasets.onChange?.(changed),
    close: async () => datasets.close?.(),
  };
}

function checkDatasets(given: unknown, place: string): PluginDatasets {
  const { list, open, problems, onChange, close } = (given ?? {}) as Partial<PluginDatasets>;
  const isComplete = typeof list === "function" && typeof open === "function";
  const extra = [problems, onChange, close].every((each) => each === undefined || typeof each === "function");
  if (isComplete && extra) return given as PluginDatasets;
  const received = isComplete ? "another problems, onChange or close" : quoteValue(given);
  const expected =
    "expected datasets {list(signal), open(id)}, and perhaps problems(), onChange(changed) and close()";
  throw configError([`${place}: ${expected}, received ${received}`]);
}

/** Checks a dataset as one of the configuration file. @throws ZpublishError `invalid-config`, one line per problem */
function givenDataset(id: string, said: unknown, place: string, defaults: DatasetDefaults): GivenDataset {
  const problems: string[] = [];
  const context = { place, directory: process.cwd(), problems };
  const { tree, ...options } = (typeof said === "object" && said !== null ? said : {}) as ProvidedDataset;
  const source = tree === undefined ? undefined : sourceOf(tree);
  const where = `${place}: datasets.${id}`;
  if (tree !== undefined && source === undefined) {
    const makers = "createDataTree(), openDataTree() or zarrStoreSource() of this zpublish";
    throw failure(`${where}.tree: expected a tree of ${makers}`, tree);
  }
  if (source !== undefined && options.location !== undefined)
    throw failure(`${where}: expected a location or a tree`, "both");
  const [read] = readDatasetConfig(
    id,
    source === undefined ? said : { ...options, location: source.location },
    context,
  );
  if (read === undefined || problems.length > 0) throw configError(problems);
  return { ...defaults, ...read, ...(source === undefined ? {} : { location: source.location, source }) };
}

function failure(expected: string, received: unknown): ZpublishError {
  return new ZpublishError("invalid-config", `${expected}, received ${quoteValue(received)}`);
}
