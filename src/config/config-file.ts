import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { z } from "zod";
import { messageOf } from "../errors.js";
import { splitPattern } from "../find/patterns.js";
import { normalNodePath } from "../model/data-tree.js";
import { type StoreSettings, schemeOf } from "../stores/byte-store.js";
import type { CollectionConfig, DatasetConfig } from "./config.js";
import {
  checkStore,
  collectionSchema,
  createEncodingConfig,
  createServedConfig,
  datasetSchema,
  joinConfigOf,
  problemOfCollectionName,
  problemOfDatasetId,
  referencesSchema,
} from "./dataset-schema.js";
import { OPTION_KEYS, optionSpec } from "./options.js";
import type { PluginChoice } from "./select-plugins.js";
import {
  absoluteReferences,
  booleanSchema,
  configError,
  describeValue,
  formatPath,
  type Problem,
  problemsOf,
  resolveLocation,
  resolveModule,
  resolveRoot,
  strictObject,
  textSchema,
} from "./value-schemas.js";

/** The keys of one object of a JSON text, in the order they are written. */
interface JsonObjectKeys {
  /** Place of the object: `[]` for the whole, `["datasets"]`, `["a", 0, "b"]`. */
  readonly path: readonly (string | number)[];
  readonly keys: readonly { readonly key: string; readonly line: number }[];
}

interface OpenContainer {
  readonly path: readonly (string | number)[];
  /** Null for an array. */
  readonly keys: { key: string; line: number }[] | null;
  /** Key or index of the next value. */
  current: string | number;
  expectsKey: boolean;
}

/**
 * Lists all objects of a JSON text with their keys as written. `JSON.parse` loses the order of keys that look like
 * integers, and keys that are there twice; a configuration's datasets need both.
 * @param text Valid JSON: `JSON.parse` accepted it.
 */
export function readJsonKeys(text: string): JsonObjectKeys[] {
  const found: JsonObjectKeys[] = [];
  const open: OpenContainer[] = [];
  let line = 1;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|\n/g)) {
    const container = open.at(-1);
    if (token === "\n") line += 1;
    else if (token === "{" || token === "[") {
      const path = container === undefined ? [] : [...container.path, container.current];
      const keys = token === "{" ? [] : null;
      if (keys !== null) found.push({ path, keys });
      open.push({ path, keys, current: keys === null ? 0 : "", expectsKey: keys !== null });
    } else if (token === "}" || token === "]") open.pop();
    else if (container === undefined) continue;
    else if (token === ",") {
      if (container.keys === null) container.current = (container.current as number) + 1;
      else container.expectsKey = true;
    } else if (token.startsWith('"') && container.keys !== null && container.expectsKey) {
      container.current = JSON.parse(token) as string;
      container.keys.push({ key: container.current, line });
      container.expectsKey = false;
    }
  }
  return found;
}

/** Place of datasets and collections that are read. */
interface ReadContext {
  /** Begins the lines that are added to `problems`. */
  readonly place: string;
  /** Directory that relative paths begin in. */
  readonly directory: string;
  readonly problems: Problem[];
}

/**
 * Says why the location of a dataset that is not joined cannot be a pattern; undefined if it is none. Keys of buckets may have
 * brackets, and URLs anything.
 */
export function problemOfPattern(location: string): string | undefined {
  const isUrl = schemeOf(location) !== undefined;
  if (splitPattern(location) === undefined || (isUrl && !/^s3:.*\*/i.test(location))) return undefined;
  const expected = 'expected "concat" or "stack" with a pattern, for one dataset of its files';
  return `${expected}, or the pattern in "include" of a collection, received the pattern alone`;
}

/** Reads a dataset of the file, or none if something is wrong with it. */
export function readDataset(
  id: string,
  said: unknown,
  { place, directory, problems }: ReadContext,
): DatasetConfig[] {
  const path = ["datasets", id];
  const where = `${place}: ${formatPath(path)}`;
  const problem = problemOfDatasetId(id);
  if (problem !== undefined) problems.push(`${where}: ${problem}`);
  const long = typeof said === "string" ? { location: said } : said;
  const result = datasetSchema.safeParse(long);
  if (!result.success) {
    problems.push(...problemsOf(result.error, long, place, path));
    return [];
  }
  const { variables = {}, ...keys } = result.data;
  const location = resolveLocation(keys.location, directory);
  const join = joinConfigOf(keys, (problem) => problems.push(`${where}: ${problem}`));
  const lone = join === undefined ? problemOfPattern(location) : undefined;
  if (lone !== undefined) problems.push(`${where}: ${lone}`);
  const byPath: DatasetConfig["variables"] & Record<string, unknown> = {};
  for (const [key, value] of Object.entries(variables)) {
    const variablePath = normalNodePath(key);
    const at = `${place}: ${formatPath([...path, "variables", key])}`;
    if (variablePath === "")
      problems.push(`${at}: expected the path of a variable, received ${describeValue(key)}`);
    else if (Object.hasOwn(byPath, variablePath))
      problems.push(`${at}: the variable ${variablePath} is named twice`);
    byPath[variablePath] = createEncodingConfig(value);
  }
  return [
    {
      id,
      location,
      ...createServedConfig(keys, directory),
      variables: byPath,
      ...(join === undefined ? {} : { join }),
    },
  ];
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
    problems.push(`${where}: expected a folder, or s3://bucket/prefix/, received ${describeValue(saidRoot)}`);
    return [];
  }
  return [
    {
      name,
      root,
      ...(include === undefined ? {} : { include }),
      ...(exclude === undefined ? {} : { exclude }),
      ...(groups === undefined ? {} : { groups }),
      ...createServedConfig(keys, directory),
      variables: {},
    },
  ];
}

/** Content of a configuration file, with absolute paths. Single values are not checked yet. */
export interface ConfigFile {
  /** Name of the file as the operator wrote it, for messages. */
  readonly name: string;
  readonly directory: string;
  /** Unchecked values by key of {@link "./options.js".OPTIONS}. */
  readonly values: Readonly<Record<string, unknown>>;
  /** In the order written. */
  readonly datasets: readonly DatasetConfig[];
  readonly collections: readonly CollectionConfig[];
  readonly plugins: readonly PluginChoice[];
  readonly stores: readonly StoreSettings[];
  /** Places to which references of datasets without their own list may lead; undefined if the file does not say. */
  readonly references: DatasetConfig["references"];
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
  plugins: z.record(z.string(), z.unknown(), { error: "expected an object of plugins by name" }).optional(),
  datasets: z.record(z.string(), z.unknown(), { error: "expected an object of datasets by id" }).optional(),
  collections: z
    .record(z.string(), z.unknown(), { error: "expected an object of collections by name" })
    .optional(),
  stores: z.record(z.string(), z.unknown(), { error: "expected an object of stores by name" }).optional(),
  references: referencesSchema.optional(),
});

/**
 * Reads and checks a configuration file.
 * @throws ZpublishError `invalid-config`, with one line per problem.
 */
export function readConfigFile(name: string, cwd: string): ConfigFile {
  const text = readText(name, cwd);
  const json = parseJson(text, name);
  const objects = readJsonKeys(text);
  const problems = objects.flatMap((object) => problemsOfKeys(object, name));
  const shape = fileSchema.safeParse(json);
  if (!shape.success) throw configError([...problems, ...problemsOf(shape.error, json, name)]);

  const { plugins, datasets, collections, stores, references, ...values } = shape.data as Record<
    string,
    unknown
  >;
  const directory = dirname(resolve(cwd, name));
  const context: ReadContext = { place: name, directory, problems };
  const allowed = references as DatasetConfig["references"];
  const file = {
    name,
    directory,
    values: absolutePaths(values, directory),
    datasets: keysOf(objects, "datasets").flatMap((id) =>
      readDataset(id, (datasets as Record<string, unknown>)[id], context),
    ),
    collections: keysOf(objects, "collections").flatMap((id) =>
      readCollection(id, (collections as Record<string, unknown>)[id], context),
    ),
    plugins: keysOf(objects, "plugins").flatMap((id) =>
      readPlugin(id, (plugins as Record<string, unknown>)[id], context),
    ),
    stores: keysOf(objects, "stores").flatMap((id) =>
      checkStore(id, (stores as Record<string, unknown>)[id], name, problems),
    ),
    references: allowed && absoluteReferences(allowed, directory),
  };
  if (problems.length > 0) throw configError(problems);
  return file;
}

function readText(name: string, cwd: string): string {
  try {
    const bytes = readFileSync(resolve(cwd, name));
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw configError([
      `--config: expected a readable UTF-8 file, received ${describeValue(name)}: ${messageOf(error)}`,
    ]);
  }
}

function parseJson(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // Some of V8's messages contain a piece of the text, with its line breaks.
    const message = messageOf(error).replace(/\s+/g, " ");
    const position = /at position (\d+)/.exec(message)?.[1];
    if (position === undefined) throw configError([`${name}: expected JSON: ${message}`]);
    const before = text.slice(0, Number(position)).split("\n");
    const place = `line ${before.length}, column ${(before.at(-1) as string).length + 1}`;
    throw configError([`${name}: ${place}: expected JSON: ${message}`]);
  }
}

function problemsOfKeys(object: JsonObjectKeys, name: string): Problem[] {
  const problems: Problem[] = [];
  const lines = new Map<string, number>();
  for (const { key, line } of object.keys) {
    const where = `${name}: ${formatPath([...object.path, key])}`;
    const first = lines.get(key);
    if (first !== undefined) problems.push(`${where}: used twice, in line ${first} and in line ${line}`);
    // In the plain objects made here, this key would be lost silently.
    if (key === "__proto__") problems.push(`${where}: not possible as a key`);
    lines.set(key, line);
  }
  return problems;
}

function keysOf(objects: readonly JsonObjectKeys[], key: string): string[] {
  const object = objects.find(({ path }) => path.length === 1 && path[0] === key);
  return [...new Set(object?.keys.map((entry) => entry.key) ?? [])];
}

function absolutePaths(
  values: Readonly<Record<string, unknown>>,
  directory: string,
): Record<string, unknown> {
  const absolute = { ...values };
  for (const key of OPTION_KEYS) {
    const value = absolute[key];
    if (optionSpec(key).isPath && typeof value === "string" && value !== "")
      absolute[key] = resolve(directory, value);
  }
  return absolute;
}

function readPlugin(
  pluginName: string,
  said: unknown,
  { place: name, directory, problems }: ReadContext,
): PluginChoice[] {
  const path = ["plugins", pluginName];
  const place = `${name}: ${formatPath(path)}`;
  const [, objectSchema] = pluginSchema.options;
  const result = (typeof said === "object" ? objectSchema : booleanSchema).safeParse(said);
  if (!result.success) {
    const expected = "expected true, false, or an object of enabled, module, options";
    const isObject = typeof said === "object" && said !== null && !Array.isArray(said);
    problems.push(
      ...(isObject
        ? problemsOf(result.error, said, name, path)
        : [`${place}: ${expected}, received ${describeValue(said)}`]),
    );
    return [];
  }
  if (typeof result.data === "boolean") return [{ name: pluginName, enabled: result.data, place }];
  const { enabled = true, module, options } = result.data;
  try {
    return [
      {
        name: pluginName,
        enabled,
        place,
        ...(module === undefined ? {} : { module: resolveModule(module, directory) }),
        ...(options === undefined ? {} : { options }),
      },
    ];
  } catch (error) {
    problems.push(`${place}.module: ${messageOf(error)}`);
    return [];
  }
}
