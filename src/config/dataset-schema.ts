import { z } from "zod";
import { compileGlob } from "../find/glob.js";
import type { CodecSpec } from "../zarr/codec-spec.js";
import type { CoarsenMethod } from "../zarr/plan/compute-step.js";
import type { DatasetConfig, EncodingConfig, OverviewsConfig } from "./config.js";
import { joinShape } from "./join-schema.js";
import { absoluteReferences } from "./locate.js";
import { booleanSchema, cacheControlSchema, strictObject, textSchema } from "./value-schemas.js";

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

/** Distinguishes array and object before it checks lengths: messages of a union would say less. */
const chunksSchema = z
  .custom<Readonly<Record<string, unknown>> | readonly unknown[]>(
    (value) => typeof value === "object" && value !== null,
    { error: chunksError },
  )
  .transform((value, context): Readonly<Record<string, number>> | readonly number[] => {
    const schema = Array.isArray(value)
      ? z.array(chunkLengthSchema)
      : z.record(z.string(), chunkLengthSchema);
    const result = schema.safeParse(value);
    if (result.success) return result.data;
    for (const issue of result.error.issues) {
      context.addIssue({ code: "custom", message: issue.message, path: issue.path });
    }
    return z.NEVER;
  });

const encodingShape = {
  chunks: chunksSchema.optional(),
  compressor: codecSchema.nullable().optional(),
  filters: z.array(codecSchema, { error: "expected an array of filters, or null" }).nullable().optional(),
};

const encodingSchema = strictObject("an object of chunks, compressor, filters", encodingShape);

const freshnessSchema = z.custom<number | "always" | "immutable">(
  (value) => value === "always" || value === "immutable" || (typeof value === "number" && value >= 0),
  { error: 'expected "always", "immutable", or a number of seconds' },
);

/** Places to which references may lead. */
export const referencesSchema = strictObject('an object with "allow"', {
  allow: z.array(textSchema("a URL or a path"), { error: "expected an array of URLs and paths" }),
});

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
const overviewsSchema = z.unknown().transform((value, context): OverviewsConfig | false => {
  if (typeof value === "boolean") return value && DEFAULT_OVERVIEWS;
  const { success, data, error } = overviewsShape.safeParse(value);
  if (!success) {
    for (const issue of error.issues) context.addIssue({ ...issue });
    return z.NEVER;
  }
  const { levels, method } = DEFAULT_OVERVIEWS;
  return {
    levels: data.levels ?? levels,
    method: data.method ?? method,
    ...(data.metadata === undefined ? {} : { metadata: data.metadata }),
  };
});

/** Keys that hold for a dataset, and for all datasets of a collection. */
const servedShape = {
  cacheControl: cacheControlSchema.optional(),
  immutable: booleanSchema.optional(),
  freshness: freshnessSchema.optional(),
  references: referencesSchema.optional(),
  encoding: encodingSchema.optional(),
  overviews: overviewsSchema.optional(),
};

/** Keys of a dataset besides its location. */
export const datasetShape = {
  ...servedShape,
  variables: z
    .record(z.string(), encodingSchema, { error: "expected an object of encodings by variable path" })
    .optional(),
  ...joinShape,
};

/** One dataset of the file. A text alone is short for `{"location": text}`. */
export const datasetSchema = strictObject("a location, or an object with one", {
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
  { cacheControl, immutable = false, freshness, references, encoding = {}, overviews }: ServedKeys,
  directory: string,
): Omit<DatasetConfig, "id" | "location" | "variables"> {
  return {
    ...(cacheControl === undefined ? {} : { cacheControl }),
    immutable: immutable || freshness === "immutable",
    ...(freshness === undefined ? {} : { freshness }),
    ...(references === undefined ? {} : { references: absoluteReferences(references, directory) }),
    encoding: createEncodingConfig(encoding),
    ...(overviews === undefined ? {} : { overviews }),
  };
}

/** Copies a checked encoding without its undefined keys. */
export function createEncodingConfig(said: z.output<typeof encodingSchema>): EncodingConfig {
  return {
    ...(said.chunks === undefined ? {} : { chunks: said.chunks }),
    ...(said.compressor === undefined ? {} : { compressor: said.compressor }),
    ...(said.filters === undefined ? {} : { filters: said.filters }),
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
