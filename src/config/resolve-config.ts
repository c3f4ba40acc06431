import { resolve } from "node:path";
import type { Config, DatasetDefaults } from "./config.js";
import { type ConfigFile, readConfigFile } from "./config-file.js";
import { DEFAULT_OVERVIEWS } from "./dataset-schema.js";
import { resolveDatasets } from "./datasets.js";
import {
  type Environment,
  environmentVariableOf,
  flagOf,
  LIST_VARIABLES,
  OPTION_KEYS,
  type OptionKey,
  type OptionValues,
  optionConfig,
  optionSpec,
} from "./options.js";
import { type PluginChoice, parsePluginText, selectPlugins } from "./select-plugins.js";
import { parseServeArguments, type ServeArguments } from "./serve-command.js";
import { configError, expectedName, problemsOf } from "./value-schemas.js";

/** Sources of a configuration. */
interface ConfigInput {
  /** The arguments after `serve`. */
  readonly argv: readonly string[];
  readonly env: Environment;
  /** Base of relative paths in arguments and variables. */
  readonly cwd: string;
}

/**
 * Resolves the configuration: flag over variable over file over default. Datasets and collections add up: those of the file, then of
 * the variable, then of the command line. Deeply frozen.
 * @throws ZpublishError `invalid-config`; each line of the message is a problem, and begins with its place.
 */
export function resolveConfig(input: ConfigInput): Config {
  return resolveArguments(parseServeArguments(input.argv), input);
}

/** Resolves the configuration of a parsed command line. */
export function resolveArguments(
  said: ServeArguments,
  { env, cwd }: Pick<ConfigInput, "env" | "cwd">,
): Config {
  const problems: string[] = [];
  const fileName = said.config ?? nonEmpty(env[LIST_VARIABLES.config]);
  const file = fileName === undefined ? undefined : readConfigFile(fileName, cwd, problems);
  checkVariableNames(env, problems);
  const values = resolveValues(said, env, cwd, file, problems);
  const { datasets, collections } = resolveDatasets(said, env, cwd, file, problems);
  const plugins = selectPlugins(pluginChoices(said, env, cwd, file, problems), problems);
  for (const { given, missing } of incompleteOptions(values))
    problems.push(`${flagOf(given)}: expected ${flagOf(missing)} with it, received none`);
  if (problems.length > 0) throw configError(problems);
  const defaults = defaultsOf(file, values.overviews);
  return deepFreeze({
    ...optionConfig(values),
    datasets: datasets.map((each) => ({ ...defaults, ...each })),
    collections: collections.map((each) => ({ ...defaults, ...each })),
    ...(Object.keys(defaults).length === 0 ? {} : { datasetDefaults: defaults }),
    plugins,
  });
}

/** Options that are given together or not at all. */
const TOGETHER: readonly (readonly OptionKey[])[] = [
  ["tlsCert", "tlsKey"],
  ["jwksUrl", "jwtIssuer", "jwtAudience"],
];

/** Lists options that are given without another that belongs to them, with one of the missing. */
export function incompleteOptions(
  values: Partial<Readonly<Record<OptionKey, unknown>>>,
): readonly { readonly given: OptionKey; readonly missing: OptionKey }[] {
  const isGiven = (key: OptionKey) => values[key] !== undefined && values[key] !== null;
  return TOGETHER.flatMap((keys) => {
    const given = keys.find(isGiven);
    const missing = keys.find((key) => !isGiven(key));
    return given === undefined || missing === undefined ? [] : [{ given, missing }];
  });
}

/** Returns what holds for all datasets. @param overviews True if datasets that say nothing have overviews. */
function defaultsOf(file: ConfigFile | undefined, overviews: boolean): DatasetDefaults {
  return {
    ...(file === undefined || file.stores.length === 0 ? {} : { stores: file.stores }),
    ...(file?.references === undefined ? {} : { references: file.references }),
    ...(file?.zarr3 === undefined ? {} : { zarr3: file.zarr3 }),
    ...(overviews ? { overviews: DEFAULT_OVERVIEWS } : {}),
  };
}

/** Treats an empty variable as unset, as shells and compose files do. */
function nonEmpty(text: string | undefined): string | undefined {
  return text === "" ? undefined : text;
}

/**
 * Variables that are no options: `ZPUBLISH_HTTP` (`src/http/README.md`), those of tests, and those that Kubernetes sets in every container beside a service whose
 * name begins with `zpublish` (`ZPUBLISH_SERVICE_HOST`, `ZPUBLISH_ADMIN_PORT_9000_TCP`).
 */
const FOREIGN_VARIABLE =
  /^ZPUBLISH_(HTTP$|(REQUIRE|TEST|BENCH)_|(.+_)?(SERVICE_HOST$|SERVICE_PORT($|_)|PORT_\d+_(TCP|UDP|SCTP)($|_)))/;

/** Whether Kubernetes set an option's variable: `ZPUBLISH_PORT` is an address if a service is called `zpublish`. */
function isForeignValue(name: string, text: string | undefined): boolean {
  return name.endsWith("_PORT") && text !== undefined && /^(tcp|udp|sctp):\/\//.test(text);
}

function checkVariableNames(env: Environment, problems: string[]): void {
  const known = new Set<string>([
    ...OPTION_KEYS.map(environmentVariableOf),
    ...Object.values(LIST_VARIABLES),
  ]);
  for (const name of Object.keys(env).sort()) {
    if (!name.startsWith("ZPUBLISH_") || known.has(name)) continue;
    if (FOREIGN_VARIABLE.test(name) || isForeignValue(name, env[name])) continue;
    problems.push(`${name}: unknown variable; ${expectedName(name, [...known])}`);
  }
}

/** Checks the values of all places, also those that another place overrides: a mistake is better found now. */
function resolveValues(
  said: ServeArguments,
  env: Environment,
  cwd: string,
  file: ConfigFile | undefined,
  problems: string[],
): OptionValues {
  const values: Partial<Record<OptionKey, unknown>> = {};
  for (const key of OPTION_KEYS) {
    const { schema, fromText = (text) => text, isPath, defaultValue } = optionSpec(key);
    const flag = said.values[key];
    const variable = environmentVariableOf(key);
    const text = isForeignValue(variable, env[variable]) ? undefined : nonEmpty(env[variable]);
    const places = [
      { place: flagOf(key), received: typeof flag === "string" ? fromText(flag) : flag },
      { place: variable, received: text === undefined ? undefined : fromText(text) },
      { place: file?.name ?? "", received: file?.values[key], path: [key], directory: file?.directory },
    ];
    for (const { place, received, path, directory = cwd } of places) {
      if (received === undefined) continue;
      const result = schema.safeParse(received);
      if (!result.success) problems.push(...problemsOf(result.error, received, place, path));
      else if (!(key in values)) values[key] = isPath ? resolve(directory, String(result.data)) : result.data;
    }
    if (!(key in values)) values[key] = defaultValue(env);
  }
  return values as OptionValues;
}

function pluginChoices(
  said: ServeArguments,
  env: Environment,
  cwd: string,
  file: ConfigFile | undefined,
  problems: string[],
): PluginChoice[] {
  const ofVariable = (place: string, enabled: boolean) =>
    splitList(env[place]).map((text) => ({ text, enabled, place }));
  const texts = [
    ...ofVariable(LIST_VARIABLES.plugin, true),
    ...ofVariable(LIST_VARIABLES.noPlugin, false),
    ...said.plugins.map((each) => ({ ...each, place: each.enabled ? "--plugin" : "--no-plugin" })),
  ];
  return [
    ...(file?.plugins ?? []),
    ...texts.flatMap(({ text, ...context }) =>
      parsePluginText(text, { ...context, directory: cwd, problems }),
    ),
  ];
}

function splitList(text: string | undefined): string[] {
  return (text ?? "")
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const child of Object.values(value)) deepFreeze(child);
  }
  return value;
}
