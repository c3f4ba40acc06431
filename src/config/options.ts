import { availableParallelism, homedir, tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import type { z } from "zod";
import { EDGE_OPTIONS } from "./edge-options.js";
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
  secondsSchema,
  textSchema,
} from "./value-schemas.js";

/**
 * Every option that is a single value: the one place from which flags, variables, keys of the file, help, and the
 * table of the README are derived.
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
  simd: option({
    placeholder: null,
    summary: "Decode and encode Blosc and LZ4 with SIMD; without it the same arrays, more slowly",
    schema: booleanSchema,
    fromText: asBoolean,
    defaultValue: () => true,
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
    summary: "Where they are kept; several servers may share it",
    schema: textSchema("a directory"),
    fromText: asText,
    defaultValue: defaultCacheDirectory,
    defaultText: "$XDG_CACHE_HOME/zpublish or ~/.cache/zpublish",
    isPath: true,
  }),
  cacheSize: option({
    placeholder: "size",
    summary: "How much is kept: 10GiB, 512MB, or a number of bytes",
    schema: byteSizeSchema,
    fromText: asText,
    defaultValue: () => 10 * 2 ** 30,
    defaultText: "10GiB",
  }),
  cacheVerify: option({
    placeholder: "seconds",
    summary:
      "How long the checksum of a kept chunk is believed once it was looked at, while nobody writes into the file; 0: looked at each time",
    schema: secondsSchema(0, 86_400),
    fromText: asNumber,
    defaultValue: () => 2,
  }),
  rootPath: option({
    placeholder: "path",
    summary: "Path before every route, where a proxy puts one",
    schema: rootPathSchema,
    fromText: asText,
    defaultValue: () => "",
  }),
  refresh: option({
    placeholder: "seconds",
    summary: "How often to look for new metadata in the sources; 0: never",
    schema: refreshSchema,
    fromText: asNumber,
    defaultValue: () => 5,
  }),
  corsOrigin: option({
    placeholder: "origins",
    summary: "Whose pages may read from here: * for all, or origins with commas",
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
  skipInvalid: option({
    placeholder: null,
    summary: "Serve without the datasets that cannot be opened",
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
  ...EDGE_OPTIONS,
  ...OBSERVE_OPTIONS,
};

export type OptionKey = keyof typeof OPTIONS;
export type OptionValues = { -readonly [K in OptionKey]: z.output<(typeof OPTIONS)[K]["schema"]> };

export const OPTION_KEYS = Object.keys(OPTIONS) as readonly OptionKey[];

/** What holds where nobody says anything. */
export function defaultValues(env: Environment): OptionValues {
  return Object.fromEntries(
    OPTION_KEYS.map((key) => [key, optionSpec(key).defaultValue(env)]),
  ) as OptionValues;
}

/** What the table says of a key, whatever the type of its value. */
export function optionSpec(key: OptionKey): OptionSpec<unknown> {
  return OPTIONS[key] as OptionSpec<unknown>;
}

/** `cacheDir` → `--cache-dir` */
export function flagOf(key: string): string {
  return `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** `cacheDir` → `ZPUBLISH_CACHE_DIR` */
export function variableOf(key: string): string {
  return `ZPUBLISH_${key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

/** As the help and the README show it. */
export function defaultTextOf(key: OptionKey): string {
  const spec = optionSpec(key);
  return spec.defaultText ?? String(spec.defaultValue({}));
}

/** The XDG base directory specification ignores relative values. */
function defaultCacheDirectory(env: Environment): string {
  const xdg = env.XDG_CACHE_HOME;
  if (xdg !== undefined && isAbsolute(xdg)) return join(xdg, "zpublish");
  const home = env.HOME !== undefined && isAbsolute(env.HOME) ? env.HOME : homedir();
  return isAbsolute(home) ? join(home, ".cache", "zpublish") : join(tmpdir(), "zpublish");
}
