import { createDataTree } from "../dataset/given/data-tree.js";
import type { ProviderSpec } from "../dataset/providers/provider-handle.js";
import type { Log } from "../observe/log.js";
import { packageVersions } from "../observe/versions.js";
import type { Plugin } from "../plugins/plugin.js";
import { createPluginProvider } from "../plugins/plugin-provider.js";
import type { ServerConfig } from "./server-config.js";

/** Returns the providers of a configuration: those of plugins, in order. */
export function providersOf(config: ServerConfig, plugins: readonly Plugin[], log: Log): ProviderSpec[] {
  const context = { log, versions: packageVersions(), createDataTree };
  return plugins
    .filter(({ datasets }) => datasets !== undefined)
    .map((plugin) => ({
      owner: plugin,
      config: config.datasetDefaults,
      create: () => createPluginProvider(plugin, context, config.datasetDefaults),
    }));
}
