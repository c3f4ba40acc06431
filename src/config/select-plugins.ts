import { basename, extname } from "node:path";
import { messageOf } from "../errors.js";
import type { PluginConfig } from "./config.js";
import { expectedName, isModulePath, quoteValue, resolveModule, withoutUndefined } from "./value-schemas.js";

/** Plugins that come with the package, in the order in which they are loaded. */
export const BUILT_IN_PLUGINS = [
  "dataset_info",
  "discovery",
  "edr",
  "explore",
  "file",
  "mcp",
  "module_version",
  "opendap",
  "plugin_info",
  "references",
  "select",
  "stac",
  "thredds",
  "thumbnail",
  "tiles",
  "wms",
  "zarr",
  "zarr3",
] as const;
/** Those that are loaded unless switched off. */
export const DEFAULT_PLUGINS: readonly string[] = BUILT_IN_PLUGINS.filter((name) => name !== "mcp");
/** Name of a built-in plugin. */
export type BuiltInPlugin = (typeof BUILT_IN_PLUGINS)[number];

/** A plugin that one place of the configuration switches on or off. */
export interface PluginChoice {
  readonly name: string;
  readonly enabled: boolean;
  /** That place, for messages. */
  readonly place: string;
  /** Absolute path or package name of a third-party plugin. */
  readonly module?: string;
  readonly options?: unknown;
}

/**
 * Selects the plugins to load: the built-in ones, then added ones; later choices win over earlier ones.
 * @param problems Gets a line for a choice without a module whose name is neither built in nor added before.
 */
export function selectPlugins(choices: readonly PluginChoice[], problems: string[]): PluginConfig[] {
  const known = new Map<string, { config: PluginConfig; enabled: boolean }>();
  for (const name of BUILT_IN_PLUGINS)
    known.set(name, { config: { name }, enabled: DEFAULT_PLUGINS.includes(name) });
  for (const choice of choices) {
    const before = known.get(choice.name);
    if (choice.module !== undefined && isBuiltIn(choice.name)) {
      problems.push(
        `${choice.place}: ${quoteValue(choice.name)} is built in; expected another name for a module`,
      );
    } else if (before === undefined && choice.module === undefined) {
      const expected = expectedName(choice.name, BUILT_IN_PLUGINS, expectedPlugin());
      problems.push(`${choice.place}: unknown plugin ${quoteValue(choice.name)}; ${expected}`);
    } else {
      const module = choice.module ?? before?.config.module;
      const options = choice.options ?? before?.config.options;
      known.set(choice.name, {
        config: { name: choice.name, ...withoutUndefined({ module, options }) },
        enabled: choice.enabled,
      });
    }
  }
  return [...known.values()].filter(({ enabled }) => enabled).map(({ config }) => config);
}

/**
 * Parses `--plugin TEXT`: a plugin's name, `NAME=MODULE`, or a module, named after its file. A text of lower-case letters,
 * digits and `_` is a name, so that a misspelt name is not taken for a package.
 */
export function parsePluginText(
  text: string,
  context: {
    readonly enabled: boolean;
    readonly place: string;
    readonly directory: string;
    readonly problems: string[];
  },
): PluginChoice[] {
  const { enabled, place, directory, problems } = context;
  if (text.trim() === "" || /\p{Cc}/u.test(text)) {
    problems.push(`${place}: expected a plugin's name or module, received ${quoteValue(text)}`);
    return [];
  }
  if (!enabled || isPluginName(text)) return [{ name: text, enabled, place }];
  const named = /^([a-z][a-z0-9_]*)=(.+)$/.exec(text);
  try {
    const module = named?.[2] ?? text;
    const name = named?.[1] ?? (isModulePath(module) ? basename(module, extname(module)) : module);
    return [{ name, enabled, place, module: resolveModule(module, directory) }];
  } catch (error) {
    problems.push(
      `${place}: expected a plugin's name or module, received ${quoteValue(text)}: ${messageOf(error)}`,
    );
    return [];
  }
}

function isPluginName(text: string): boolean {
  return /^[a-z][a-z0-9_]*$/.test(text);
}

/** Whether a plugin comes with the package. */
export function isBuiltIn(name: string): name is BuiltInPlugin {
  return (BUILT_IN_PLUGINS as readonly string[]).includes(name);
}

function expectedPlugin(): string {
  return `built in are ${BUILT_IN_PLUGINS.join(", ")}; another one is given by its module: NAME=MODULE, or {"module": …} in the file`;
}
