import { basename } from "node:path";
import type { CollectionConfig } from "../config/config.js";
import { createCollectionProvider } from "../dataset/collection/collection-provider.js";
import type { DatasetProvider } from "../dataset/dataset-provider.js";
import { createDataTree } from "../dataset/given/data-tree.js";
import type { ProviderSpec } from "../dataset/providers/provider-handle.js";
import { messageOf, ZpublishError } from "../errors.js";
import { assertRoot } from "../find/assert-root.js";
import type { Log } from "../observe/log.js";
import { packageVersions } from "../observe/versions.js";
import type { Plugin } from "../plugins/plugin.js";
import { createGivenProvider, createPluginProvider } from "../plugins/plugin-provider.js";
import type { ServerConfig } from "./server-config.js";

/** Returns the providers of a configuration: collections, then those of plugins, then given ones, each in order. */
export function providersOf(config: ServerConfig, plugins: readonly Plugin[], log: Log): ProviderSpec[] {
  const context = { log, versions: packageVersions(), createDataTree };
  const names = new Set(plugins.map(({ name }) => name));
  const collections = config.collections.map((collection) => {
    const name = uniqueName(collection.name || basename(collection.root) || "collection", names);
    return {
      owner: createCollectionProvider,
      config: collection,
      create: () => openCollection(collection, name, config.skipInvalid ? log : undefined),
    };
  });
  const published = plugins
    .filter(({ datasets }) => datasets !== undefined)
    .map((plugin) => ({
      owner: plugin,
      config: config.datasetDefaults,
      create: () => createPluginProvider(plugin, context, config.datasetDefaults),
    }));
  const given = (config.providers ?? []).map(({ name, datasets }) => ({
    owner: datasets,
    config: [name, config.datasetDefaults],
    create: () => createGivenProvider(name, datasets, `provider '${name}'`, config.datasetDefaults),
  }));
  return [...collections, ...published, ...given];
}

function uniqueName(wanted: string, names: Set<string>): string {
  let name = wanted;
  for (let number = 2; names.has(name); number++) name = `${wanted}-${number}`;
  names.add(name);
  return name;
}

/**
 * @param log Takes why the root cannot be listed, so that the server starts nevertheless. Default: it does not.
 * @throws ZpublishError naming the collection
 */
async function openCollection(
  config: CollectionConfig,
  name: string,
  log: Log | undefined,
): Promise<DatasetProvider> {
  try {
    const provider = createCollectionProvider(config, name);
    await assertRoot(config, config.groups === true).catch((error: unknown) => {
      if (log === undefined) throw error;
      log.warn({ provider: name, reason: messageOf(error) }, "collection cannot be listed yet");
    });
    return provider;
  } catch (error) {
    if (!(error instanceof ZpublishError)) throw error;
    const problem = `collection ${config.root}: ${error.message}`;
    throw new ZpublishError(error.code, problem, { details: error.details, cause: error });
  }
}
