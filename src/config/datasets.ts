import { statSync } from "node:fs";
import { type SplitPattern, splitPattern } from "../find/patterns.js";
import type { Joining } from "../join/join-source.js";
import type { CollectionConfig, DatasetConfig } from "./config.js";
import type { ConfigFile } from "./config-file.js";
import {
  datasetIdOfLocation,
  datasetIdOfPattern,
  joinShape,
  problemOfCollectionName,
  problemOfDatasetId,
} from "./dataset-schema.js";
import { type Environment, environmentVariableOf, flagOf, LIST_VARIABLES } from "./options.js";
import type { ServeArguments } from "./serve-command.js";
import {
  formatPath,
  problemsOf,
  quoteValue,
  resolveLocation,
  resolveRoot,
  splitDatasetArgument,
} from "./value-schemas.js";

/** Datasets and collections of all places, in the order of file, variable and command line. */
interface ResolvedDatasets {
  readonly datasets: readonly DatasetConfig[];
  readonly collections: readonly CollectionConfig[];
}

/** A location of the command line or of the variable. */
interface GivenLocation {
  /** `command line ("x=a.zarr")`, for messages. */
  readonly place: string;
  /** The text as it was given. */
  readonly text: string;
  readonly id: string | undefined;
  /** Absolute. */
  readonly location: string;
  /** Undefined if the location is no pattern. */
  readonly pattern: SplitPattern | undefined;
}

/** Resolves datasets and collections: those of the file, then of the variable, then of the command line. */
export function resolveDatasets(
  said: ServeArguments,
  env: Environment,
  cwd: string,
  file: ConfigFile | undefined,
  problems: string[],
): ResolvedDatasets {
  const datasets: DatasetConfig[] = [];
  const collections: CollectionConfig[] = [];
  const places = new Map<string, string>();
  const use = (kind: string, name: string, place: string): void => {
    const first = places.get(name);
    if (first === undefined) places.set(name, place);
    else problems.push(`${place}: ${kind} ${quoteValue(name)} is used already by ${first}`);
  };
  const addDataset = (dataset: DatasetConfig, place: string): void => {
    use("dataset id", dataset.id, place);
    datasets.push(dataset);
  };
  const addCollection = (collection: CollectionConfig, place: string): void => {
    if (collection.name !== "") use("collection name", collection.name, place);
    collections.push(collection);
  };
  for (const dataset of file?.datasets ?? [])
    addDataset(dataset, `${file?.name}: ${formatPath(["datasets", dataset.id])}`);
  for (const collection of file?.collections ?? [])
    addCollection(collection, `${file?.name}: ${formatPath(["collections", collection.name])}`);

  const locations = [
    ...splitPatterns(env[LIST_VARIABLES.datasets]).map((text) => ({ text, from: LIST_VARIABLES.datasets })),
    ...said.locations.map((text) => ({ text, from: "command line" })),
  ].flatMap(({ text, from }) => parseLocation(text, from, cwd, problems));
  const join = resolveJoin(said, env, locations, problems);
  for (const given of locations) {
    const { place, id: name = "", location, pattern } = given;
    if (join === undefined && pattern !== undefined) {
      const problem = problemOfCollectionName(name);
      const root = resolveRoot(pattern.root, cwd);
      if (problem !== undefined) problems.push(`${place}: ${problem}`);
      if (root === undefined)
        problems.push(`${place}: expected a pattern of files or of s3:// objects, which can be listed`);
      else addCollection({ name, root, include: [pattern.include], ...AS_STORED }, place);
    } else {
      const id = resolveId(given, problems);
      const isListed = !/^(https?|file|icechunk):/i.test(location);
      const kind = join !== undefined ? { join } : isListed ? { asCollection: name } : {};
      if (id !== undefined) addDataset({ id, location, ...kind, ...AS_STORED }, place);
    }
  }
  return { datasets, collections };
}

/** A location of the command line says nothing about how it is served. */
const AS_STORED = { immutable: false, encoding: {}, variables: {} } as const;

/** Splits a list at its commas, except those within braces: they are part of a pattern. */
function splitPatterns(text: string | undefined): string[] {
  const items = (text ?? "").match(/(?:\{[^{}]*\}|[^,])+/g) ?? [];
  return items.map((item) => item.trim()).filter((item) => item !== "");
}

function parseLocation(text: string, from: string, cwd: string, problems: string[]): GivenLocation[] {
  const { id, location: said } = splitDatasetArgument(text, cwd);
  if (said === "" || /\p{Cc}/u.test(said)) {
    const received = said === "" ? "no location" : "control characters";
    problems.push(`${from}: ${quoteValue(text)}: expected [ID=]LOCATION, received ${received}`);
    return [];
  }
  const location = resolveLocation(said, cwd);
  return [{ place: `${from} (${text})`, text, id, location, pattern: splitPattern(location) }];
}

function resolveId(given: GivenLocation, problems: string[]): string | undefined {
  const { location, pattern, text, place } = given;
  const id =
    given.id ?? (pattern === undefined ? datasetIdOfLocation(location) : datasetIdOfPattern(pattern));
  const problem = problemOfDatasetId(id);
  if (problem === undefined) return id;
  const from = place.slice(0, place.indexOf(" ("));
  const advice = given.id === undefined ? "; give it one: ID=LOCATION" : "";
  problems.push(`${from}: ${quoteValue(text)}: ${problem}${advice}`);
  return undefined;
}

/** Resolves how the files of each location are joined, flag over variable; undefined if they are not. */
function resolveJoin(
  said: ServeArguments,
  env: Environment,
  locations: readonly GivenLocation[],
  problems: string[],
): Joining | undefined {
  const variables = {
    concat: env[LIST_VARIABLES.concat] || undefined,
    stack: env[LIST_VARIABLES.stack] || undefined,
  };
  const found = [
    parseJoin(said, flagOf, problems),
    parseJoin(variables, environmentVariableOf, problems),
  ].find((each) => each !== undefined);
  if (found === undefined) return undefined;
  const { join, place } = found;
  if (locations.length === 0)
    problems.push(`${place}: expected a pattern or a folder with it, received no location`);
  const bare = locations.filter((given) => given.id === undefined && given.pattern === undefined);
  const wrong = bare.length > 1 ? bare : locations.filter(({ location }) => isFile(location));
  if (wrong.length > 0) {
    const received = `${quoteValue(wrong[0]?.text)}${wrong.length > 1 ? ` and ${wrong.length - 1} more` : ""}`;
    problems.push(
      `${place}: expected a folder, or a pattern in quotes such as 'sst=/data/sst-*.nc', received ${received}; ` +
        "without quotes, the shell replaces a pattern by the files",
    );
  }
  return join;
}

function parseJoin(
  said: { readonly concat?: string | undefined; readonly stack?: string | undefined },
  nameOf: (key: string) => string,
  problems: string[],
): { readonly join: Joining; readonly place: string } | undefined {
  const keys = (["concat", "stack"] as const).filter((key) => said[key] !== undefined);
  const [key] = keys;
  if (key === undefined) return undefined;
  const place = nameOf(key);
  if (keys.length > 1) problems.push(`${place}: expected ${keys.map(nameOf).join(" or ")}, received both`);
  const dimension = said[key] as string;
  const result = joinShape.concat.safeParse(dimension);
  if (!result.success) problems.push(...problemsOf(result.error, dimension, place));
  return { join: { kind: key, dimension }, place };
}

function isFile(location: string): boolean {
  return statSync(location, { throwIfNoEntry: false })?.isFile() === true;
}
