import { isDeepStrictEqual } from "node:util";
import type { PluginConfig } from "../config/config.js";
import { loadPlugins } from "../plugins/load-plugins.js";
import type { Plugin } from "../plugins/plugin.js";

/** The plugins of an app; apps that follow one another share those whose configuration is the same. */
export interface AppPlugins {
  /** In the order configured. */
  readonly plugins: readonly Plugin[];
  /** The plugin of that configuration; undefined where it is to be loaded. */
  pluginOf(config: PluginConfig | Plugin): Plugin | undefined;
  /** Closes those that no other app has. @throws What a plugin throws; the others are closed all the same. */
  close(): Promise<void>;
}

/**
 * How many apps have each plugin. A module's plugin may be one object however often it is loaded, so that the object is what is
 * counted.
 */
const owners = new WeakMap<Plugin, number>();

/**
 * Loads the plugins of an app, in order.
 * @param former Whose plugins are taken over where their configuration is the same, with what they keep.
 * @throws ZpublishError `invalid-config`, as `loadPlugins`.
 */
export async function loadAppPlugins(
  configs: readonly (PluginConfig | Plugin)[],
  former: AppPlugins | undefined,
): Promise<AppPlugins> {
  const plugins = await loadPlugins(takenOver(configs, former));
  for (const plugin of plugins) owners.set(plugin, (owners.get(plugin) ?? 0) + 1);

  async function leave(plugin: Plugin): Promise<void> {
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
      const closed = await Promise.allSettled(plugins.map(leave));
      for (const result of closed) if (result.status === "rejected") throw result.reason;
    },
  };
}

/** Out of sight of what is returned, which would keep the former app, and all before it, in memory. */
function takenOver(
  configs: readonly (PluginConfig | Plugin)[],
  former: AppPlugins | undefined,
): readonly (PluginConfig | Plugin)[] {
  return configs.map((config) => former?.pluginOf(config) ?? config);
}

/** Plugins that are objects already are the same where they are the same object. */
function isSamePlugin(one: PluginConfig | Plugin, other: PluginConfig | Plugin): boolean {
  return one === other || (!("routes" in one) && !("routes" in other) && isDeepStrictEqual(one, other));
}
