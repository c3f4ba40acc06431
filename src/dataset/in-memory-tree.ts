import { isLosslessNumber } from "lossless-json";
import type { Readable } from "zarrita";
import { z } from "zod";
import {
  configError,
  problemsOf,
  quoteValue,
  resolveLocation,
  strictObject,
} from "../config/value-schemas.js";
import { ZpublishError } from "../errors.js";
import type { JsonObject, JsonValue } from "../json/json-value.js";
import type { DataTree } from "../model/data-tree.js";
import { createMemorySource, type MemoryArray, type MemoryGroup } from "../open/memory-source.js";
import { openSource } from "../open/open-source.js";
import { createZarritaStore, type ZarritaStoreOptions } from "../stores/zarrita-store.js";
import { printablePath, type Refusal, type Source } from "../zarr/stored-tree.js";
import { createObjectSource } from "../zarr-store/zarr-source.js";
import { createSnapshot } from "./snapshot.js";

/** Takes a problem with a value, "expected …", and the place of the value. */
type TakeProblem = (message: string, path?: readonly (string | number)[]) => void;

/**
 * Copies attributes that a program gave, since it may change them later. A value that JSON would leave out or write as an
 * empty object (a date, a typed array) is a problem.
 */
function copy(
  value: unknown,
  path: readonly (string | number)[],
  within: readonly unknown[],
  problem: TakeProblem,
): JsonValue {
  if (value === null || ["string", "number", "bigint", "boolean"].includes(typeof value)) {
    return value as JsonValue;
  }
  if (isLosslessNumber(value)) return value;
  if (within.includes(value)) {
    problem("expected a JSON value without cycles", path);
  } else if (Array.isArray(value)) {
    const outer = [...within, value];
    return Array.from(value, (item, index) => copy(item, [...path, index], outer, problem));
  } else if (isPlainObject(value)) {
    const outer = [...within, value];
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, copy(item, [...path, key], outer, problem)]),
    );
  } else problem("expected a JSON value", path);
  return null;
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Plain objects of another realm, such as a test runner's, have another Object.prototype, which has no prototype either.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** An array of a tree in memory. */
export type VariableInput = Omit<MemoryArray, "name">;

/** A group of a tree in memory, with its child groups. */
export interface GroupInput {
  readonly attrs?: JsonObject;
  /** By name. */
  readonly variables?: Readonly<Record<string, VariableInput>>;
  /** By name. */
  readonly groups?: Readonly<Record<string, GroupInput>>;
}

const attrsSchema = z.unknown().transform((value, context): JsonObject => {
  const problem: TakeProblem = (message, path = []) =>
    context.addIssue({ code: "custom", message, path: [...path] });
  if (isPlainObject(value)) return copy(value, [], [], problem) as JsonObject;
  problem("expected an object of attributes");
  return z.NEVER;
});

const byNameSchema = z
  .record(z.string(), z.unknown(), { error: "expected an object by name" })
  .superRefine((children, context) => {
    for (const name of Object.keys(children)) {
      if (!name.includes("/")) continue;
      context.addIssue({ code: "custom", message: "expected a name without a slash", path: [name] });
    }
  });

const groupSchema = strictObject("a group with attrs, variables and groups", {
  attrs: attrsSchema.optional(),
  variables: byNameSchema.optional(),
  groups: byNameSchema.optional(),
});

/** Checks only the type of each value. The memory source checks whether they fit together. */
const variableSchema = strictObject("a variable with data and shape", {
  data: z.custom((value) => ArrayBuffer.isView(value), { error: "expected a typed array" }),
  shape: z.custom(Array.isArray, { error: "expected an array of lengths" }),
  dtype: z.unknown().optional(),
  dims: z.custom(Array.isArray, { error: "expected an array of names" }).optional(),
  attrs: attrsSchema.optional(),
  fillValue: z.unknown().optional(),
  chunks: z.custom(Array.isArray, { error: "expected an array of lengths" }).optional(),
  compressor: z
    .custom((value) => typeof value === "object", {
      error: "expected a codec such as zstd by its id, or null",
    })
    .optional(),
});

/**
 * Reads a tree of groups into a list: parents before children, siblings sorted, attributes copied.
 * @throws ZpublishError `invalid-metadata`, naming the group or variable, if a value has the wrong type.
 */
function readGroups(root: unknown): MemoryGroup[] {
  return [...walk("/", root)];
}

function* walk(path: string, said: unknown): Iterable<MemoryGroup> {
  const { attrs = {}, variables = {}, groups = {} } = parse(groupSchema, said, path);
  const prefix = path === "/" ? "" : path;
  const arrays = Object.keys(variables)
    .sort()
    .map((name) => {
      const variable = parse(variableSchema, variables[name], `${prefix}/${name}`.slice(1));
      return { ...(variable as VariableInput), name };
    });
  yield { path, attrs, arrays };
  for (const name of Object.keys(groups).sort()) yield* walk(`${prefix}/${name}`, groups[name]);
}

function parse<T>(schema: z.ZodType<T>, said: unknown, path: string): T {
  const result = schema.safeParse(said);
  if (result.success) return result.data;
  throw new ZpublishError(
    "invalid-metadata",
    problemsOf(result.error, said, `'${printablePath(path)}'`).join("\n"),
  );
}

/** A data tree that can be served, from {@link openDataTree} or {@link createDataTree}. */
export interface ServableTree extends DataTree {
  readonly location: string;
  /** Arrays and groups of the location that cannot be served. */
  readonly refused: readonly Refusal[];
}

/** Options of {@link createDataTree}. */
export interface CreateDataTreeOptions {
  /** Version of the data, for ETags and cache keys. Default: a hash of all values, which takes about a second per GB. */
  readonly revision?: string;
}

/** Time for which the version of a given store is believed. */
const VERSION_SECONDS = 1;

/** Sources of trees, whose `close` does nothing. They are no part of the public interface. */
const sources = new WeakMap<ServableTree, Source>();

/**
 * Opens a location: the path of a directory or file, or a `file:`, `https:`, `http:` or `s3:` URL.
 * @throws ZpublishError `invalid-config`, `invalid-metadata`, `source-unreadable`, or `unsupported` if it is another kind
 * of file.
 */
export async function openDataTree(location: string): Promise<ServableTree> {
  if (typeof location !== "string" || location === "") {
    throw configError([`openDataTree: expected a location, received ${quoteValue(location)}`]);
  }
  return servableTree(await openSource(resolveLocation(location, process.cwd())));
}

/**
 * Builds a data tree of typed arrays. Values are copied once into memory that workers share, unless they are in a
 * SharedArrayBuffer already.
 * @throws ZpublishError `invalid-metadata`, naming the group or variable, if a value has the wrong type, or an array's data
 * do not fit its shape or type.
 */
export async function createDataTree(
  root: GroupInput,
  { revision }: CreateDataTreeOptions = {},
): Promise<ServableTree> {
  const groups = readGroups(root);
  return servableTree(createMemorySource({ groups, ...(revision === undefined ? {} : { revision }) }));
}

/**
 * Opens the Zarr store behind any store that implements zarrita's `Readable` (`FetchStore`, `ReferenceStore`, `ZipFileStore`, a `Map`,
 * one's own). It is read on the server's thread, and encoded by the workers.
 * @throws ZpublishError `invalid-metadata`, `source-unreadable`, or `unsupported` if it has no consolidated metadata and no `list`.
 */
export async function zarrStoreSource(
  store: Readable,
  options: ZarritaStoreOptions = {},
): Promise<ServableTree> {
  const { location = "zarrita", version } = options;
  const source = createObjectSource({
    location,
    store: createZarritaStore(store, options),
    rootArrayName: "data",
    freshness: version === undefined ? "immutable" : { seconds: VERSION_SECONDS },
    names: [],
  });
  return servableTree(source);
}

/**
 * Looks up the source of a tree that this module made; undefined for other objects. It stays open when a dataset of it closes. There
 * is one object per tree, by which a reload recognises it.
 */
export function sourceOf(tree: ServableTree): Source | undefined {
  return sources.get(tree);
}

async function servableTree(source: Source): Promise<ServableTree> {
  const stored = await source.readTree();
  const config = { id: "", location: source.location, immutable: false, encoding: {}, variables: {} };
  const { tree, refused } = createSnapshot(config, stored, "");
  const servable: ServableTree = Object.freeze({ ...tree, location: source.location, refused });
  sources.set(servable, { ...source, close: async () => undefined });
  return servable;
}
