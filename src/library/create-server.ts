import { resolve } from "node:path";
import type { PluginConfig } from "../config/config.js";
import { resolveLocation, resolveModule } from "../config/locate.js";
import { OPTIONS } from "../config/options.js";
import { BUILT_IN_PLUGINS, isBuiltIn } from "../config/select-plugins.js";
import { createLog } from "../observe/log.js";
import type { Plugin } from "../plugins/plugin.js";
import { openServer, type Server, type ServerConfig } from "../server.js";
import type { Source } from "../source/source.js";
import { type ServableTree, sourceOf } from "./data-tree.js";
import { type CheckedServerOptions, checkServerOptions, type ServerOptions } from "./server-options.js";

/**
 * Opens all datasets and prepares a server; `listen()` makes it accept connections.
 * @throws ZpublishError `invalid-config`, `invalid-metadata` or `source-unreadable`, naming the option or dataset.
 */
export async function createServer(options: ServerOptions): Promise<Server> {
  const checked = checkServerOptions(options);
  const { log = "warn", cache, plugins = BUILT_IN_PLUGINS } = checked;
  const config: ServerConfig = {
    host: checked.host ?? OPTIONS.host.defaultValue({}),
    port: checked.port ?? OPTIONS.port.defaultValue({}),
    workers: checked.workers ?? OPTIONS.workers.defaultValue({}),
    cache:
      cache === undefined
        ? null
        : {
            directory: resolve(cache.directory),
            maxBytes: cache.maxBytes ?? OPTIONS.cacheSize.defaultValue({}),
          },
    datasets: checked.datasets.map(datasetConfig),
    plugins: plugins.map(pluginOrConfig),
    rootPath: checked.rootPath ?? OPTIONS.rootPath.defaultValue({}),
    refreshSeconds: checked.refresh ?? OPTIONS.refresh.defaultValue({}),
    corsOrigin: checked.corsOrigin ?? OPTIONS.corsOrigin.defaultValue({}),
    cacheControl: checked.cacheControl ?? OPTIONS.cacheControl.defaultValue({}),
    logLevel: typeof log === "string" ? log : "info",
    skipInvalid: checked.skipInvalid ?? OPTIONS.skipInvalid.defaultValue({}),
    title: checked.title ?? OPTIONS.title.defaultValue({}),
  };
  return openServer(config, { log: typeof log === "string" ? createLog(log) : log });
}

/** Modules are looked for from the program's working directory: this package may be installed elsewhere. */
function pluginOrConfig(plugin: string | PluginConfig | Plugin): PluginConfig | Plugin {
  if (typeof plugin === "string") {
    return isBuiltIn(plugin)
      ? { name: plugin }
      : { name: plugin, module: resolveModule(plugin, process.cwd()) };
  }
  if ("routes" in plugin || plugin.module === undefined) return plugin;
  return { ...plugin, module: resolveModule(plugin.module, process.cwd()) };
}

function datasetConfig({
  source,
  cacheControl,
  ...dataset
}: CheckedServerOptions["datasets"][number]): ServerConfig["datasets"][number] {
  return {
    ...dataset,
    ...(typeof source === "string"
      ? { location: resolveLocation(source, process.cwd()) }
      : { location: source.location, source: given(source) }),
    ...(cacheControl === undefined ? {} : { cacheControl }),
  };
}

/** The source of a tree that was given; it stays open when the server closes, for whoever gave it. */
function given(tree: ServableTree): Source {
  return { ...(sourceOf(tree) as Source), close: async () => {} };
}
