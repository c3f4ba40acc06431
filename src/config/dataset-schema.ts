import { basename, extname } from "node:path";
import { z } from "zod";
import { compileGlob, firstWildcard, type SplitPattern, unescapeGlob } from "../find/patterns.js";
import type { Joining } from "../join/join-source.js";
import { repositoryOf, type StoreSettings } from "../stores/byte-store.js";
import type { CodecSpec } from "../zarr/codec-step.js";
import type { CoarsenMethod } from "../zarr/plan/encoding-plan.js";
import type { DatasetConfig, OverviewsConfig } from "./config.js";
import {
  absoluteReferences,
  booleanSchema,
  cacheControlSchema,
  namedSchema,
  problemsOf,
  schemaOf,
  strictObject,
  textSchema,
  withoutUndefined,
} from "./value-schemas.js";

const dimensionSchema = textSchema("the name of a dimension", 256);

/** Tells whether a text is a regular expression with exactly one group. */
function hasOneGroup(text: unknown): boolean {
  if (typeof text !== "string") return false;
  try {
    new RegExp(text, "u");
    // The empty alternative matches everything, so that the result has a place for each group.
    return new RegExp(`${text}|`, "u").exec("")?.length === 2;
  } catch {
    return false;
  }
}

const coordinateSchema = z.custom<string>(hasOneGroup, {
  error: "expected a regular expression with one group, such as run-(\\d+)",
});

const stackShape = strictObject("the name of a dimension, or an object of dimension, coordinate", {
  dimension: dimensionSchema,
  coordinate: coordinateSchema.optional(),
});

/** A new dimension. A text alone is short for `{"dimension": text}`. */
const stackSchema = schemaOf((value) =>
  typeof value === "string" ? dimensionSchema.transform((dimension) => ({ dimension })) : stackShape,
) as z.ZodType<z.output<typeof stackShape>>;

/** Keys of a dataset that is made of several files. */
export const joinShape = {
  concat: dimensionSchema.optional(),
  stack: stackSchema.optional(),
};

/** Checked values of {@link joinShape}. */
type JoinKeys = { readonly [K in keyof typeof joinShape]?: z.output<(typeof joinShape)[K]> };

/**
 * Converts the keys of a dataset to how its files are joined; undefined if it is a single file or store.
 * @param problem Takes what is wrong with several keys together.
 */
export function joinConfigOf(
  { concat, stack }: JoinKeys,
  problem: (text: string) => void,
): Joining | undefined {
  if (concat !== undefined && stack !== undefined) problem("expected concat or stack, received both");
  if (concat !== undefined) return { kind: "concat", dimension: concat };
  return stack && { kind: "stack", ...withoutUndefined(stack) };
}

/** A codec. Opening the dataset checks that it exists and has these options. */
const codecSchema = z.custom<CodecSpec>(
  (value) =>
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    typeof (value as { id?: unknown }).id === "string" &&
    (value as { id: string }).id !== "",
  { error: 'expected an object with an "id", such as {"id": "zstd", "level": 3}, or null' },
);

const chunkLengthSchema = z.custom<number>(
  (value) => value === -1 || (Number.isSafeInteger(value) && (value as number) > 0),
  { error: "expected a positive integer, or -1 for the whole axis" },
);

const chunksError = "expected chunk lengths by dimension name, or an array of one per axis";

const chunksSchema = schemaOf((value): z.ZodType<Readonly<Record<string, number>> | readonly number[]> => {
  if (Array.isArray(value)) return z.array(chunkLengthSchema);
  return z.record(z.string(), chunkLengthSchema, { error: chunksError });
});

const encodingShape = {
  chunks: chunksSchema.optional(),
  compressor: codecSchema.nullable().optional(),
  filters: z.array(codecSchema, { error: "expected an array of filters, or null" }).nullable().optional(),
};

const encodingSchema = strictObject("an object of chunks, compressor, filters", encodingShape);

/** Names of encodings are segments of URLs. */
const ENCODING_NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/i;

const encodingsSchema = namedSchema("encodings by name", encodingSchema).refine(
  (encodings) => Object.keys(encodings).every((name) => ENCODING_NAME.test(name)),
  { error: "expected names of encodings, of at most 64 letters, digits, hyphens and underscores" },
);

const freshnessSchema = z.custom<number | "always" | "immutable">(
  (value) => value === "always" || value === "immutable" || (typeof value === "number" && value >= 0),
  { error: 'expected "always", "immutable", or a number of seconds' },
);

/** Places to which references may lead. */
export const referencesSchema = strictObject('an object with "allow"', {
  allow: z.array(textSchema("a URL or a path"), { error: "expected an array of URLs and paths" }),
});

/** How the Zarr v3 store of a dataset is served. */
export const zarr3Schema = strictObject('an object with "portable"', { portable: booleanSchema });

/** Most levels: after 16, a cell stands for 65,536 of them along each axis. */
const MAX_LEVELS = 16;
const METHODS = ["mean", "nearest", "max", "mode"] as const satisfies readonly CoarsenMethod[];
const CONVENTIONS = ["geo", "ome"] as const;

const overviewsShape = strictObject("true, false, or an object of levels, method, metadata", {
  levels: z
    .custom<number | "auto">(
      (value) =>
        value === "auto" ||
        (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_LEVELS),
      { error: `expected an integer from 1 to ${MAX_LEVELS}, or "auto"` },
    )
    .optional(),
  method: z.enum(METHODS, { error: `expected one of ${METHODS.join(", ")}` }).optional(),
  metadata: z.enum(CONVENTIONS, { error: `expected one of ${CONVENTIONS.join(", ")}` }).optional(),
});

/** Overviews of datasets that ask for them without saying how. */
export const DEFAULT_OVERVIEWS: OverviewsConfig = Object.freeze({ levels: "auto", method: "mean" });

/** Overviews of a dataset, completed by defaults: all of them for `true`. */
const overviewsSchema = schemaOf(
  (value): z.ZodType<OverviewsConfig | false> =>
    typeof value === "boolean"
      ? z.boolean().transform((isAsked) => isAsked && DEFAULT_OVERVIEWS)
      : overviewsShape.transform((data) => ({ ...DEFAULT_OVERVIEWS, ...withoutUndefined(data) })),
);

/** Keys that hold for a dataset, and for all datasets of a collection. */
const servedShape = {
  cacheControl: cacheControlSchema.optional(),
  immutable: booleanSchema.optional(),
  freshness: freshnessSchema.optional(),
  references: referencesSchema.optional(),
  zarr3: zarr3Schema.optional(),
  encoding: encodingSchema.optional(),
  encodings: encodingsSchema.optional(),
  overviews: overviewsSchema.optional(),
  file: booleanSchema.optional(),
};

/** Keys of a dataset besides its location. */
export const datasetShape = {
  ...servedShape,
  variables: namedSchema("encodings by variable path", encodingSchema).optional(),
  ...joinShape,
};

/** Checked values of the keys of a dataset. */
export type DatasetKeys = { readonly [K in keyof typeof datasetShape]?: z.output<(typeof datasetShape)[K]> };

/** One dataset of the file. A text alone is short for `{"location": text}`. */
export const locatedDatasetSchema = strictObject("a location, or an object with one", {
  location: textSchema("a location"),
  ...datasetShape,
});

const patternSchema = z.custom<string>(isPattern, {
  error: 'expected a pattern of paths below the root, such as "**/*.nc"',
});
const patternsSchema = z.array(patternSchema, { error: "expected an array of patterns" });

/** One collection. A text alone is short for `{"root": text}`. */
export const collectionSchema = strictObject("a folder, or an object with one as its root", {
  root: textSchema("a folder"),
  include: patternsSchema.min(1, { error: "expected at least one pattern" }).optional(),
  exclude: patternsSchema.optional(),
  groups: booleanSchema.optional(),
  ...servedShape,
});

/** Checked values of the keys that datasets and collections share. */
type ServedKeys = { readonly [K in keyof typeof servedShape]?: z.output<(typeof servedShape)[K]> };

/**
 * Converts the keys that datasets and collections share, without those that are undefined.
 * @param directory Directory that relative paths begin in.
 */
export function createServedConfig(
  {
    cacheControl,
    immutable = false,
    freshness,
    references: said,
    encoding = {},
    encodings,
    overviews,
    zarr3,
    file,
  }: ServedKeys,
  directory: string,
): Omit<DatasetConfig, "id" | "location" | "variables"> {
  const references = said && absoluteReferences(said, directory);
  const named = Object.entries(encodings ?? {}).map(([name, each]) => [name, withoutUndefined(each)]);
  return {
    ...withoutUndefined({ cacheControl, freshness, references, overviews, zarr3, file }),
    ...(named.length > 0 && { encodings: Object.fromEntries(named) }),
    immutable: immutable || freshness === "immutable",
    encoding: withoutUndefined(encoding),
  };
}

function isPattern(value: unknown): boolean {
  if (!textSchema("").safeParse(value).success || /^\.\.\//.test(value as string)) return false;
  try {
    compileGlob(value as string);
    return true;
  } catch {
    return false;
  }
}

/** Name of an HTTP header (RFC 9110 §5.6.2). */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;

const variableSchema = strictObject('an object with "env"', { env: textSchema("the name of a variable") });

const headerSchema = z.custom<string | { readonly env: string }>(
  (value) =>
    (typeof value === "string" && !/[^\t\x20-\x7e\x80-\xff]/.test(value)) ||
    variableSchema.safeParse(value).success,
  { error: 'expected a text of one line, or {"env": "NAME"} with the name of a variable' },
);

const urlSchema = z.custom<string>(
  (value) => typeof value === "string" && /^(https?|s3):\/\/[^?#@\s]+$/.test(value),
  { error: "expected an https://, http:// or s3:// URL without user, query and fragment" },
);

const endpointSchema = z.custom<string>(
  (value) => typeof value === "string" && /^https?:\/\/[^?#@\s]+$/.test(value),
  { error: "expected an https:// or http:// URL without user, query and fragment" },
);

/** One store: how a remote place is reached. */
const storeSchema = strictObject("an object with a url", {
  url: urlSchema,
  endpoint: endpointSchema.optional(),
  region: textSchema("the name of a region").optional(),
  forcePathStyle: booleanSchema.optional(),
  anonymous: booleanSchema.optional(),
  profile: textSchema("the name of a profile").optional(),
  credentials: strictObject("an object of accessKeyId, secretAccessKey, sessionToken", {
    accessKeyId: variableSchema,
    secretAccessKey: variableSchema,
    sessionToken: variableSchema.optional(),
  }).optional(),
  requesterPays: booleanSchema.optional(),
  missing: z.enum(["404", "404+403"], { error: 'expected "404" or "404+403"' }).optional(),
  headers: namedSchema("headers by name", headerSchema)
    .refine((headers) => Object.keys(headers).every((name) => HEADER_NAME.test(name)), {
      error: "expected names of headers, of letters, digits and hyphens",
    })
    .optional(),
  redirect: booleanSchema.optional(),
});

/**
 * Checks a store of the configuration.
 * @param place Begins the lines that are added to `problems`.
 * @returns The store, or none if something is wrong with it.
 */
export function checkStore(
  name: string,
  said: unknown,
  place: string,
  problems: string[],
): readonly StoreSettings[] {
  const result = storeSchema.safeParse(said);
  if (result.success) return [{ name, ...result.data }];
  problems.push(...problemsOf(result.error, withoutSecrets(said), place, ["stores", name]));
  return [];
}

/** Returns a store as a message may show it: without what may be a secret, though it belongs elsewhere. */
function withoutSecrets(store: unknown): unknown {
  if (typeof store !== "object" || store === null || Array.isArray(store)) return store;
  const entries = Object.entries(store).map(([key, value]) => {
    if (key === "headers" || key === "credentials") return [key, hidden(value)];
    const isUrl = typeof value === "string" && value.includes("//");
    return [key, isUrl ? value.replace(/\/\/[^/]*@/, "//…@").replace(/[?#].*/s, "?…") : value];
  });
  return Object.fromEntries(entries);
}

/** Replaces all texts of a value. */
function hidden(value: unknown): unknown {
  if (typeof value === "string") return "…";
  if (Array.isArray(value)) return value.map(hidden);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, hidden(each)]));
}

/** Longest path parameter. */
const MAX_ID_BYTES = 1_024;

/** Says why a text cannot be a dataset's id, as "expected …, received …"; undefined if it can. */
export function problemOfDatasetId(id: string): string | undefined {
  if (id === "") return "expected a non-empty id";
  if (id === "." || id === "..") return `expected an id other than "." and "..", received "${id}"`;
  if (id.includes("/")) return `expected an id without "/", received ${JSON.stringify(id)}`;
  if (/\p{Cc}/u.test(id)) return `expected an id without control characters, received ${JSON.stringify(id)}`;
  const bytes = Buffer.from(id, "utf8");
  if (bytes.toString("utf8") !== id)
    return `expected an id that is valid Unicode, received ${JSON.stringify(id)}`;
  if (bytes.length > MAX_ID_BYTES) {
    return `expected an id of at most ${MAX_ID_BYTES} bytes, received one of ${bytes.length} bytes`;
  }
  return undefined;
}

/**
 * Says why a text cannot be a collection's name, as "expected …, received …"; undefined if it can. It may be empty: then ids of its
 * datasets have no prefix.
 */
export function problemOfCollectionName(name: string): string | undefined {
  if (name === "") return undefined;
  if (name.includes("~")) return `expected a name without "~", received ${JSON.stringify(name)}`;
  return problemOfDatasetId(name)?.replace("an id", "a name");
}

/**
 * Derives the id of a dataset from its absolute location: the last name without the extension, `air` for
 * `/data/air.zarr/`. Empty if the location has no name (`/`).
 */
export function datasetIdOfLocation(location: string): string {
  const place = repositoryOf(location)?.place ?? location;
  const name = basename(place.startsWith("file:") ? decodePath(place) : place);
  return basename(name, extname(name));
}

/**
 * Derives the id of a dataset that is all files of a pattern, from the last name that is fixed: `sst` for `/data/sst-*.nc`, `daily` for
 * `/data/daily/*.nc`. Empty if there is none.
 */
export function datasetIdOfPattern({ root, include }: SplitPattern): string {
  const names = include.split("/");
  const last = names.pop() as string;
  const end = firstWildcard(last);
  const begin = unescapeGlob(last.slice(0, end));
  const fixed = end === last.length ? datasetIdOfLocation(begin) : begin.replace(/[-_. ]+$/, "");
  if (fixed !== "") return fixed;
  const folder = names.findLast((name) => firstWildcard(name) === name.length);
  return folder === undefined ? basename(root) : unescapeGlob(folder);
}

function decodePath(url: string): string {
  try {
    return decodeURIComponent(new URL(url).pathname);
  } catch {
    return url;
  }
}
