import { resolve } from "node:path";
import type { PluginConfig } from "../config/config.js";
import { resolveLocation, resolveModule } from "../config/locate.js";
import { optionConfig } from "../config/option-config.js";
import { defaultValues, OPTIONS } from "../config/options.js";
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
  const { log = "warn", cache, plugins = BUILT_IN_PLUGINS, datasets, ...said } = checked;
  const given = Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined));
  const { simd: _simd, processes: _processes, ...values } = optionConfig({ ...defaultValues({}), ...given });
  const config: ServerConfig = {
    ...values,
    cache:
      cache === undefined
        ? null
        : {
            directory: resolve(cache.directory),
            maxBytes: cache.maxBytes ?? OPTIONS.cacheSize.defaultValue({}),
          },
    datasets: datasets.map(datasetConfig),
    plugins: plugins.map(pluginOrConfig),
    logLevel: typeof log === "string" ? log : "info",
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
      : { location: source.location, source: borrowed(source) }),
    ...(cacheControl === undefined ? {} : { cacheControl }),
  };
}

/** The source of a tree that was given; it stays open when the server closes, for whoever gave it. */
function borrowed(tree: ServableTree): Source {
  return { ...(sourceOf(tree) as Source), close: async () => {} };
}
