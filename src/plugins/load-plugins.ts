import { isAbsolute } from "node:path";
import { pathToFileURL } from "node:url";
import type { PluginConfig } from "../config/config.js";
import { BUILT_IN_PLUGINS, type BuiltInPlugin, isBuiltIn } from "../config/select-plugins.js";
import { messageOf, ZpublishError } from "../errors.js";
import type { Plugin, PluginModule } from "./plugin.js";

/** The built-in plugins, imported on demand: one that is switched off is not loaded. */
const BUILT_IN: Readonly<Record<BuiltInPlugin, () => Promise<PluginModule>>> = {
  dataset_info: () => import("./dataset-info/dataset-info-plugin.js"),
  discovery: () => import("./discovery/discovery-plugin.js"),
  edr: () => import("./edr/edr-plugin.js"),
  explore: () => import("./explore-plugin.js"),
  file: () => import("./file-plugin.js"),
  mcp: () => import("./mcp/mcp-plugin.js"),
  module_version: () => import("./service-info/module-version.js"),
  opendap: () => import("./opendap/opendap-plugin.js"),
  plugin_info: () => import("./service-info/plugin-info.js"),
  references: () => import("./references-plugin.js"),
  select: () => import("./select/select-plugin.js"),
  stac: () => import("./stac/stac-plugin.js"),
  thredds: () => import("./thredds/thredds-plugin.js"),
  thumbnail: () => import("./thumbnail-plugin.js"),
  tiles: () => import("./tiles/tiles-plugin.js"),
  wms: () => import("./wms/wms-plugin.js"),
  zarr: () => import("./zarr-plugin.js"),
  zarr3: () => import("./zarr3-plugin.js"),
};

const PLUGIN_NAME = /^[a-z][a-z0-9_]*$/;

/**
 * Loads plugins, in order.
 * @throws ZpublishError `invalid-config` if a module cannot be loaded or is no plugin, or a name is used twice.
 */
export async function loadPlugins(wanted: readonly (PluginConfig | Plugin)[]): Promise<readonly Plugin[]> {
  const plugins: Plugin[] = [];
  for (const entry of wanted) {
    const plugin = isGivenPlugin(entry)
      ? checkPlugin(entry, `plugin '${entry.name}'`)
      : await loadPlugin(entry);
    const other = plugins.find(({ name }) => name === plugin.name);
    if (other !== undefined) {
      throw new ZpublishError(
        "invalid-config",
        `plugin name '${plugin.name}': expected to be used once, received it from '${other.path}' and '${plugin.path}'`,
      );
    }
    plugins.push(plugin);
  }
  return plugins;
}

/** Tells a plugin from the configuration of one that has to be loaded. */
export function isGivenPlugin(entry: PluginConfig | Plugin): entry is Plugin {
  return "routes" in entry || "datasets" in entry;
}

async function loadPlugin({ name, module, options }: PluginConfig): Promise<Plugin> {
  const what = module === undefined ? `plugin '${name}'` : `plugin '${name}' of module '${module}'`;
  try {
    const { default: exported } = await (module === undefined ? loadBuiltIn(name) : loadModule(module));
    return checkPlugin(typeof exported === "function" ? await exported(options) : exported, what);
  } catch (error) {
    if (error instanceof ZpublishError) throw error;
    const problem = `${what} cannot be loaded: ${messageOf(error)}`;
    throw new ZpublishError("invalid-config", problem, { cause: error });
  }
}

/** @throws ZpublishError `invalid-config` if there is none of that name. */
function loadBuiltIn(name: string): Promise<PluginModule> {
  if (isBuiltIn(name)) return BUILT_IN[name]();
  throw new ZpublishError(
    "invalid-config",
    `plugin '${name}': expected one of ${BUILT_IN_PLUGINS.join(", ")}, or a module`,
  );
}

/** Imports a file by its URL, and any other module by its specifier. */
function loadModule(module: string): Promise<PluginModule> {
  return import(isAbsolute(module) ? pathToFileURL(module).href : module);
}

function checkPlugin(plugin: unknown, what: string): Plugin {
  const { name, version, path, routes, datasets } = (plugin ?? {}) as Partial<Plugin>;
  const parts = [routes, datasets].filter((part) => part !== undefined);
  const isPlugin =
    typeof name === "string" &&
    PLUGIN_NAME.test(name) &&
    typeof version === "string" &&
    typeof path === "string" &&
    parts.length > 0 &&
    parts.every((part) => typeof part === "function");
  if (isPlugin) return plugin as Plugin;
  throw new ZpublishError(
    "invalid-config",
    `${what}: expected a default export {name: "lower_case", version: "…", path: "…", routes(context)} or with datasets(context), ` +
      `received ${plugin === null ? "null" : typeof plugin}${typeof name === "string" ? ` named '${name}'` : ""}`,
  );
}
