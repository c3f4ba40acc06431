import { availableParallelism, homedir, tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import type { z } from "zod";
import { ACCESS_OPTIONS } from "./access-options.js";
import { LIMIT_OPTIONS } from "./limit-options.js";
import { OBSERVE_OPTIONS } from "./observe-options.js";
import { asBoolean, asNumber, asText, type Environment, type OptionSpec, option } from "./option-spec.js";
import {
  booleanSchema,
  byteSizeSchema,
  cacheControlSchema,
  corsOriginSchema,
  hostSchema,
  integerSchema,
  logLevelSchema,
  refreshSchema,
  rootPathSchema,
  textSchema,
} from "./value-schemas.js";

/**
 * Every option that is a single value. Flags, variables, keys of the file, help and the table in this folder's `README.md`
 * derive from it.
 */
export const OPTIONS = {
  host: option({
    placeholder: "host",
    summary: "Address to listen on; 0.0.0.0 or :: for all",
    schema: hostSchema,
    fromText: asText,
    defaultValue: () => "127.0.0.1",
  }),
  port: option({
    placeholder: "port",
    summary: "Port to listen on; 0 picks a free one",
    schema: integerSchema(0, 65_535),
    fromText: asNumber,
    defaultValue: () => 9000,
  }),
  workers: option({
    placeholder: "count",
    summary: "Threads that decode and encode chunks",
    schema: integerSchema(1, 1_024),
    fromText: asNumber,
    defaultValue: () => Math.max(1, availableParallelism() - 1),
    defaultText: "processors − 1, at least 1",
  }),
  processes: option({
    placeholder: "count",
    summary: "Processes that answer requests, all on one port (Linux)",
    schema: integerSchema(1, 256),
    fromText: asNumber,
    defaultValue: () => 1,
  }),
  cache: option({
    placeholder: null,
    summary: "Keep encoded chunks on disk",
    schema: booleanSchema,
    fromText: asBoolean,
    defaultValue: () => true,
  }),
  cacheDir: option({
    placeholder: "directory",
    summary: "Directory of the chunk cache; several servers may share it",
    schema: textSchema("a directory"),
    fromText: asText,
    defaultValue: defaultCacheDirectory,
    defaultText: "$XDG_CACHE_HOME/zpublish or ~/.cache/zpublish",
    isPath: true,
  }),
  cacheSize: option({
    placeholder: "size",
    summary: "Bound of the chunk cache: 10GiB, 512MB, or a number of bytes",
    schema: byteSizeSchema,
    fromText: asText,
    defaultValue: () => 10 * 2 ** 30,
    defaultText: "10GiB",
  }),
  rootPath: option({
    placeholder: "path",
    summary: "Path before every route, if a proxy adds one",
    schema: rootPathSchema,
    fromText: asText,
    defaultValue: () => "",
  }),
  refresh: option({
    placeholder: "seconds",
    summary: "Time between refreshes of datasets; 0 for none",
    schema: refreshSchema,
    fromText: asNumber,
    defaultValue: () => 5,
  }),
  corsOrigin: option({
    placeholder: "origins",
    summary: "Origins whose pages may read: * for all, or a list with commas",
    schema: corsOriginSchema,
    fromText: asText,
    defaultValue: () => "*",
  }),
  cacheControl: option({
    placeholder: "value",
    summary: "Cache-Control of answers; a dataset in the file may have its own",
    schema: cacheControlSchema,
    fromText: asText,
    defaultValue: () => "public, max-age=0, must-revalidate",
  }),
  logLevel: option({
    placeholder: "level",
    summary: "silent, fatal, error, warn, info, debug or trace",
    schema: logLevelSchema,
    fromText: asText,
    defaultValue: () => "info" as const,
  }),
  single: option({
    placeholder: null,
    summary: "Serve the one dataset's endpoints at the root",
    schema: booleanSchema,
    fromText: asBoolean,
    defaultValue: () => false,
  }),
  skipInvalid: option({
    placeholder: null,
    summary: "Serve without the datasets that cannot be opened",
    schema: booleanSchema,
    fromText: asBoolean,
    defaultValue: () => false,
  }),
  overviews: option({
    placeholder: null,
    summary: "Publish coarser levels of datasets for which the file says nothing else",
    schema: booleanSchema,
    fromText: asBoolean,
    defaultValue: () => false,
  }),
  title: option({
    placeholder: "text",
    summary: "Title of the pages",
    schema: textSchema("a title of 1 to 200 characters", 200),
    fromText: asText,
    defaultValue: () => "zpublish",
  }),
  ...LIMIT_OPTIONS,
  ...ACCESS_OPTIONS,
  ...OBSERVE_OPTIONS,
};

/** Key of an option, as in the file. */
export type OptionKey = keyof typeof OPTIONS;
/** Checked values of all options. */
export type OptionValues = { -readonly [K in OptionKey]: z.output<(typeof OPTIONS)[K]["schema"]> };

/** All keys, in the order of the help. */
export const OPTION_KEYS = Object.keys(OPTIONS) as readonly OptionKey[];

/** Computes the defaults of all options. */
export function defaultValues(env: Environment): OptionValues {
  return Object.fromEntries(
    OPTION_KEYS.map((key) => [key, optionSpec(key).defaultValue(env)]),
  ) as OptionValues;
}

/** Looks up an option, without the type of its value. */
export function optionSpec(key: OptionKey): OptionSpec<unknown> {
  return OPTIONS[key] as OptionSpec<unknown>;
}

/** Derives an option's flag: `cacheDir` → `--cache-dir`. */
export function flagOf(key: string): string {
  return `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** Derives an option's variable: `cacheDir` → `ZPUBLISH_CACHE_DIR`. */
export function variableOf(key: string): string {
  return `ZPUBLISH_${key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

/** Writes an option's default as the help and the table of options show it. */
export function defaultTextOf(key: OptionKey): string {
  const spec = optionSpec(key);
  return spec.defaultText ?? String(spec.defaultValue({}));
}

/** Chooses the default cache directory. The XDG base directory specification ignores relative values. */
function defaultCacheDirectory(env: Environment): string {
  const xdg = env.XDG_CACHE_HOME;
  if (xdg !== undefined && isAbsolute(xdg)) return join(xdg, "zpublish");
  const home = env.HOME !== undefined && isAbsolute(env.HOME) ? env.HOME : homedir();
  return isAbsolute(home) ? join(home, ".cache", "zpublish") : join(tmpdir(), "zpublish");
}
