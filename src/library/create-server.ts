import { resolve } from "node:path";
import type { PluginConfig } from "../config/config.js";
import { defaultValues, OPTIONS, type OptionKey, optionConfig, optionSpec } from "../config/options.js";
import { DEFAULT_PLUGINS, isBuiltIn } from "../config/select-plugins.js";
import { resolveLocation, resolveModule } from "../config/value-schemas.js";
import { sourceOf } from "../dataset/in-memory-tree.js";
import { createOneAtATime } from "../event-loop/joined.js";
import { createLog } from "../observe/log.js";
import { isGivenPlugin } from "../plugins/load-plugins.js";
import type { Plugin } from "../plugins/plugin.js";
import type { ServerConfig } from "../server/open-app.js";
import { openServer, type ServerHandle } from "../server/server.js";
import type { StoreSettings } from "../stores/byte-store.js";
import type { Source } from "../zarr/stored-tree.js";
import { type CheckedServerOptions, checkServerOptions, type ServerOptions } from "./server-options.js";

/** A server of a program that uses this package. */
export interface Server extends Pick<ServerHandle, "listen" | "refresh" | "close"> {
  /**
   * Replaces the server's options in one step. No request fails, requests in flight finish with the options they began
   * with, and datasets whose options are the same stay open. Concurrent calls run one after the other.
   * @param options All options, as for `createServer`; `log` is ignored.
   * @returns Names of changed options that need a new server, such as `port`; they stay as they are.
   * @throws ZpublishError as `createServer`, and `draining` if the server closes; nothing has changed then.
   */
  reload(options: ServerOptions): Promise<readonly string[]>;
}

/**
 * Opens all datasets and prepares a server; `listen()` makes it accept connections.
 * @throws ZpublishError `invalid-config`, `invalid-metadata` or `source-unreadable`, naming the option or dataset.
 */
export async function createServer(options: ServerOptions): Promise<Server> {
  const { log = "warn" } = checkServerOptions(options);
  const server = await openServer(configOf(options), { log: typeof log === "string" ? createLog(log) : log });
  const oneAtATime = createOneAtATime();

  const { listen, refresh, close } = server;
  return {
    listen,
    refresh,
    close,
    reload: (next) =>
      oneAtATime(async () => {
        const prepared = await server.prepare(configOf(next));
        prepared.use();
        return prepared.ignored;
      }),
  };
}

function configOf(options: ServerOptions): ServerConfig {
  const checked = checkServerOptions(options);
  const {
    log = "warn",
    cache,
    plugins = DEFAULT_PLUGINS,
    datasets,
    collections,
    providers = {},
    stores,
    ...said
  } = checked;
  const given = Object.fromEntries(
    Object.entries(said)
      .filter(([, value]) => value !== undefined)
      .map(([key, value]) => [key, optionSpec(key as OptionKey).isPath ? resolve(String(value)) : value]),
  );
  const { processes: _processes, ...values } = optionConfig({ ...defaultValues({}), ...given });
  return {
    ...values,
    cache:
      cache === undefined
        ? null
        : {
            directory: resolve(cache.directory),
            maxBytes: cache.maxBytes ?? OPTIONS.cacheSize.defaultValue({}),
          },
    datasets: datasets.map((dataset) => datasetConfig(dataset, stores)),
    collections: collections.map((collection) => withStores(collection, stores)),
    providers: Object.entries(providers).map(([name, each]) => ({ name, datasets: each })),
    ...(stores.length === 0 ? {} : { datasetDefaults: { stores } }),
    plugins: plugins.map(pluginOrConfig),
    logLevel: typeof log === "string" ? log : "info",
  };
}

/** Resolves modules from the program's working directory, since this package may be installed elsewhere. */
function pluginOrConfig(plugin: string | PluginConfig | Plugin): PluginConfig | Plugin {
  if (typeof plugin === "string") {
    return isBuiltIn(plugin)
      ? { name: plugin }
      : { name: plugin, module: resolveModule(plugin, process.cwd()) };
  }
  if (isGivenPlugin(plugin) || plugin.module === undefined) return plugin;
  return { ...plugin, module: resolveModule(plugin.module, process.cwd()) };
}

function datasetConfig(
  { source, ...dataset }: CheckedServerOptions["datasets"][number],
  stores: readonly StoreSettings[],
): ServerConfig["datasets"][number] {
  return withStores(
    {
      ...dataset,
      ...(typeof source === "string"
        ? { location: resolveLocation(source, process.cwd()) }
        : { location: source.location, source: sourceOf(source) as Source }),
    },
    stores,
  );
}

function withStores<T extends object>(config: T, stores: readonly StoreSettings[]): T {
  return stores.length === 0 ? config : { ...config, stores };
}
