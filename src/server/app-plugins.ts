import { isDeepStrictEqual } from "node:util";
import type { PluginConfig } from "../config/config.js";
import { isGivenPlugin, loadPlugins } from "../plugins/load-plugins.js";
import type { Plugin } from "../plugins/plugin.js";

/** The plugins of an app. Successive apps share plugins whose configuration is the same. */
export interface AppPlugins {
  /** In the order configured. */
  readonly plugins: readonly Plugin[];
  /** Returns the plugin of a configuration; undefined if it has to be loaded. */
  pluginOf(config: PluginConfig | Plugin): Plugin | undefined;
  /** Closes the plugins that no other app uses. @throws The first error of a plugin, after all are closed. */
  close(): Promise<void>;
}

/**
 * Number of apps per plugin. It counts objects, because a module may return the same object each time it is loaded.
 */
const owners = new WeakMap<Plugin, number>();

/**
 * Loads the plugins of an app, in order.
 * @param former Plugins of the app to be replaced. Those whose configuration is the same are taken over with their state.
 * @throws ZpublishError `invalid-config`, as `loadPlugins`.
 */
export async function loadAppPlugins(
  configs: readonly (PluginConfig | Plugin)[],
  former: AppPlugins | undefined,
): Promise<AppPlugins> {
  const plugins = await loadPlugins(takenOver(configs, former));
  for (const plugin of plugins) owners.set(plugin, (owners.get(plugin) ?? 0) + 1);

  async function release(plugin: Plugin): Promise<void> {
    const left = (owners.get(plugin) ?? 1) - 1;
    owners.set(plugin, left);
    if (left === 0) await plugin.close?.();
  }

  return {
    plugins,
    pluginOf(config) {
      return plugins[configs.findIndex((other) => isSamePlugin(config, other))];
    },
    async close() {
      const closed = await Promise.allSettled(plugins.map(release));
      for (const result of closed) if (result.status === "rejected") throw result.reason;
    },
  };
}

/** Replaces configurations by plugins of `former`. Separate, so that the returned closures do not retain `former` and all before. */
function takenOver(
  configs: readonly (PluginConfig | Plugin)[],
  former: AppPlugins | undefined,
): readonly (PluginConfig | Plugin)[] {
  return configs.map((config) => former?.pluginOf(config) ?? config);
}

/** Compares plugins by identity, and configurations by value. */
function isSamePlugin(one: PluginConfig | Plugin, other: PluginConfig | Plugin): boolean {
  return one === other || (!isGivenPlugin(one) && !isGivenPlugin(other) && isDeepStrictEqual(one, other));
}
