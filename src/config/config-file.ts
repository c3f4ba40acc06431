import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { z } from "zod";
import { messageOf, ZpublishError } from "../errors.js";
import { splitPattern } from "../find/patterns.js";
import { isJsonArray, isJsonObject, type JsonValue, toNumber } from "../json/json-value.js";
import { parseJson } from "../json/parse-json.js";
import { normalNodePath } from "../model/data-tree.js";
import { type StoreSettings, schemeOf } from "../stores/byte-store.js";
import type { CollectionConfig, DatasetConfig } from "./config.js";
import {
  checkStore,
  collectionSchema,
  createServedConfig,
  type DatasetKeys,
  joinConfigOf,
  locatedDatasetSchema,
  problemOfCollectionName,
  problemOfDatasetId,
  referencesSchema,
  zarr3Schema,
} from "./dataset-schema.js";
import { OPTION_KEYS } from "./options.js";
import type { PluginChoice } from "./select-plugins.js";
import {
  absoluteReferences,
  booleanSchema,
  configError,
  formatPath,
  namedSchema,
  problemsOf,
  quoteValue,
  resolveLocation,
  resolveModule,
  resolveRoot,
  strictObject,
  textSchema,
  withoutUndefined,
} from "./value-schemas.js";

/** Content of a configuration file, with absolute paths. Single values are not checked yet, and their paths are as written. */
export interface ConfigFile {
  /** Name of the file as the operator wrote it, for messages. */
  readonly name: string;
  readonly directory: string;
  /** Unchecked values by key of {@link "./options.js".OPTIONS}. */
  readonly values: Readonly<Record<string, unknown>>;
  readonly datasets: readonly DatasetConfig[];
  readonly collections: readonly CollectionConfig[];
  readonly plugins: readonly PluginChoice[];
  readonly stores: readonly StoreSettings[];
  /** Places to which references of datasets without their own list may lead; undefined if the file does not say. */
  readonly references: DatasetConfig["references"];
  /** How the Zarr v3 stores of datasets that do not say it are served; undefined if the file does not say. */
  readonly zarr3: DatasetConfig["zarr3"];
}

const pluginSchema = z.union([
  booleanSchema,
  strictObject("true, false, or an object", {
    enabled: booleanSchema.optional(),
    module: textSchema("a module's path or package name").optional(),
    options: z.unknown().optional(),
  }),
]);

const fileSchema = strictObject("a JSON object", {
  ...Object.fromEntries(OPTION_KEYS.map((key) => [key, z.unknown().optional()])),
  plugins: namedSchema("plugins by name").optional(),
  datasets: namedSchema("datasets by id").optional(),
  collections: namedSchema("collections by name").optional(),
  stores: namedSchema("stores by name").optional(),
  references: referencesSchema.optional(),
  zarr3: zarr3Schema.optional(),
});

/**
 * Reads and checks a configuration file.
 * @param problems Takes a line for each problem; what has one is left out of the result.
 * @throws ZpublishError `invalid-config` if the file cannot be read, or is no JSON object.
 */
export function readConfigFile(name: string, cwd: string, problems: string[]): ConfigFile {
  const json = parseFile(readText(name, cwd), name);
  const shape = fileSchema.safeParse(json);
  if (!shape.success) problems.push(...problemsOf(shape.error, json, name));
  if (typeof json !== "object" || json === null || Array.isArray(json)) throw configError(problems);
  const wrong = new Set(shape.error?.issues.map(({ path }) => path[0]));
  const { plugins, datasets, collections, stores, references, zarr3, ...values } = Object.fromEntries(
    Object.entries(json).filter(([key]) => !wrong.has(key)),
  );
  const entriesOf = (said: unknown) => Object.entries(said ?? {});
  const directory = dirname(resolve(cwd, name));
  const context: ReadContext = { place: name, directory, problems };
  const allowed = references as DatasetConfig["references"];
  return {
    name,
    directory,
    values,
    datasets: entriesOf(datasets).flatMap(([id, said]) => readDatasetConfig(id, said, context)),
    collections: entriesOf(collections).flatMap(([id, said]) => readCollection(id, said, context)),
    plugins: entriesOf(plugins).flatMap(([id, said]) => readPlugin(id, said, context)),
    stores: entriesOf(stores).flatMap(([id, said]) => checkStore(id, said, name, problems)),
    references: allowed && absoluteReferences(allowed, directory),
    zarr3: zarr3 as DatasetConfig["zarr3"],
  };
}

function readText(name: string, cwd: string): string {
  try {
    const bytes = readFileSync(resolve(cwd, name));
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw configError([
      `--config: expected a readable UTF-8 file, received ${quoteValue(name)}: ${messageOf(error)}`,
    ]);
  }
}

/** Parses JSON. Of a key that is used twice, the last value counts, as everywhere in JavaScript. */
function parseFile(text: string, name: string): unknown {
  try {
    return plain(parseJson(text));
  } catch (error) {
    throw error instanceof ZpublishError ? configError([`${name}: ${error.message}`]) : error;
  }
}

/** Converts parsed numbers to plain ones. */
function plain(value: JsonValue): unknown {
  if (isJsonArray(value)) return value.map(plain);
  if (!isJsonObject(value)) return toNumber(value) ?? value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]));
}

/** Place of datasets and collections that are read. */
interface ReadContext {
  /** Begins the lines that are added to `problems`. */
  readonly place: string;
  /** Directory that relative paths begin in. */
  readonly directory: string;
  readonly problems: string[];
}

/** Reads a dataset of the file, or none if something is wrong with it. */
export function readDatasetConfig(id: string, said: unknown, context: ReadContext): DatasetConfig[] {
  const { place, directory, problems } = context;
  const path = ["datasets", id];
  const problem = problemOfDatasetId(id);
  if (problem !== undefined) problems.push(`${place}: ${formatPath(path)}: ${problem}`);
  const long = typeof said === "string" ? { location: said } : said;
  const result = locatedDatasetSchema.safeParse(long);
  if (!result.success) {
    problems.push(...problemsOf(result.error, long, place, path));
    return [];
  }
  const location = resolveLocation(result.data.location, directory);
  return [{ id, location, ...datasetKeysConfig(id, result.data, location, context) }];
}

/**
 * Converts the checked keys of a dataset besides its location.
 * @param location Absolute; undefined if the dataset is a tree.
 */
export function datasetKeysConfig(
  id: string,
  { variables = {}, ...keys }: DatasetKeys,
  location: string | undefined,
  { place, directory, problems }: ReadContext,
): Omit<DatasetConfig, "id" | "location"> {
  const path = ["datasets", id];
  const where = `${place}: ${formatPath(path)}`;
  const join = joinConfigOf(keys, (problem) => problems.push(`${where}: ${problem}`));
  if (join === undefined && location !== undefined && isPattern(location)) {
    const expected = 'expected "concat" or "stack" with a pattern, for one dataset of its files';
    problems.push(
      `${where}: ${expected}, or the pattern in "include" of a collection, received the pattern alone`,
    );
  }
  const byPath: Record<string, DatasetConfig["encoding"]> = {};
  for (const [key, value] of Object.entries(variables)) {
    const variablePath = normalNodePath(key);
    const at = `${place}: ${formatPath([...path, "variables", key])}`;
    if (variablePath === "")
      problems.push(`${at}: expected the path of a variable, received ${quoteValue(key)}`);
    else if (Object.hasOwn(byPath, variablePath))
      problems.push(`${at}: the variable ${variablePath} is named twice`);
    byPath[variablePath] = withoutUndefined(value);
  }
  return { ...createServedConfig(keys, directory), variables: byPath, ...withoutUndefined({ join }) };
}

/** Whether a location is a pattern. Keys of buckets may have brackets, and URLs anything. */
function isPattern(location: string): boolean {
  const isUrl = schemeOf(location) !== undefined;
  return splitPattern(location) !== undefined && (!isUrl || /^s3:.*\*/i.test(location));
}

/** Reads a collection of the file or of a program, or none if something is wrong with it. */
export function readCollection(
  name: string,
  said: unknown,
  { place, directory, problems }: ReadContext,
): CollectionConfig[] {
  const path = ["collections", name];
  const problem = problemOfCollectionName(name);
  if (problem !== undefined) problems.push(`${place}: ${formatPath(path)}: ${problem}`);
  const long = typeof said === "string" ? { root: said } : said;
  const result = collectionSchema.safeParse(long);
  if (!result.success) {
    problems.push(...problemsOf(result.error, long, place, path));
    return [];
  }
  const { root: saidRoot, include, exclude, groups, ...keys } = result.data;
  const root = resolveRoot(saidRoot, directory);
  if (root === undefined) {
    const where = `${place}: ${formatPath([...path, "root"])}`;
    problems.push(`${where}: expected a folder, or s3://bucket/prefix/, received ${quoteValue(saidRoot)}`);
    return [];
  }
  const patterns = withoutUndefined({ include, exclude, groups });
  return [{ name, root, ...patterns, ...createServedConfig(keys, directory), variables: {} }];
}

function readPlugin(
  pluginName: string,
  said: unknown,
  { place: fileName, directory, problems }: ReadContext,
): PluginChoice[] {
  const path = ["plugins", pluginName];
  const place = `${fileName}: ${formatPath(path)}`;
  const [, objectSchema] = pluginSchema.options;
  const result = (typeof said === "object" ? objectSchema : booleanSchema).safeParse(said);
  if (!result.success) {
    const expected = "expected true, false, or an object of enabled, module, options";
    const isObject = typeof said === "object" && said !== null && !Array.isArray(said);
    problems.push(
      ...(isObject
        ? problemsOf(result.error, said, fileName, path)
        : [`${place}: ${expected}, received ${quoteValue(said)}`]),
    );
    return [];
  }
  if (typeof result.data === "boolean") return [{ name: pluginName, enabled: result.data, place }];
  const { enabled = true, module: saidModule, options } = result.data;
  try {
    const module = saidModule === undefined ? undefined : resolveModule(saidModule, directory);
    return [{ name: pluginName, enabled, place, ...withoutUndefined({ module, options }) }];
  } catch (error) {
    problems.push(`${place}.module: ${messageOf(error)}`);
    return [];
  }
}
