import { splitPattern } from "../find/split-pattern.js";
import { normalNodePath } from "../model/node-path.js";
import { schemeOf } from "../stores/scheme-of.js";
import type { CollectionConfig, DatasetConfig } from "./config.js";
import { problemOfCollectionName, problemOfDatasetId } from "./dataset-id.js";
import {
  collectionSchema,
  createEncodingConfig,
  createServedConfig,
  datasetSchema,
} from "./dataset-schema.js";
import { joinConfigOf } from "./join-schema.js";
import { resolveLocation, resolveRoot } from "./locate.js";
import { describeValue, formatPath, type Problem, problemsOf } from "./problem.js";

/** Place of datasets and collections that are read. */
export interface ReadContext {
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
