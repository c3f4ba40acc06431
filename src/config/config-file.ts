import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { z } from "zod";
import { messageOf } from "../errors.js";
import type { StoreSettings } from "../stores/store-settings.js";
import type { CollectionConfig, DatasetConfig } from "./config.js";
import { referencesSchema } from "./dataset-schema.js";
import { type JsonObjectKeys, readJsonKeys } from "./json-keys.js";
import { absoluteReferences, resolveModule } from "./locate.js";
import { OPTION_KEYS, optionSpec } from "./options.js";
import { configError, describeValue, formatPath, type Problem, problemsOf } from "./problem.js";
import { type ReadContext, readCollection, readDataset } from "./read-datasets.js";
import type { PluginChoice } from "./select-plugins.js";
import { checkStore } from "./store-schema.js";
import { booleanSchema, strictObject, textSchema } from "./value-schemas.js";

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
